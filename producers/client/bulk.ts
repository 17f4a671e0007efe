// Sends many asks, a bounded number of them in flight, and yields their results in the order in which they arrive. The
// function `post` sends an ask; it is called again while the queue server is away.
import { randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../src/errors.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { receiptId, resultId } from '../../src/job/envelope/ids.ts'
import type { NameRule } from '../../src/job/envelope/names.ts'
import { clearNumbersOf, withoutOwnPan } from '../../src/job/pan-in-names.ts'
import { ClosedError, RefusedError } from './errors.ts'
import type { Answered, BulkItem, BulkOptions } from './interface.ts'
import { openSemaphore } from './semaphore.ts'

export interface Posted {
  answer: Promise<Result>
  /** Ends the wait for the answer, and no longer sends the job again. */
  forget(): void
}

/**
 * Sends an item. Rejects with `RefusedError` if the item is refused, with `Fault('queue_away')` if it couldn't be sent.
 */
export type Post = (item: BulkItem & { jti: string; priority: number }) => Promise<Posted>

const SENDERS_MAX = 32
const RETRY_MS = 100
const RETRY_MS_MAX = 10_000

export interface BulkDeps {
  clientId: string
  names: NameRule
  post: Post
  /** Aborted when the client closes. */
  closed: AbortSignal
}

/**
 * Sends all items and yields each with its result. An item that is refused here also has a result: FAILED, with
 * `attempt` 0. If the source throws, the error is thrown after the results of all sent items.
 */
export async function* bulk<T extends BulkItem>(
  { clientId, names, post, closed }: BulkDeps,
  items: AsyncIterable<T> | Iterable<T>,
  options: BulkOptions = {},
): AsyncGenerator<Answered<T>, void, void> {
  const { inFlight = 1_000, priority = 10 } = options
  const inFlightLimit = openSemaphore(inFlight)
  const stop = new AbortController()
  const stopped = AbortSignal.any([stop.signal, closed])
  const results: Answered<T>[] = []
  const unanswered = new Set<Posted>()
  const source = Symbol.asyncIterator in items ? items[Symbol.asyncIterator]() : items[Symbol.iterator]()
  let pulling: Promise<unknown> = Promise.resolve()
  let exhausted = false
  let failure: { error: unknown } | undefined
  let wake = Promise.withResolvers<void>()

  function wakeUp(): void {
    wake.resolve()
    wake = Promise.withResolvers<void>()
  }
  function fail(error: unknown): void {
    failure ??= { error }
    wakeUp()
  }
  // `next` is called again only after it has answered: not every iterator takes two calls at once.
  async function pull(): Promise<T | undefined> {
    const next = pulling.then(async () => {
      if (exhausted) return undefined
      const { done, value } = await source.next()
      exhausted = done === true
      return exhausted ? undefined : (value as T)
    })
    pulling = next.catch(() => {
      exhausted = true
    })
    return next
  }
  async function send(item: T): Promise<void> {
    const jti = item.jti ?? randomUUID()
    try {
      const posted = await untilSent(() => post({ ...item, jti, priority }), stopped)
      unanswered.add(posted)
      posted.answer.then(
        result => {
          unanswered.delete(posted)
          results.push({ item, result })
          wakeUp()
        },
        error => {
          // The caller gets nothing for this item, so its permit is released here.
          unanswered.delete(posted)
          inFlightLimit.release()
          fail(error)
        },
      )
    } catch (error) {
      if (!(error instanceof RefusedError)) throw error
      results.push({ item, result: notSent({ clientId, names }, { ...item, jti }, error) })
      wakeUp()
    }
  }
  async function sender(): Promise<void> {
    while (!exhausted && !failure && !stopped.aborted) {
      await inFlightLimit.acquire()
      const item = failure ? undefined : await pull()
      if (item === undefined) return inFlightLimit.release()
      await send(item)
    }
  }

  const onStopped = () => {
    inFlightLimit.close()
    wakeUp()
  }
  stopped.addEventListener('abort', onStopped)
  let sending = true
  const senders = Array.from({ length: Math.min(SENDERS_MAX, inFlight) }, () =>
    sender().catch(error => {
      if (!stopped.aborted) fail(error)
    }),
  )
  const ended = Promise.all(senders).then(() => {
    sending = false
    wakeUp()
  })
  try {
    for (;;) {
      const more = wake.promise
      for (let answered = results.shift(); answered; answered = results.shift()) {
        yield answered
        inFlightLimit.release()
      }
      if (closed.aborted) throw new ClosedError()
      if (!sending && unanswered.size === 0 && results.length === 0) break
      if (results.length === 0) await more
    }
    if (failure) throw failure.error
  } finally {
    stop.abort()
    // The source may be waiting for its next item. A caller that leaves the loop early waits for the source, as `for
    // await` does; `close` doesn't wait.
    if (!closed.aborted) await ended
    for (const posted of unanswered) posted.forget()
    const returned = exhausted ? undefined : source.return?.()
    if (!closed.aborted) await returned
  }
}

/**
 * Calls `post` again while the queue is away, with increasing pauses. Rejects with `Fault('queue_away')` once `stopped`
 * is aborted.
 */
export async function untilSent<T>(post: () => Promise<T>, stopped: AbortSignal): Promise<T> {
  for (let times = 0; ; times += 1) {
    try {
      return await post()
    } catch (error) {
      if (!(error instanceof Fault) || error.code !== 'queue_away' || stopped.aborted) throw error
      const delayMs = Math.min(RETRY_MS * 2 ** Math.min(times, 16), RETRY_MS_MAX)
      await pause(delayMs * (0.5 + Math.random() / 2), undefined, { signal: stopped }).catch(() => {
        throw error
      })
    }
  }
}

/** A refusal by this client in the form of a result. It has no signature. */
function notSent(
  { clientId, names }: Pick<BulkDeps, 'clientId' | 'names'>,
  item: BulkItem & { jti: string },
  { problem }: RefusedError,
): Result {
  const receipt = receiptId(clientId, item.jti)
  const { jti, reference } = withoutOwnPan(item, clearNumbersOf(item.request), names)
  const now = new Date(problem.timestamp).toISOString()
  return {
    v: 1,
    type: 'result',
    result_id: resultId(receipt, 0),
    receipt_id: receipt,
    revision: 0,
    kind: item.kind,
    jti,
    ...(reference !== undefined && { reference }),
    status: 'FAILED',
    code: problem.code,
    error: problem,
    attempt: 0,
    accepted_at: now,
    completed_at: now,
  }
}
