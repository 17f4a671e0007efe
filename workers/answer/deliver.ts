// Signs results and puts them on results queues. Results for one queue that are published at the same time go there by
// one call. Those whose senders read result sets share deliveries, of up to 100 results or 64 KiB, each under one
// signature; a result in columns always goes alone. workers/answer/announce.ts checks before whether the queue has room.

import { type ResultData, type Signing, sealResult } from '../../src/job/answer/result.ts'
import { RESULT_SET, sealResultSet } from '../../src/job/answer/result-set.ts'
import { deliveryId, setDeliveryId } from '../../src/job/envelope/ids.ts'
import type { QueuedJob, Queues } from '../../src/queue/engine.ts'
import { gather } from '../../src/queue/gather.ts'
import { type Put, putAll } from '../../src/queue/put-jobs.ts'

export interface Message {
  outboxId: number
  clientId: string
  replyTo: string | null
  resultId: string
  revision: number
  body: string
  /** Set if the result is signed already, for a delivery of its own. */
  sealed?: ResultData
  /** The job's envelope says that every reader of its results queue reads result sets. */
  inSets?: boolean | undefined
  /** The result tells of records in columns. */
  inColumns?: boolean | undefined
}

export interface Outgoing {
  queue: string
  message: Message
}

export interface Delivered {
  /** The number of results in the delivery that holds this result. */
  results: number
  /** Whether this result is the first in its delivery. */
  isFirst: boolean
}

/** The job on a results queue that holds one or several results. */
interface Delivery extends Put {
  outgoing: readonly Outgoing[]
}

const BOUNDS = { max: RESULT_SET.resultsMax, lanes: 2 } as const
const ALONE: Delivered = { results: 1, isFirst: true }

/** The returned function resolves once the result is on its queue, and rejects if the queue didn't take it. */
export function openDeliver(
  queues: Pick<Queues, 'add' | 'addBulk'>,
  signing: () => Signing,
): (outgoing: Outgoing) => Promise<Delivered> {
  return gather(
    {
      async together(all) {
        const deliveries = deliveriesOf(all, signing())
        const failures = await putAll(deliveries, queues)
        const ends = new Map<Outgoing, Delivered | Error>()
        for (const [index, { outgoing }] of deliveries.entries()) {
          const results = outgoing.length
          for (const one of outgoing) ends.set(one, failures[index] ?? { results, isFirst: one === outgoing[0] })
        }
        return all.map(one => ends.get(one) ?? ALONE)
      },
      async alone({ queue, message }) {
        await queues.add(queue, singleJob(message, signing()))
        return ALONE
      },
    },
    BOUNDS,
  )
}

function deliveriesOf(all: readonly Outgoing[], signing: Signing): Delivery[] {
  // A set would hide the form from readers that know sets, but not columns.
  const mayShare = ({ message }: Outgoing) => message.inSets && !message.inColumns
  const singles = all.filter(one => !mayShare(one)).map(one => [one])
  const inSets = all.filter(mayShare)
  const sets = [...Map.groupBy(inSets, ({ queue }) => queue).values()].flatMap(cut)
  return [...singles, ...sets].map(outgoing => deliveryOf(outgoing, signing))
}

/** Cuts the results for one queue into sets of at most `RESULT_SET.bytesMax`. A longer result goes alone. */
function cut(all: readonly Outgoing[]): Outgoing[][] {
  const sets: Outgoing[][] = []
  let bytes = Number.POSITIVE_INFINITY
  for (const one of all) {
    const own = Buffer.byteLength(one.message.body) + 1
    bytes += own
    const last = sets.at(-1)
    if (last && bytes <= RESULT_SET.bytesMax) last.push(one)
    else {
      sets.push([one])
      bytes = own
    }
  }
  return sets
}

function deliveryOf(outgoing: readonly Outgoing[], signing: Signing): Delivery {
  const [first] = outgoing as [Outgoing]
  const { queue, message } = first
  if (outgoing.length === 1) return { queue, job: singleJob(message, signing), outgoing }
  const messages = outgoing.map(one => one.message)
  const bodies = messages.map(({ body }) => body)
  const data = sealResultSet(bodies, message.clientId, signing.key, signing.newKeys)
  return {
    queue,
    job: { id: setDeliveryId(messages.map(({ outboxId }) => outboxId)), data, redeliver: true },
    outgoing,
  }
}

// The id names the outbox row, too. If it named only the result, the queue would drop a second delivery of the result
// while the first one is still on it.
function singleJob(message: Message, signing: Signing): QueuedJob {
  const { resultId, outboxId, sealed: data = seal(message, signing) } = message
  return { id: deliveryId(resultId, outboxId), data, redeliver: true }
}

/** Signs one result for a delivery of its own. */
export function seal(message: Message, { key, newKeys }: Signing): ResultData {
  return sealResult(message.body, message, key, newKeys)
}
