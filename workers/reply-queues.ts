// Reply queues that nobody uses any more: they are removed, so that a client doesn't run out of places. Their results stay
// in the store, and aren't published unless `results replay` asks for them.
import { resultsQueue } from '../src/job/catalogue.ts'
import { isSystemClient } from '../src/job/system-clients.ts'
import type { Queues } from '../src/queue/engine.ts'
import * as outbox from '../src/store/job/outbox.ts'
import * as replyQueues from '../src/store/job/reply-queues.ts'
import type { Store } from '../src/store/pool.ts'

interface ReplyQueueDeps {
  store: Store
  queues: Queues
}

const MINUTE_MS = 60_000
const PAGE = 5_000
const UNREAD_MS_MAX = 7 * 24 * 60 * MINUTE_MS

/**
 * For a client that has as many reply queues as permitted: removes the empty ones, and those of a system client whose
 * process is gone.
 */
export async function removeEmpty({ store, queues }: ReplyQueueDeps, clientId: string, now: number): Promise<void> {
  for (const { replyTo, createdAt } of await replyQueues.list(store, clientId)) {
    // A newer queue may be about to get its first result.
    if (createdAt > now - MINUTE_MS) continue
    const queue = resultsQueue(clientId, replyTo)
    const { waiting, active, delayed } = await queues.depth(queue)
    const isEmpty = waiting + active + delayed === 0
    if (!isEmpty && !(await isOrphaned(queues, clientId, queue))) continue
    if (!isEmpty) await empty({ store, queues }, clientId, replyTo)
    await replyQueues.remove(store, clientId, replyTo)
  }
}

/**
 * Removes queues whose results nobody has acknowledged for seven days, and queues of system clients whose process is
 * gone. Returns the removed queues.
 */
export async function removeUnread({ store, queues }: ReplyQueueDeps): Promise<string[]> {
  const removed: string[] = []
  for (const { clientId, replyTo } of await replyQueues.list(store)) {
    const queue = resultsQueue(clientId, replyTo)
    const isUnread = ((await queues.oldestMs(queue)) ?? 0) >= UNREAD_MS_MAX
    if (!isUnread && !(await isOrphaned(queues, clientId, queue))) continue
    await empty({ store, queues }, clientId, replyTo)
    await replyQueues.remove(store, clientId, replyTo)
    removed.push(queue)
  }
  return removed
}

/** Removes the results on a queue. Those that wait in the store for room there would fill it again. */
async function empty({ store, queues }: ReplyQueueDeps, clientId: string, replyTo: string): Promise<void> {
  while ((await outbox.giveUp(store, clientId, replyTo, PAGE)) === PAGE);
  await queues.obliterate(resultsQueue(clientId, replyTo))
}

/**
 * Whether a system client's reply queue is left behind: one process reads each such queue at once, so a queue with
 * results and without a listener has lost its process.
 */
async function isOrphaned(queues: Queues, clientId: string, queue: string): Promise<boolean> {
  if (!isSystemClient(clientId)) return false
  const oldest = await queues.oldestMs(queue)
  return oldest !== undefined && oldest >= MINUTE_MS && (await queues.workersOf(queue)) === 0
}
