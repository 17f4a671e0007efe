// Keeps a set of worker processes running, some for interactive kinds and some for bulk kinds. A process that dies is
// started again, unless its exit status says that another start wouldn't help. The supervisor works no jobs itself;
// it collects the metrics and health of its processes.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import { setTimeout as pause } from 'node:timers/promises'
import type { Health } from '../../src/health.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import type { Logger } from '../../src/logger.ts'
import type { MetricsRegistry, Snapshot } from '../../src/metrics.ts'
import { openHandBack, type WithQueues } from './hand-back.ts'
import { askWorker } from './process-report.ts'
import { kindsOf, type WorkerRole, workerEnv } from './worker-settings.ts'

export interface SuperviseOptions {
  log: Logger
  catalogue: Catalogue
  /** Only these kinds are worked; default: all. */
  kinds?: readonly string[] | undefined
  /** How many jobs of a kind a process works at once. */
  concurrency?: number | undefined
  /** The number of processes of each role; default: one per core for bulk kinds, one per four cores for interactive kinds. */
  processes?: Partial<Record<WorkerRole, number | undefined>>
  /** Which processes to run; default: both sorts. */
  roles?: readonly WorkerRole[]
  /** The script that is forked: it opens what a worker needs and runs `runWorkers`. */
  script: string
  /** Connects to the queues, to which the jobs of a process that ends are handed back. */
  withQueues: WithQueues
  env?: NodeJS.ProcessEnv
  /** The registry for the metric of running processes. */
  registry?: MetricsRegistry | undefined
  /** Node's flags for the processes; default: this process's own. */
  execArgv?: string[]
}

export interface Supervised {
  /**
   * Resolves once every process is working. Rejects if one can't be started or ends by itself before that; one that is
   * killed is started again.
   */
  ready: Promise<void>
  /** Resolves with the exit status of a process that ends after `ready` and wouldn't be helped by another start. */
  ended: Promise<number>
  /** The reasons of all processes; a process that isn't ready, or doesn't reply, is a reason. */
  reasons: Health['reasons']
  /** The metrics of the processes that reply. */
  snapshots(): Promise<Snapshot[]>
  /** Asks all processes to end, waits, and kills those that take too long. */
  close(): Promise<void>
}

/** A job of an interactive kind waits for others more than it computes, and jobs of one process share their statements. */
const DEFAULTS: Record<WorkerRole, (cores: number) => number> = {
  bulk: cores => cores,
  interactive: cores => Math.max(1, Math.floor(cores / 4)),
}

/** How many processes of each role a supervisor runs on a host with so many cores. */
export function countProcesses(
  { catalogue, kinds, processes = {} }: Pick<SuperviseOptions, 'catalogue' | 'kinds' | 'processes'>,
  cores = availableParallelism(),
): Record<WorkerRole, number> {
  const count = (role: WorkerRole) =>
    kindsOf(catalogue, role, kinds).length === 0 ? 0 : (processes[role] ?? DEFAULTS[role](cores))
  return { interactive: count('interactive'), bulk: count('bulk') }
}
const CLOSE_MS = 30_000
const RESTART_MS = 1_000
/** Exit statuses after which another start wouldn't help. */
const FINAL = new Set([64, 78])

export function supervise(options: SuperviseOptions): Supervised {
  const {
    log,
    catalogue,
    kinds,
    concurrency,
    processes = {},
    roles = ['interactive', 'bulk'],
    env = process.env,
    registry,
    script,
    withQueues,
    execArgv = process.execArgv,
  } = options
  const children = new Set<ChildProcess>()
  /** The working processes, by name. */
  const working = new Map<string, ChildProcess>()
  const ended = Promise.withResolvers<number>()
  const handBack = openHandBack({ withQueues, log })
  const wanted = roles.flatMap(role =>
    Array.from({ length: countProcesses({ catalogue, kinds, processes })[role] }, (_, number) => ({
      role,
      name: `${role}-${number}`,
      place: randomUUID(),
    })),
  )
  const names = wanted.map(({ name }) => name)
  const shown = registry && openSupervisorMetrics(registry, names)
  let served = false
  let closing = false

  /** Starts the process again after a pause. Resolves once it works. */
  function beginAgain(one: Wanted): Promise<void> {
    return pause(RESTART_MS)
      .then(() => {
        if (closing) throw new WorkerEnded(null)
        return begin(one)
      })
      .catch(error => {
        // A process that ended has logged the reason and its consequence.
        if (error instanceof WorkerEnded) throw error
        log.error({ role: one.role, err: error }, 'a worker process could not be started; trying again')
        return beginAgain(one)
      })
  }
  function begin({ role, name, place }: Wanted): Promise<void> {
    return new Promise((resolve, reject) => {
      const processId = randomUUID()
      const child = fork(script, {
        execArgv,
        // Detached, because a Ctrl-C in the terminal must reach only the supervisor, which ends its processes in order.
        detached: true,
        // A metric may be NaN or infinite, which JSON can't express.
        serialization: 'advanced',
        env: { ...env, ...workerEnv({ role, name, place, processId, kinds, concurrency }) },
      })
      children.add(child)
      child.once('message', () => {
        working.set(name, child)
        resolve()
      })
      // The process couldn't be started, and emits no other event. If only a message to it was lost, its end will say
      // more.
      child.on('error', error => {
        if (child.pid !== undefined) return
        children.delete(child)
        reject(error)
      })
      child.once('exit', (code, signal) => {
        children.delete(child)
        if (working.get(name) === child) working.delete(name)
        const isAsked = closing && signal === null
        if (!isAsked) handBack.begin({ processId, kinds: kindsOf(catalogue, role, kinds) })
        replace({ role, name, place }, code, signal).then(resolve, reject)
      })
    })
  }

  /** After the end of a process; resolves once another one works in its place. */
  async function replace(one: Wanted, code: number | null, signal: string | null): Promise<void> {
    if (closing) throw new WorkerEnded(code)
    const { role, name } = one
    shown?.ends.inc({ process: name })
    if (code !== null && FINAL.has(code)) {
      log.error({ role, code }, 'a worker process ended and can’t be helped by another start')
      if (served) ended.resolve(code)
      throw new WorkerEnded(code)
    }
    log.error({ role, code, signal }, 'a worker process ended; starting another')
    const again = beginAgain(one)
    again.catch(() => undefined)
    // One that is killed didn't fail to start: what its first job did may have killed it.
    if (signal === null) throw new WorkerEnded(code)
    return again
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
      await handBack.close()
    },
  }
}

interface Wanted {
  role: WorkerRole
  name: string
  /** A UUID that the process and those that replace it get. */
  place: string
}

/** Opens the metrics. `names`: the names of the processes. */
export function openSupervisorMetrics({ gauge, counter }: MetricsRegistry, names: readonly string[]) {
  return {
    up: gauge('worker_process_up', '1 while the worker process works and answers.', { process: names }),
    ends: counter('worker_process_ends_total', 'Worker processes that ended by themselves.', { process: names }),
  }
}

/**
 * A worker process ended before it worked, wouldn't be helped by another start, or ended while the supervisor closes.
 */
export class WorkerEnded extends Error {
  override name = 'WorkerEnded'
  readonly code: number

  constructor(code: number | null) {
    super('a worker process could not start; see its lines above')
    this.code = code ?? 1
  }
}
