// The queues, as the rest of the product sees them: one interface over two engines (Redis, PostgreSQL). It promises
// at-least-once and nothing more; that a job has its effect once is the receipt's affair.
import type { Logger } from '../log.ts'

export interface QueueOptions {
  /** Prefix of every Redis key; a hash tag (`{tokenmill}`) for a cluster. PostgreSQL keeps its queues in the schema `bullmq`. */
  prefix: string
  /** How long a job stays a worker's without renewal, ms. 60,000 or more in production. */
  lockMs: number
  log: Logger
}

export interface QueuedJob {
  /** Deterministic: `[A-Za-z_][A-Za-z0-9_-]{0,127}`. A job of this id that is still there swallows this one. */
  id: string
  /** JSON. */
  data: unknown
  /** 0 or none is first; `submit` uses 10. */
  priority?: number
  /** A consumer that isn't ours decides by these options: offered again until it is taken, never given up. */
  redeliver?: boolean
}

export interface ReceivedJob {
  id: string
  /** As the producer wrote it, unchecked; undefined if it wasn't JSON. */
  data: unknown
  /** 1 on the first attempt; deferrals and stalls don't count. */
  attempt: number
  /** How often a worker vanished while it had this job. */
  stalled: number
  /** It stalled more often than is allowed: answer it, don't run it. */
  exhausted: boolean
  /** It came with a parent or a repeat option: refuse it. */
  tied: boolean
  /** Milliseconds since the epoch, by the producer's clock and word. */
  enqueuedAt: number
  /** Shows at the job how far its work is: at most once a second, and whether it can be shown changes nothing. Absent in a cell. */
  progress?: (done: Record<string, number>) => void
}

/** What becomes of a job: taken off as done, again later as a further attempt or as the same one, or taken off as failed. */
export type Disposition = { done: true } | { retryInMs: number } | { deferMs: number } | { failed: true; code: string }

/** `signal` is aborted when the lock is lost or the worker closes: hand the job back soon. Doesn't throw on purpose. */
export type Handler = (job: ReceivedJob, signal: AbortSignal) => Promise<Disposition>

export interface WorkOptions {
  concurrency: number
  /** Trouble between worker and server (lost connections, lost locks); the worker goes on by itself. */
  onError?: (error: unknown) => void
  /** The handler threw: the job was taken off as failed with the code `defect`. */
  onDefect?: (error: unknown, job: ReceivedJob) => void
  /** Jobs whose own fields were damaged were taken off: nobody could have worked them, and nobody is answered. */
  onDamaged?: (jobs: number) => void
  /** How often jobs of vanished workers are looked for, ms. At most `lockMs`. */
  stalledMs?: number
}

export interface Worker {
  queue: string
  /** Once it listens. */
  ready: Promise<void>
  /** Jobs being handled now. */
  active(): number
  /** Takes no further jobs until `resume`; those being handled go on. */
  pause(): Promise<void>
  resume(): Promise<void>
  /** Takes no further jobs, waits for those being handled, aborts their signals after `deadlineMs`, and gives up 2 s later. */
  close(deadlineMs: number): Promise<void>
}

/** What is said to whoever may read it, beside the queues; each has one key. */
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
  /** As the worker showed it last. */
  progress?: Record<string, number>
}

/** Every method throws `Fault('queue_away')` within seconds if the server doesn't answer, `Fault('data')` if it refuses the data. */
export interface Queues {
  engine: 'redis' | 'postgres'
  add(queue: string, job: QueuedJob): Promise<void>
  /** All or a throw; after a throw some may be there, so send the whole chunk again. */
  addBulk(queue: string, jobs: QueuedJob[]): Promise<void>
  /**
   * Lays one job that holds nothing into the queue for the beginning of the next minute; however many ask, it is one.
   * It comes once: whoever takes it asks for the next. It is lost with the queue server, and it may be forged.
   */
  tick(queue: string): Promise<void>
  /** Throws `ConfigError` if the PostgreSQL pool is too small for one more worker. */
  work(queue: string, handler: Handler, options: WorkOptions): Worker
  depth(queue: string): Promise<Record<JobState, number>>
  /** Age of the oldest waiting job, ms. */
  oldestMs(queue: string): Promise<number | undefined>
  /** Whether a job of this id is there, in any state. */
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
  /** The queue and all its jobs, those being handled too. */
  obliterate(queue: string): Promise<void>
  /** Live workers that listen, of all processes; undefined where this user may not see them. */
  workersOf(queue: string): Promise<number | undefined>
  /** Sets the installation's id if there is none yet; answers the one that holds. */
  claimInstallation(id: string): Promise<string>
  /** Says `text` for `lifeMs`, in place of what was said before. On PostgreSQL nothing: who reaches its queues asks the store. */
  setNotice(name: NoticeName, text: string, lifeMs: number): Promise<void>
  notice(name: NoticeName): Promise<Notice>
  ping(): Promise<void>
  on(event: 'away' | 'back', listener: () => void): void
  /** Closes what is still open, workers without waiting for their jobs. Leaves a PostgreSQL pool to its owner. */
  close(): Promise<void>
}
