// Keeps a set of worker processes running: one for interactive kinds, one per core for bulk kinds. A process that
// dies is started anew; it never touches a job itself.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Logger } from '../../src/log.ts'
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
  /** Flags of Node; this process's own. */
  execArgv?: string[]
}

export interface Supervised {
  /** Once every process has begun to work; rejects if one can't. */
  ready: Promise<void>
  /** Once a process that had to be started again can't be: the exit status that it gave. */
  ended: Promise<number>
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
    script,
    execArgv = process.execArgv,
  } = options
  const children = new Set<ChildProcess>()
  const ended = Promise.withResolvers<number>()
  let served = false
  let closing = false

  function beginAgain(one: { role: WorkerRole; place: string }): void {
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
  /** `place`: what one process after the other has. */
  function begin({ role, place }: { role: WorkerRole; place: string }): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = fork(script, {
        execArgv,
        // A Ctrl-C in the terminal is ours to pass on, in order.
        detached: true,
        env: { ...env, ...workerEnv({ role, place, kinds, concurrency }) },
      })
      children.add(child)
      child.once('message', () => resolve())
      // Not started at all: nothing else will be heard of it. A message to it that was lost says less than its end will.
      child.on('error', error => {
        if (child.pid !== undefined) return
        children.delete(child)
        reject(error)
      })
      child.once('exit', (code, signal) => {
        children.delete(child)
        reject(new WorkerEnded(code))
        if (closing) return
        if (code !== null && FINAL.has(code)) {
          log.error({ role, code }, 'a worker process ended and can’t be helped by another start')
          if (served) ended.resolve(code)
          return
        }
        log.error({ role, code, signal }, 'a worker process ended; starting another')
        beginAgain({ role, place })
      })
    })
  }

  const wanted = roles.flatMap(role =>
    kindsOf(role, kinds).length === 0
      ? []
      : Array.from({ length: role === 'bulk' ? processes : 1 }, () => ({ role, place: randomUUID() })),
  )
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

/** A worker process couldn't start; it has said why on standard error. */
export class WorkerEnded extends Error {
  override name = 'WorkerEnded'
  readonly code: number

  constructor(code: number | null) {
    super('a worker process could not start; see its lines above')
    this.code = code ?? 1
  }
}
