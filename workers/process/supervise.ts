// Keeps a set of worker processes running: one for interactive kinds, one per core for bulk kinds. A process that
// dies is started anew; it never touches a job itself. What its processes show of themselves it gathers.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Health } from '../../src/health.ts'
import type { Logger } from '../../src/log.ts'
import type { MetricsRegistry, Snapshot } from '../../src/metrics.ts'
import { askWorker } from './process-report.ts'
import { kindsOf, type WorkerRole, workerEnv } from './worker-settings.ts'

export interface SuperviseOptions {
  log: Logger
  /** Only these kinds. */
  kinds?: readonly string[] | undefined
  /** Jobs at once, per kind and process. */
  concurrency?: number | undefined
  /** Bulk processes; one per core. */
  processes?: number | undefined
  /** Which processes to run; both. */
  roles?: readonly WorkerRole[]
  /** What is forked: it opens and runs `runWorkers`. */
  script: string
  env?: NodeJS.ProcessEnv
  /** Where it shows which of its processes run. */
  registry?: MetricsRegistry | undefined
  /** Flags of Node; this process's own. */
  execArgv?: string[]
}

export interface Supervised {
  /** Once every process has begun to work; rejects if one can't. */
  ready: Promise<void>
  /** Once a process that had to be started again can't be: the exit status that it gave. */
  ended: Promise<number>
  /** Of all its processes; one that isn't ready, or doesn't answer, is a reason. */
  reasons: Health['reasons']
  /** Those of the processes that answer. */
  snapshots(): Promise<Snapshot[]>
  /** Asks all to end, waits, and kills those that are late. */
  close(): Promise<void>
}

const CLOSE_MS = 30_000
const RESTART_MS = 1_000
/** A process that ends by itself with one of these can't be helped by another start. */
const FINAL = new Set([64, 78])

export function supervise(options: SuperviseOptions): Supervised {
  const {
    log,
    kinds,
    concurrency,
    processes = availableParallelism(),
    roles = ['interactive', 'bulk'],
    env = process.env,
    registry,
    script,
    execArgv = process.execArgv,
  } = options
  const children = new Set<ChildProcess>()
  /** Those that work, by name. */
  const working = new Map<string, ChildProcess>()
  const ended = Promise.withResolvers<number>()
  const wanted = roles.flatMap(role =>
    kindsOf(role, kinds).length === 0
      ? []
      : Array.from({ length: role === 'bulk' ? processes : 1 }, (_, number) => ({
          role,
          name: `${role}-${number}`,
          place: randomUUID(),
        })),
  )
  const names = wanted.map(({ name }) => name)
  const shown = registry && openSupervisorMetrics(registry, names)
  let served = false
  let closing = false

  function beginAgain(one: Wanted): void {
    setTimeout(() => {
      if (closing) return
      begin(one).catch(error => {
        // One that ended has said so, and what follows.
        if (error instanceof WorkerEnded) return
        log.error({ role: one.role, err: error }, 'a worker process could not be started; trying again')
        beginAgain(one)
      })
    }, RESTART_MS)
  }
  function begin({ role, name, place }: Wanted): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = fork(script, {
        execArgv,
        // A Ctrl-C in the terminal is ours to pass on, in order.
        detached: true,
        // What is counted may be no number, which JSON can't say.
        serialization: 'advanced',
        env: { ...env, ...workerEnv({ role, name, place, kinds, concurrency }) },
      })
      children.add(child)
      child.once('message', () => {
        working.set(name, child)
        resolve()
      })
      // Not started at all: nothing else will be heard of it. A message to it that was lost says less than its end will.
      child.on('error', error => {
        if (child.pid !== undefined) return
        children.delete(child)
        reject(error)
      })
      child.once('exit', (code, signal) => {
        children.delete(child)
        if (working.get(name) === child) working.delete(name)
        reject(new WorkerEnded(code))
        if (closing) return
        shown?.ends.inc({ process: name })
        if (code !== null && FINAL.has(code)) {
          log.error({ role, code }, 'a worker process ended and can’t be helped by another start')
          if (served) ended.resolve(code)
          return
        }
        log.error({ role, code, signal }, 'a worker process ended; starting another')
        beginAgain({ role, name, place })
      })
    })
  }

  const ready = Promise.all(wanted.map(begin)).then(() => {})
  ready.then(
    () => {
      served = true
    },
    () => {},
  )
  return {
    ready,
    ended: ended.promise,
    async reasons() {
      const told = wanted.map(async ({ name }) => {
        const child = working.get(name)
        const reasons = (child && (await askWorker(child, 'readiness'))) ?? ['it does not answer']
        return reasons.map(reason => `${name}: ${reason}`)
      })
      return (await Promise.all(told)).flat()
    },
    async snapshots() {
      const told = wanted.map(async ({ name }) => {
        const child = working.get(name)
        const snapshot = child && (await askWorker(child, 'metrics'))
        shown?.up.set({ process: name }, snapshot ? 1 : 0)
        return snapshot ? [snapshot] : []
      })
      return (await Promise.all(told)).flat()
    },
    async close() {
      closing = true
      const left = [...children].map(child => new Promise(resolve => child.once('exit', resolve)))
      for (const child of children) child.kill('SIGTERM')
      const late = setTimeout(() => {
        for (const child of children) child.kill('SIGKILL')
      }, CLOSE_MS)
      await Promise.all(left)
      clearTimeout(late)
    },
  }
}

interface Wanted {
  role: WorkerRole
  name: string
  /** What one process after the other has. */
  place: string
}

/** `names`: those of the processes. */
export function openSupervisorMetrics({ gauge, counter }: MetricsRegistry, names: readonly string[]) {
  return {
    up: gauge('worker_process_up', '1 while the worker process works and answers.', { process: names }),
    ends: counter('worker_process_ends_total', 'Worker processes that ended by themselves.', { process: names }),
  }
}

/** A worker process couldn't start; it has said why on standard error. */
export class WorkerEnded extends Error {
  override name = 'WorkerEnded'
  readonly code: number

  constructor(code: number | null) {
    super('a worker process could not start; see its lines above')
    this.code = code ?? 1
  }
}
