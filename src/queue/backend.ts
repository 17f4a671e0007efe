// The differences between the two engines: how to reach the server, and the few operations that BullMQ doesn't offer
// for both. It is no abstraction of queues; BullMQ is.
import type { BackendFactory, IQueueBackend } from 'bullmq'
import type { JobState, ListedJob, Notice, NoticeName } from './engine.ts'

/** BullMQ's connection option and its backend, of either engine. */
interface Access {
  connection: object
  backend?: BackendFactory<IQueueBackend, object>
}

export interface EngineBackend {
  engine: 'redis' | 'postgres'
  prefix: string
  /** How long an idle worker waits before it checks the queue by itself, in case a wake-up was lost. */
  idleSeconds: number
  /** Fails soon when the server is away. */
  producer(): Access
  /** Waits for the server to come back. */
  consumer(): Access
  /** Counts a worker against the available connections; throws `ConfigError` if they don't suffice. */
  admit(): void
  dismiss(): void
  has(queue: string, id: string): Promise<boolean>
  /** Oldest first, for an engine where BullMQ's own listing isn't. */
  list?(queue: string, state: JobState, start: number, end: number): Promise<ListedJob[]>
  /** Of each of these queues, by one question to the server; undefined where this user may not see it. */
  workersOf(queues: readonly string[]): Promise<ReadonlyMap<string, number> | undefined>
  /** Detaches a job from a parent, so that finishing the job changes nothing else. */
  sever(queue: string, id: string): Promise<void>
  /** Removes jobs that no worker can process (damage.ts); returns how many. */
  discardDamaged(queue: string): Promise<number>
  /** Removes this job in any state; false if there is none. */
  discard(queue: string, id: string): Promise<boolean>
  claim(installation: string): Promise<string>
  setNotice(name: NoticeName, text: string, lifeMs: number): Promise<void>
  notice(name: NoticeName): Promise<Notice>
  ping(): Promise<void>
  /** Called at each sign that a connection was lost. */
  onTrouble(listener: () => void): void
  close(): Promise<void>
}
