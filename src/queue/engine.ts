// The queues as the rest of the product sees them: one interface over two engines (Redis, PostgreSQL). It promises
// at-least-once delivery only; receipts make a job take effect once.
import type { Logger } from '../log.ts'

export interface QueueOptions {
  /** Prefix of every Redis key; a hash tag (`{tokenmill}`) for a cluster. PostgreSQL keeps its queues in the schema `bullmq`. */
  prefix: string
  /** How long a worker keeps a job without renewal, ms. 60,000 or more in production. */
  lockMs: number
  log: Logger
}

export interface QueuedJob {
  /** Deterministic: `[A-Za-z_][A-Za-z0-9_-]{0,127}`. While a job with this id exists, a second one is ignored. */
  id: string
  /** JSON. */
  data: unknown
  /** 0 or none comes first; `submit` uses 10. */
  priority?: number
  /**
   * For consumers outside of tokenmill, which go by these options: the job is offered until it is taken, and never
   * given up.
   */
  redeliver?: boolean
}

export interface ReceivedJob {
  id: string
  /** The producer's data, unchecked; undefined if they aren't JSON. */
  data: unknown
  /** 1 on the first attempt; deferrals and stalls don't count. */
  attempt: number
  /** How often a worker vanished while it had this job. */
  stalled: number
  /** The job stalled more often than is allowed: answer it, don't run it. */
  exhausted: boolean
  /** The job has a parent or a repeat option: refuse it. */
  tied: boolean
  /** Milliseconds since the epoch, by the producer's clock; the producer may lie. */
  enqueuedAt: number
  /** Shows the progress at the job, at most once a second; a failure to show it is ignored. Absent in a cell. */
  progress?: (done: Record<string, number>) => void
}

/** What becomes of a job: removed as done, repeated later as a further attempt or as the same one, or removed as failed. */
export type Disposition = { done: true } | { retryInMs: number } | { deferMs: number } | { failed: true; code: string }

/**
 * `signal` is aborted when the lock is lost or the worker closes: give the job back soon. A handler doesn't throw on
 * purpose.
 */
export type Handler = (job: ReceivedJob, signal: AbortSignal) => Promise<Disposition>

export interface WorkOptions {
  concurrency: number
  /** Trouble between worker and server (lost connections, lost locks); the worker recovers by itself. */
  onError?: (error: unknown) => void
  /** The handler threw: the job was removed as failed with the code `defect`. */
  onDefect?: (error: unknown, job: ReceivedJob) => void
  /** Damaged jobs were removed: no worker could have processed them, and nobody gets an answer. */
  onDamaged?: (jobs: number) => void
  /** How often to look for jobs of vanished workers, ms. At most `lockMs`. */
  stalledMs?: number
}

export interface Worker {
  queue: string
  /** Resolves once the worker listens. */
  ready: Promise<void>
  /** Number of jobs in work now. */
  active(): number
  /** Fetches no further jobs until `resume`; a job whose fetch is under way is still handled, as are those begun. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Takes no further jobs, waits for those in work, aborts their signals after `deadlineMs`, and gives up 2 s later. */
  close(deadlineMs: number): Promise<void>
}

/** A text that workers publish beside the queues for senders; each name is one key. */
export type NoticeName = 'live-keys'

/** `permitted` is false where this user may not read it. */
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

/** Every method throws `Fault('queue_away')` within seconds if the server doesn't answer, `Fault('data')` if it refuses the data. */
export interface Queues {
  engine: 'redis' | 'postgres'
  add(queue: string, job: QueuedJob): Promise<void>
  /** All jobs or a throw; after a throw some may be in the queue, so send the whole chunk again. */
  addBulk(queue: string, jobs: QueuedJob[]): Promise<void>
  /**
   * Adds one empty job for the beginning of the next minute; however many callers ask, there is one. It comes once: its
   * receiver asks for the next. It is lost with the queue server, and anybody may forge it.
   */
  tick(queue: string): Promise<void>
  /** Throws `ConfigError` if the PostgreSQL pool is too small for one more worker. */
  work(queue: string, handler: Handler, options: WorkOptions): Worker
  depth(queue: string): Promise<Record<JobState, number>>
  /** Age of the oldest waiting job, ms. */
  oldestMs(queue: string): Promise<number | undefined>
  /** Whether a job with this id exists, in any state. */
  has(queue: string, id: string): Promise<boolean>
  /** Oldest first; `start` and `end` (inclusive) count within each state. */
  list(queue: string, states: JobState[], start: number, end: number): Promise<ListedJob[]>
  get(queue: string, id: string): Promise<ListedJob | undefined>
  /** Where a job is; undefined if there is no such job, or its state is none of ours. */
  stateOf(queue: string, id: string): Promise<JobState | undefined>
  /** False if there is no such job. */
  update(queue: string, id: string, data: unknown): Promise<boolean>
  /** False if there is no such job or a worker has it. */
  remove(queue: string, id: string): Promise<boolean>
  /** Removes the queue and all its jobs, including those in work. */
  obliterate(queue: string): Promise<void>
  /** Number of live workers that listen, in all processes; undefined where this user may not see them. */
  workersOf(queue: string): Promise<number | undefined>
  /** The same of many queues at one moment; a queue to which nobody listens stands there with 0. */
  workersOfAll(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined>
  /** Sets the installation's id if there is none yet; returns the id that is set. */
  claimInstallation(id: string): Promise<string>
  /**
   * Publishes `text` for `lifeMs` and replaces the text before. Does nothing on PostgreSQL, where senders ask the
   * store.
   */
  setNotice(name: NoticeName, text: string, lifeMs: number): Promise<void>
  notice(name: NoticeName): Promise<Notice>
  ping(): Promise<void>
  on(event: 'away' | 'back', listener: () => void): void
  /** Closes everything that is open, workers without waiting for their jobs. Leaves a PostgreSQL pool to its owner. */
  close(): Promise<void>
}
