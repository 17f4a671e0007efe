// Takes results off a client's results queue: checks that the installation signed them for this client, hands each to
// the caller, and acknowledges it when the caller is through. Delivery is at least once; `once` passes repeats over.
import { resultsQueue } from '../src/job/catalogue.ts'
import type { InstallationKeys } from '../src/job/envelope/installation-jws.ts'
import { openResult, type Result, type ResultEvent } from '../src/job/result.ts'
import { describeError, type Logger } from '../src/log.ts'
import type { Disposition, Queues } from '../src/queue/engine.ts'

export type Delivery = Result | ResultEvent

export interface Mailbox {
  clientId: string
  replyTo?: string | undefined
  keys: InstallationKeys
}

export interface InboxOptions {
  /** Results handled at once. */
  concurrency: number
  log: Logger
  /** How long a result that nobody here waits for is offered to other processes before it is acknowledged (120,000). */
  unclaimedMs?: number
  /** Pause before a result is offered again, ms (1,000); after a failure it doubles each time, up to 5 min. */
  retryMs?: number
}

/** `unclaimed`: it isn't ours, as far as this process knows. A throw means: not handled yet, offer it again. */
export type Receive = (delivery: Delivery) => Promise<'taken' | 'unclaimed'>

export interface Inbox {
  /** Once it listens. */
  ready: Promise<void>
  /** What was acknowledged, and why. */
  counts: Readonly<Record<'taken' | 'forged' | 'unclaimed', number>>
  /** Waits for what is being handled, at most `deadlineMs`. */
  close(deadlineMs: number): Promise<void>
}

const OFFERED_MAX = 10_000
const RETRY_MS_MAX = 300_000

export function openInbox(queues: Queues, mailbox: Mailbox, receive: Receive, options: InboxOptions): Inbox {
  const { clientId, replyTo, keys } = mailbox
  const { concurrency, log, unclaimedMs = 120_000, retryMs = 1_000 } = options
  const queue = resultsQueue(clientId, replyTo)
  const counts = { taken: 0, forged: 0, unclaimed: 0 }
  // Results that were offered again: since when, how often. The oldest are forgotten, which only grants them more time.
  const offered = new Map<string, { since: number; times: number }>()

  function acknowledge(as: keyof typeof counts, resultId?: string): Disposition {
    counts[as] += 1
    if (resultId !== undefined) offered.delete(resultId)
    // One line at 1, 2, 4, 8 …: a flood of forgeries is no flood of lines.
    const isPower = (counts[as] & (counts[as] - 1)) === 0
    if (as !== 'taken' && isPower) log.warn({ queue, dropped: counts[as] }, `${as} results were dropped`)
    return { done: true }
  }
  function offerAgain(resultId: string): { since: number; times: number } {
    const { since = Date.now(), times = 0 } = offered.get(resultId) ?? {}
    remember(offered, resultId, { since, times: times + 1 }, OFFERED_MAX)
    return { since, times }
  }
  async function handle(data: unknown): Promise<Disposition> {
    const delivery = openResult(data, clientId, keys)
    if (!delivery) return acknowledge('forged')
    const id = delivery.result_id
    try {
      if ((await receive(delivery)) === 'taken') return acknowledge('taken', id)
    } catch (error) {
      log.warn({ queue, result: id, error: describeError(error) }, 'a result was not handled; it is offered again')
      const { times } = offerAgain(id)
      return { deferMs: Math.min(retryMs * 2 ** Math.min(times, 16), RETRY_MS_MAX) }
    }
    const { since } = offerAgain(id)
    return Date.now() - since >= unclaimedMs ? acknowledge('unclaimed', id) : { deferMs: retryMs }
  }
  const worker = queues.work(queue, job => handle(job.data), { concurrency })
  return { ready: worker.ready, counts, close: deadlineMs => worker.close(deadlineMs) }
}

const SEEN_MAX = 50_000

/**
 * `callback` for each result once: a `result_id` that was handled, or a lower revision of its receipt, is passed over.
 * The last 50,000 receipts are remembered; beyond them, and after a restart, the callback sees repeats.
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

/** A result's id follows from receipt and revision; an event stands for itself. */
function nameOf(delivery: Delivery): { subject: string; revision: number } {
  return delivery.type === 'event'
    ? { subject: delivery.result_id, revision: 0 }
    : { subject: delivery.receipt_id, revision: delivery.revision }
}

/** Keeps the `max` entries that were set last. */
function remember<T>(map: Map<string, T>, key: string, value: T, max: number): void {
  map.delete(key)
  map.set(key, value)
  const [oldest] = map.keys()
  if (map.size > max && oldest !== undefined) map.delete(oldest)
}
