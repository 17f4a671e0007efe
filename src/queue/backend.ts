// The differences between the two engines (Redis, PostgreSQL): how to reach the server, and the few operations that
// BullMQ doesn't offer for both. All else is done by BullMQ.
import type { BackendFactory, IQueueBackend } from 'bullmq'
import type { JobState, ListedJob, Notice, NoticeName } from './engine.ts'

/** BullMQ's connection option and backend for one engine. */
interface Access {
  connection: object
  backend?: BackendFactory<IQueueBackend, object>
}

export interface LockedJob {
  id: string
  token: string
}

export interface EngineBackend {
  engine: 'redis' | 'postgres'
  prefix: string
  /** How long an idle worker waits before it looks into the queue again, in case a wake-up was lost. */
  idleSeconds: number
  /** A connection for producers: calls fail within seconds while the server is away. */
  producer(): Access
  /** A connection for workers: on Redis, calls wait until the server is back. */
  consumer(): Access
  /** On PostgreSQL: reserves connections for one more worker; throws `ConfigError` if the pool has too few. */
  admit(): void
  dismiss(): void
  has(queue: string, id: string): Promise<boolean>
  /** Lists jobs oldest first. Only for an engine whose listing in BullMQ has another order. */
  list?(queue: string, state: JobState, start: number, end: number): Promise<ListedJob[]>
  /** The number of workers on each of these queues; undefined if this user may not see it. */
  workersOf(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined>
  /** On Redis: detaches a job from its parent, so that finishing the job changes no other job. */
  sever(queue: string, id: string): Promise<void>
  /** Removes jobs that no worker can process (damage.ts); returns how many it removed. */
  discardDamaged(queue: string): Promise<number>
  /** Removes a damaged job that a worker has fetched and can't finish; false if no damaged job has the id any more. */
  discard(queue: string, id: string): Promise<boolean>
  /**
   * Counts a stall of each job in work whose lock token begins with `prefix`, and puts it back in its queue, or returns
   * it for the caller to put back.
   */
  endLocks(queue: string, prefix: string): Promise<{ handedBack: number; counted: LockedJob[] }>
  claim(installation: string): Promise<string>
  setNotice(name: NoticeName, text: string, lifeMs: number): Promise<void>
  notice(name: NoticeName): Promise<Notice>
  ping(): Promise<void>
  /** Rejects as `ping` does, and if the server doesn't take a small write; then with its own answer, if it gives one. */
  probe(): Promise<void>
  /** Calls `listener` at each sign that a connection was lost. */
  onTrouble(listener: () => void): void
  close(): Promise<void>
}
