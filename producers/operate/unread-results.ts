// Whether a published result is still on its results queue. The result may be there alone or in a result set, whose id
// doesn't name the results in it.
import { z } from 'zod'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { deliveryId, isSetDeliveryId } from '../../src/job/envelope/ids.ts'
import type { JobState, Queues } from '../../src/queue/engine.ts'
import type { Announcement } from '../../src/store/job/outbox.ts'

const UNREAD: readonly JobState[] = ['waiting', 'active', 'delayed']
/** How many deliveries are read at once; a set has at most 64 KiB. */
const PAGE = 50

/**
 * Reads the sets on the queue, unless the result is there alone: all of them, or until the time `until` (by
 * `performance.now()`), after which the answer is `unknown`.
 */
export async function isUnread(
  { clientId, replyTo, resultId, outboxId }: Pick<Announcement, 'clientId' | 'replyTo' | 'resultId' | 'outboxId'>,
  queues: Pick<Queues, 'has' | 'list'>,
  until = Number.POSITIVE_INFINITY,
): Promise<'found' | 'missing' | 'unknown'> {
  const queue = resultsQueue(clientId, replyTo)
  if (await queues.has(queue, deliveryId(resultId, outboxId))) return 'found'
  for (const state of UNREAD) {
    const found = await findInSets({ queue, state, resultId, until }, queues)
    if (found !== 'missing') return found
  }
  return 'missing'
}

const Delivery = z.object({ body: z.string() })

async function findInSets(
  { queue, state, resultId, until }: { queue: string; state: JobState; resultId: string; until: number },
  queues: Pick<Queues, 'list'>,
): Promise<'found' | 'missing' | 'unknown'> {
  for (let start = 0; ; start += PAGE) {
    if (performance.now() > until) return 'unknown'
    const jobs = await queues.list(queue, [state], start, start + PAGE - 1)
    const sets = jobs.filter(({ id }) => isSetDeliveryId(id)).map(({ data }) => Delivery.safeParse(data).data?.body)
    if (sets.some(body => body?.includes(`"result_id":"${resultId}"`))) return 'found'
    if (jobs.length < PAGE) return 'missing'
  }
}
