// Takes results off a client's results queue: checks that the installation signed each delivery for this client, passes
// its results to the caller, and acknowledges the delivery when the caller has handled all of them. Delivery is at least
// once; `once` skips repeats.

import { type OpenedDelivery, openDelivery } from '../src/job/answer/result-set.ts'
import { resultsQueue } from '../src/job/catalogue.ts'
import type { InstallationKeys } from '../src/job/envelope/installation-jws.ts'
import { isQueueEvent } from '../src/job/event.ts'
import { describeError, type Logger } from '../src/logger.ts'
import type { Disposition, Queues, ReceivedJob } from '../src/queue/engine.ts'
import type { Acknowledged, Delivery } from './client/interface.ts'
import { openSemaphore } from './client/semaphore.ts'

/** The installation's keys that a reader trusts, and a function that finds newer ones. */
export interface TrustedKeys {
  keys: InstallationKeys
  /** Called for a result that carries statements of newer keys, or whose key isn't among `keys`. */
  renew?: (newKeys: readonly string[]) => Promise<void>
}

export interface Mailbox extends TrustedKeys {
  clientId: string
  replyTo?: string | undefined
}

export interface InboxOptions {
  /** Number of results handled at once. */
  concurrency: number
  log: Logger
  /**
   * A result that no job here waits for is offered to other processes for this many ms before it is acknowledged
   * (120,000).
   */
  unclaimedMs?: number
  /** The pause before a result is offered again, in ms (1,000); it doubles with each failure, up to 5 min. */
  retryMs?: number
  /** A result by an unknown key is offered again for this many ms (24 h); then it goes into the queue's failed set. */
  unprovedMs?: number
  /** Called once with one line, if a result by an unknown key comes. */
  tell?: ((line: string) => void) | undefined
}

export const NOTHING_ACKNOWLEDGED: Readonly<Record<Acknowledged, number>> = {
  taken: 0,
  forged: 0,
  unclaimed: 0,
  unknown: 0,
  unproved: 0,
}

/**
 * Handles a delivery. Returns `unclaimed` if no job of this process waits for it. If it throws, the delivery is offered
 * again.
 */
export type Receive = (delivery: Delivery) => Promise<'taken' | 'unclaimed'>

export interface Inbox {
  /** Resolves when the queue is being read. */
  ready: Promise<void>
  /** The number of acknowledged results, by reason. A forged delivery counts as one. */
  counts: Readonly<Record<Acknowledged, number>>
  /** Waits for results that are being handled, at most `deadlineMs`. */
  close(deadlineMs: number): Promise<void>
}

const OFFERED_MAX = 10_000
const RETRY_MS_MAX = 300_000
/**
 * How long a result by an unknown key is delayed, in ms, from when it came or its reader began. `results replay` can publish
 * a result again for seven days.
 */
const UNPROVED_MS = 86_400_000
/** However often its reader begins anew, it is delayed for so many times that, while it can still be published again. */
const UNPROVED_DAYS_MAX = 6
const UNKNOWN_KEY =
  'results are signed by a key that the client file does not have; they stay on the queue for 24 hours. Get a new client file from the operator if this goes on'

export function openInbox(queues: Queues, mailbox: Mailbox, receive: Receive, options: InboxOptions): Inbox {
  const { clientId, replyTo, keys, renew = async () => {} } = mailbox
  const { concurrency, log, unclaimedMs = 120_000, retryMs = 1_000, unprovedMs = UNPROVED_MS, tell } = options
  const queue = resultsQueue(clientId, replyTo)
  const counts = { ...NOTHING_ACKNOWLEDGED }
  // Results that were offered again: since when and how often. Removing the oldest entries only gives those results
  // more time.
  const offered = new Map<string, { since: number; times: number }>()

  const atOnce = openSemaphore(concurrency)
  let putBack = 0
  const began = Date.now()

  /** Counts results that end here. */
  function count(as: Acknowledged): void {
    counts[as] += 1
    // Logs at the counts 1, 2, 4, 8, …, so that many forgeries don't make many lines.
    const isPower = (counts[as] & (counts[as] - 1)) === 0
    if (as === 'unproved' && isPower) log.warn({ queue, results: counts[as] }, 'unproved results are in the failed set')
    else if (as !== 'taken' && isPower) log.warn({ queue, dropped: counts[as] }, `${as} results were dropped`)
  }
  function offerAgain(id: string): { since: number; times: number } {
    const { since = Date.now(), times = 0 } = offered.get(id) ?? {}
    remember(offered, id, { since, times: times + 1 }, OFFERED_MAX)
    return { since, times }
  }
  const pauseMs = (times: number) => Math.min(retryMs * 2 ** Math.min(times, 16), RETRY_MS_MAX)

  async function open(data: unknown): Promise<OpenedDelivery> {
    const opened = openDelivery(data, clientId, keys)
    if (opened.refused === 'forged' || (!opened.refused && opened.newKeys.length === 0)) return opened
    await renew(opened.newKeys).catch(error => {
      log.warn({ queue, error: describeError(error) }, 'the keys of the installation could not be read')
    })
    return opened.refused ? openDelivery(data, clientId, keys) : opened
  }
  /** The result may be genuine: its key may become known. Anybody who may write to the queue can forge such a result. */
  function awaitKey({ id, enqueuedAt }: ReceivedJob): Disposition {
    const { since, times } = offerAgain(`job ${id}`)
    if (times === 0) {
      putBack += 1
      if (putBack === 1) tell?.(UNKNOWN_KEY)
      if ((putBack & (putBack - 1)) === 0) log.warn({ queue, results: putBack }, UNKNOWN_KEY)
    }
    const now = Date.now()
    // A result of before this process began may have had no reader, so it waits as long as a new one.
    const waitedMs = now - Math.min(since, Math.max(enqueuedAt, began))
    if (waitedMs >= unprovedMs || now - enqueuedAt >= UNPROVED_DAYS_MAX * unprovedMs) {
      offered.delete(`job ${id}`)
      count('unproved')
      return { failed: true, code: 'unknown_key', keep: true }
    }
    return { deferMs: pauseMs(times) }
  }
  /** Passes one result to the caller. The result says how it ends, or when it is offered again. */
  async function take(delivery: Delivery): Promise<{ as: Acknowledged } | { deferMs: number }> {
    const id = delivery.result_id
    if (!isKnown(delivery)) return { as: 'unknown' }
    await atOnce.acquire()
    try {
      if ((await receive(delivery)) === 'taken') return { as: 'taken' }
    } catch (error) {
      log.warn({ queue, result: id, error: describeError(error) }, 'a result was not handled; it is offered again')
      const { times } = offerAgain(id)
      return { deferMs: pauseMs(times) }
    } finally {
      atOnce.release()
    }
    const { since } = offerAgain(id)
    return Date.now() - since >= unclaimedMs ? { as: 'unclaimed' } : { deferMs: retryMs }
  }
  async function handle(job: ReceivedJob): Promise<Disposition> {
    const opened = await open(job.data)
    if (opened.refused === 'unknown_key') return awaitKey(job)
    if (opened.refused === 'forged') {
      count('forged')
      return { done: true }
    }
    const ends = await Promise.all(opened.results.map(take))
    // The whole delivery is offered again, until each of its results has ended.
    const pauses = ends.flatMap(end => ('deferMs' in end ? [end.deferMs] : []))
    if (pauses.length > 0) return { deferMs: Math.max(...pauses) }
    for (const { result_id: id } of opened.results) offered.delete(id)
    for (const end of ends) if ('as' in end) count(end.as)
    return { done: true }
  }
  const worker = queues.work(queue, handle, { concurrency })
  return { ready: worker.ready, counts, close: deadlineMs => worker.close(deadlineMs) }
}

/** Whether the type of the delivery is known here. */
function isKnown(delivery: Delivery): boolean {
  return delivery.type === 'result' || (delivery.type === 'event' && isQueueEvent(delivery.event))
}

const SEEN_MAX = 50_000

/**
 * Calls `callback` once per result: skips a `result_id` that was handled, and a revision lower than a handled one. It
 * remembers the last 50,000 receipts; beyond them, and after a restart, `callback` sees repeats.
 */
export function once(callback: (delivery: Delivery) => Promise<void> | void): (delivery: Delivery) => Promise<void> {
  const handled = new Map<string, number>()
  const running = new Map<string, Promise<void>>()
  return async delivery => {
    const { subject, revision } = nameOf(delivery)
    const known = handled.get(subject)
    if (known !== undefined && revision <= known) return
    const id = delivery.result_id
    const current = running.get(id) ?? Promise.resolve(delivery).then(callback)
    running.set(id, current)
    try {
      await current
    } finally {
      running.delete(id)
    }
    remember(handled, subject, Math.max(revision, handled.get(subject) ?? revision), SEEN_MAX)
  }
}

/** The subject and revision of a delivery: for a result its receipt, for an event the event itself. */
function nameOf(delivery: Delivery): { subject: string; revision: number } {
  return delivery.type === 'event'
    ? { subject: delivery.result_id, revision: 0 }
    : { subject: delivery.receipt_id, revision: delivery.revision }
}

/** Sets a value and removes the oldest entries beyond `max`. */
function remember<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > max && oldest !== undefined) map.delete(oldest)
}
