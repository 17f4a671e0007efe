// The interface of the queues for the rest of the product, over two engines (Redis, PostgreSQL). Delivery is at least
// once; receipts make a job take effect once.
import type { FaultCode } from '../errors.ts'
import type { Logger } from '../logger.ts'
import type { Trouble } from '../server-error.ts'

export interface QueueOptions {
  /**
   * The prefix of every Redis key; for a cluster a hash tag (`{tokenmill}`). PostgreSQL keeps its queues in the schema
   * `bullmq`.
   */
  prefix: string
  /** How long a worker holds a job without renewing its lock, in ms. 60,000 or more in production. */
  lockMs: number
  log: Logger
}

/** The highest priority. BullMQ refuses a whole call because of one job above it. */
export const PRIORITY_MAX = 2_097_151

export interface QueuedJob {
  /**
   * The job's id, deterministic: `[A-Za-z_][A-Za-z0-9_-]{0,127}`. While a job with this id exists, adding another one
   * does nothing.
   */
  id: string
  /** Any JSON value. */
  data: unknown
  /** Undefined or 0 comes first, then 1, 2, … up to `PRIORITY_MAX`; `submit` uses 10. */
  priority?: number
  /**
   * For jobs that consumers outside of tokenmill take, which obey these options: the job is offered until it is taken,
   * and is never given up.
   */
  redeliver?: boolean
}

export interface ReceivedJob {
  id: string
  /** The producer's data, unchecked; undefined if it isn't JSON. */
  data: unknown
  /** The number of the attempt, from 1. Deferrals and stalls don't count. */
  attempt: number
  /** How often a worker vanished while it had this job. */
  stalled: number
  /** The job stalled more often than is allowed: answer it, don't run it. */
  exhausted: boolean
  /** The job has a parent or a repeat option: refuse it. */
  tied: boolean
  /** When the job was added by the producer's clock, in ms since the epoch. The producer may lie. */
  enqueuedAt: number
  /** The producer gave the job a priority below the first: other jobs come before it. */
  isBackground?: boolean
  /** Shows progress on the job. Writes at most once a second, and ignores a failure to write. Undefined in a cell. */
  progress?: (done: Record<string, number>) => void
}

/**
 * What happens to the job: removed as done; repeated later, as a further attempt (`retryInMs`, with the code of the fault) or as the same one
 * (`deferMs`); or removed as failed. With `keep` a failed job stays in the queue's failed set, with its code: at most
 * 1,000 jobs, for 7 days.
 */
export type Disposition =
  | { done: true }
  | { retryInMs: number; code?: string }
  | { deferMs: number }
  | { failed: true; code: string; keep?: true }

/**
 * Works one job. `signal` is aborted when the lock is lost or the worker closes: the handler should then give the job
 * back soon. A handler that throws has a bug.
 */
export type Handler = (job: ReceivedJob, signal: AbortSignal) => Promise<Disposition>

export interface WorkOptions {
  concurrency: number
  /** Called at trouble between worker and server (lost connections, lost locks). The worker recovers by itself. */
  onError?: (error: unknown) => void
  /** Called when the handler threw: the job was removed as failed with the code `defect`. */
  onDefect?: (error: unknown, job: ReceivedJob) => void
  /** Called when damaged jobs were removed. No worker could have processed them, and their senders get no answer. */
  onDamaged?: (jobs: number) => void
  /** How often the worker looks for jobs of vanished workers, in ms. At most `lockMs`. */
  stalledMs?: number
  /** The worker fetches nothing until `resume`. */
  paused?: boolean
  /** A UUID of this process, by which `handBack` finds the worker's jobs. */
  processId?: string | undefined
}

export interface Worker {
  queue: string
  /** Resolves once the worker listens to its queue; rejects with `Fault('queue_away')` if it is closed before. */
  ready: Promise<void>
  /** How many jobs are in work now. */
  active(): number
  /**
   * Fetches no further jobs until `resume`. Jobs in work go on, and a job whose fetch is under way is still handled.
   */
  pause(): Promise<void>
  resume(): Promise<void>
  /**
   * Takes no further jobs and waits for those in work. After `deadlineMs` it aborts their signals, and 2 s later it
   * gives up waiting.
   */
  close(deadlineMs: number): Promise<void>
}

/** The name of a text that workers publish on the queue server for senders. Each name is one key. */
export type NoticeName = 'live-keys'

/** A published text. `permitted` is false if this user may not read it. */
export interface Notice {
  text: string | undefined
  permitted: boolean
}

export type JobState = 'waiting' | 'active' | 'delayed' | 'failed'

export interface ListedJob {
  id: string
  data: unknown
  /** When it was added, milliseconds since the epoch. */
  timestamp: number
  failedReason?: string
  /** The last progress that the worker showed. */
  progress?: Record<string, number>
}

/** Faults that a server causes, on which a job waits. */
const HOLDS: readonly string[] = ['store_away', 'store_busy', 'store_denied', 'queue_away'] satisfies FaultCode[]

/** The name under which a worker shows on a job that it keeps it, because of this fault. */
export const heldUp = (code: FaultCode) => ({ [`held_up_by_${code}`]: 1 })

/** The fault by which a job that has no answer is held up; undefined for none that a server causes. */
export function heldUpBy({
  failedReason,
  progress = {},
}: Pick<ListedJob, 'failedReason' | 'progress'>): FaultCode | undefined {
  const shown = Object.keys(progress).map(name => /^held_up_by_(.*)$/.exec(name)?.[1])
  return [failedReason, ...shown].find(code => code !== undefined && HOLDS.includes(code)) as FaultCode | undefined
}

/**
 * Methods that call the server throw `Fault('queue_away')` if it doesn't answer: within 5 s, `addBulk` of more than 100
 * jobs within 30 s, `obliterate` within 120 s. They throw `Fault('data')` if it refuses the data.
 */
export interface Queues {
  engine: 'redis' | 'postgres'
  add(queue: string, job: QueuedJob): Promise<void>
  /**
   * Adds all jobs or throws. After a throw some jobs may be in the queue, so the caller sends the whole chunk again.
   */
  addBulk(queue: string, jobs: QueuedJob[]): Promise<void>
  /**
   * Adds one empty job for the beginning of the next minute, however many callers ask. The job doesn't repeat: its
   * receiver asks for the next one. It is lost with the queue server, and anybody who may write there can forge it.
   */
  tick(queue: string): Promise<void>
  /** Starts a worker. Throws `ConfigError` if the PostgreSQL pool is too small for one more worker. */
  work(queue: string, handler: Handler, options: WorkOptions): Worker
  depth(queue: string): Promise<Record<JobState, number>>
  /** How long the oldest waiting job has waited, in ms. */
  oldestMs(queue: string): Promise<number | undefined>
  /** Whether a job with this id exists in any state. */
  has(queue: string, id: string): Promise<boolean>
  /** Lists jobs oldest first. `start` and `end` (inclusive) count within each state. */
  list(queue: string, states: JobState[], start: number, end: number): Promise<ListedJob[]>
  get(queue: string, id: string): Promise<ListedJob | undefined>
  /** The state of a job; undefined if there is no such job, or its state isn't a `JobState`. */
  stateOf(queue: string, id: string): Promise<JobState | undefined>
  /** Replaces a job's data; false if there is no such job. */
  update(queue: string, id: string, data: unknown): Promise<boolean>
  /** Removes a job; false if there is no such job or a worker has it. */
  remove(queue: string, id: string): Promise<boolean>
  /**
   * Gives the jobs of a worker to the others at once, each counted as stalled once more; returns how many. Only for a
   * process that has ended: `processId` is that of its `work`.
   */
  handBack(queue: string, processId: string): Promise<number>
  /** Removes the queue and all its jobs, including jobs in work. */
  obliterate(queue: string): Promise<void>
  /** The number of live workers that listen to the queue, in all processes; undefined if this user may not see them. */
  workersOf(queue: string): Promise<number | undefined>
  /**
   * The number of live workers of many queues at one moment; a queue without workers has 0. Undefined if this user may
   * not see them.
   */
  workersOfAll(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined>
  /** Sets the installation's id if the server has none yet; returns the id that the server now has. */
  claimInstallation(id: string): Promise<string>
  /**
   * Publishes `text` for `lifeMs` and replaces the text before. Does nothing on PostgreSQL, where senders ask the
   * store.
   */
  setNotice(name: NoticeName, text: string, lifeMs: number): Promise<void>
  notice(name: NoticeName): Promise<Notice>
  /** Resolves if the server answers and takes a small write. */
  ping(): Promise<void>
  /** What the server refused this process lately. */
  trouble(): Trouble | undefined
  on(event: 'away' | 'back', listener: () => void): void
  /** Closes everything that is open, workers without waiting for their jobs. Leaves a PostgreSQL pool to its owner. */
  close(): Promise<void>
}
