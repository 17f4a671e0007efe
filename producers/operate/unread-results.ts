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

/** Reads all sets on the queue, unless the result is there alone. */
export async function isUnread(
  { clientId, replyTo, resultId, outboxId }: Announcement,
  queues: Pick<Queues, 'has' | 'list'>,
): Promise<boolean> {
  const queue = resultsQueue(clientId, replyTo)
  if (await queues.has(queue, deliveryId(resultId, outboxId))) return true
  for (const state of UNREAD) if (await isInSets({ queue, state, resultId }, queues)) return true
  return false
}

const Delivery = z.object({ body: z.string() })

async function isInSets(
  { queue, state, resultId }: { queue: string; state: JobState; resultId: string },
  queues: Pick<Queues, 'list'>,
): Promise<boolean> {
  for (let start = 0; ; start += PAGE) {
    const jobs = await queues.list(queue, [state], start, start + PAGE - 1)
    const sets = jobs.filter(({ id }) => isSetDeliveryId(id)).map(({ data }) => Delivery.safeParse(data).data?.body)
    if (sets.some(body => body?.includes(`"result_id":"${resultId}"`))) return true
    if (jobs.length < PAGE) return false
  }
}
