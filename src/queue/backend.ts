// What differs between the two engines, and nothing else: how to reach the server, and the few questions that
// BullMQ has no portable word for. It isn't an abstraction of queues; that is BullMQ's.
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
  /** How long an idle worker waits before it looks by itself, in case a wake-up was lost. */
  idleSeconds: number
  /** Fails soon when the server is away. */
  producer(): Access
  /** Waits for the server to come back. */
  consumer(): Access
  /** Counts a worker against the connections there are; throws `ConfigError` if they don't suffice. */
  admit(): void
  dismiss(): void
  has(queue: string, id: string): Promise<boolean>
  /** Oldest first, where BullMQ's own listing isn't. */
  list?(queue: string, state: JobState, start: number, end: number): Promise<ListedJob[]>
  workersOf(queue: string): Promise<number | undefined>
  /** Cuts a job off from a parent, so that finishing it touches nothing but itself. */
  sever(queue: string, id: string): Promise<void>
  /** Takes jobs off that can be worked by nobody (damage.ts); answers how many. */
  discardDamaged(queue: string): Promise<number>
  /** Takes this job off, whatever state it is in; false if it isn't there. */
  discard(queue: string, id: string): Promise<boolean>
  claim(installation: string): Promise<string>
  setNotice(name: NoticeName, text: string, lifeMs: number): Promise<void>
  notice(name: NoticeName): Promise<Notice>
  ping(): Promise<void>
  /** Called at each sign that a connection was lost. */
  onTrouble(listener: () => void): void
  close(): Promise<void>
}
