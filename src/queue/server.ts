// What differs between the two engines, and nothing else: how to reach the server, and the few questions that
// BullMQ has no portable word for. It isn't an abstraction of queues; that is BullMQ's.
import type { BackendFactory, IQueueBackend } from 'bullmq'

/** BullMQ's connection option and its backend, of either engine. */
export interface Access {
  connection: object
  backend?: BackendFactory<IQueueBackend, object>
}

export interface Server {
  engine: 'redis' | 'postgres'
  prefix: string
  /** Fails soon when the server is away. */
  producer(): Access
  /** Waits for the server to come back. */
  consumer(): Access
  /** Counts a worker against the connections there are; throws `ConfigError` if they don't suffice. */
  admit(): void
  dismiss(): void
  has(queue: string, id: string): Promise<boolean>
  workersOf(queue: string): Promise<number | undefined>
  /** Cuts a job off from a parent, so that finishing it touches nothing but itself. */
  sever(queue: string, id: string): Promise<void>
  claim(installation: string): Promise<string>
  ping(): Promise<void>
  /** Called at each sign that a connection was lost. */
  onTrouble(listener: () => void): void
  close(): Promise<void>
}
