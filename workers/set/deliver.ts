// Signs results and puts them on results queues. Those that are published at the same time go to their queue by one call;
// if its readers read result sets, they go in few deliveries, each under one signature. Whether a queue has room is checked
// before (workers/line/announce.ts).
import { RESULT_SET, sealResultSet } from '../../src/job/answer/result-set.ts'
import { deliveryId, setDeliveryId } from '../../src/job/envelope/ids.ts'
import { type ResultData, type Signing, sealResult } from '../../src/job/result.ts'
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
  /** Every reader of the queue reads result sets; the sender said so in the job's envelope. */
  inSets?: boolean | undefined
}

export interface Outgoing {
  queue: string
  message: Message
}

export interface Delivered {
  /** How many results the delivery holds in which this one went. */
  results: number
  /** Whether this one is the first of them. */
  isFirst: boolean
}

/** The job that brings one or several results to their reader. */
interface Delivery extends Put {
  outgoing: readonly Outgoing[]
}

const BOUNDS = { max: RESULT_SET.resultsMax, lanes: 2 } as const
const ALONE: Delivered = { results: 1, isFirst: true }

/** Resolves once the result is on its queue. */
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
  const singles = all.filter(({ message }) => !message.inSets).map(one => [one])
  const inSets = all.filter(({ message }) => message.inSets)
  const sets = [...Map.groupBy(inSets, ({ queue }) => queue).values()].flatMap(cut)
  return [...singles, ...sets].map(outgoing => deliveryOf(outgoing, signing))
}

/** Cuts the results for one queue into sets within the limits. */
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

// The id comes from the outbox row. If it came from the result, the queue would drop a repeated delivery while the first
// one is still on it.
function singleJob(message: Message, signing: Signing): QueuedJob {
  const { resultId, outboxId, sealed: data = seal(message, signing) } = message
  return { id: deliveryId(resultId, outboxId), data, redeliver: true }
}

/** Signs one result for a delivery of its own. */
export function seal({ clientId, resultId, revision, body }: Message, { key, newKeys }: Signing): ResultData {
  return sealResult(body, { clientId, resultId, revision }, key, newKeys)
}
