// Keeps a set of worker processes running: one for interactive kinds, one per core for bulk kinds. A process that
// dies is started anew; it never touches a job itself.
import { type ChildProcess, fork } from 'node:child_process'
import { randomUUID } from 'node:crypto'
import { availableParallelism } from 'node:os'
import type { Logger } from '../src/log.ts'
import { kindsOf, type WorkerRole } from './main.ts'

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
  let closing = false

  /** `place`: what one process after the other has. */
  function begin({ role, place }: { role: WorkerRole; place: string }): Promise<void> {
    return new Promise((resolve, reject) => {
      const child = fork(script, {
        execArgv,
        // A Ctrl-C in the terminal is ours to pass on, in order.
        detached: true,
        env: {
          ...env,
          TOKENMILL_WORKER_ROLE: role,
          TOKENMILL_PLACE: place,
          ...(kinds ? { TOKENMILL_KINDS: kinds.join(',') } : {}),
          ...(concurrency ? { TOKENMILL_CONCURRENCY: String(concurrency) } : {}),
        },
      })
      children.add(child)
      child.once('message', () => resolve())
      child.once('exit', (code, signal) => {
        children.delete(child)
        reject(new WorkerEnded(code))
        if (closing || (code !== null && FINAL.has(code))) return
        log.error({ role, code, signal }, 'a worker process ended; starting another')
        setTimeout(() => {
          if (!closing) begin({ role, place }).catch(() => {})
        }, RESTART_MS)
      })
    })
  }

  const wanted = roles.flatMap(role =>
    kindsOf(role, kinds).length === 0
      ? []
      : Array.from({ length: role === 'bulk' ? processes : 1 }, () => ({ role, place: randomUUID() })),
  )
  const ready = Promise.all(wanted.map(begin)).then(() => {})
  ready.catch(() => {})
  return {
    ready,
    async close() {
      closing = true
      const ended = [...children].map(child => new Promise(resolve => child.once('exit', resolve)))
      for (const child of children) child.kill('SIGTERM')
      const late = setTimeout(() => {
        for (const child of children) child.kill('SIGKILL')
      }, CLOSE_MS)
      await Promise.all(ended)
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
