// Deals with an operation whose deadline has passed: gives up its envelope by a reversal, which it queues, and stores for the
// sweeper, which queues it again if the queue lost it. After that an answer that still arrives is ignored. The worker undoes
// the effect, unless another envelope has asked for it.
import { createHash } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import type { Clock } from '../../../src/clock.ts'
import { assert, isRefusal } from '../../../src/errors.ts'
import { isAnswerTo, type Result, type SentJob } from '../../../src/job/answer/result.ts'
import { envelopeDigest } from '../../../src/job/envelope/digest.ts'
import { receiptId as receiptIdOf, refusalResultId } from '../../../src/job/envelope/ids.ts'
import { REVERSAL_STATUSES, type ReversalStatus } from '../../../src/job/problem.ts'
import { describeError, type Logger } from '../../../src/logger.ts'
import { settlesWithin } from '../../../src/queue/bounded-call.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { levelOfFailure } from '../../../src/server-error.ts'
import * as operations from '../../../src/store/job/operations.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { Signed } from '../../envelope.ts'
import type { Operation } from '../../http/operation.ts'
import type { Caller } from '../app.ts'
import type { Sign } from './sign.ts'

export interface TimeoutReversals {
  /**
   * Reverses an operation. Returns `REQUIRED` if the operation may have had an effect: its reversal is queued or
   * stored, or will be soon. If the job never left this process there is nothing to undo: returns `NONE`, or how the
   * reversal of an earlier operation with this receipt ended.
   */
  reverse(caller: Caller, operation: Operation, requestDigest: string): Promise<ReversalStatus>
  /** Takes a result, which may be the answer to a reversal. */
  resolve(result: Result): void
  /**
   * Waits for the reversal of an operation with this receipt that timed out here. False if it isn't done by `deadline`
   * (ms since the epoch).
   */
  awaitReversal(receiptId: string, deadline: number): Promise<boolean>
  /** How many reversals are neither queued nor stored yet. */
  pending(): number
  /** Stores the pending reversals. */
  close(): Promise<void>
}

export interface TimeoutReversalDeps {
  queues: Queues
  store: Store
  clock: Clock
  log: Logger
  sign: Sign
}

interface TimedOut {
  reversalId: string
  reversed: PromiseWithResolvers<true>
  /** `REQUIRED` until the reversal is answered, then how it ended. */
  status: ReversalStatus
  kind: string
}

/** A reversal, and the receipt of the operation that it is to undo. */
interface SentReversal extends SentJob {
  receiptId: string
}

/** The lifetime of a reversal: the longest that an envelope may have, because workers may be away for long. */
const LIFETIME_MS = 7 * 86_400_000
/** After this many ms without success on the queue the reversal is stored. */
const STORED_AFTER_MS = 1_000
/** How long the caller waits at most for the queue or the store to take the reversal, and the end of the process. */
const HANDOVER_MS_MAX = { caller: 2_000, close: 3_000 } as const
const RETRY_MS = 500
/** A reversal that is queued is stored beside that, and due for the sweeper after so long, in ms; tried so often. */
const KEPT = { dueMs: 5_000, pauseMs: 3_000, tries: 20 } as const
/** The answer to a reversal may be lost with the queue server: so often the store is asked for it, in ms. */
const ASK_MS = 2_000
const TIMED_OUT_MAX = 10_000

export function openTimeoutReversals({ queues, store, clock, log, sign }: TimeoutReversalDeps): TimeoutReversals {
  // Operations that timed out, by receipt. The oldest are removed; a repeat of a removed operation may not see its
  // final state.
  const timedOut = new Map<string, TimedOut>()
  const byReversal = new Map<string, SentReversal>()
  const pending = new Map<string, Promise<void>>()
  const keeping = new Set<Promise<void>>()
  const closing = new AbortController()

  /** Resolves once the reversal is queued or stored. It may be both: its jti makes sure that it takes effect once. */
  async function handOver(receiptId: string, add: () => Promise<void>, keep: () => Promise<void>): Promise<void> {
    const handed = new AbortController()
    const until = AbortSignal.any([handed.signal, closing.signal])
    const untilTaken = async (give: () => Promise<void>, toWhom: string) => {
      for (let time = 0; !handed.signal.aborted; time += 1) {
        try {
          await give()
          return handed.abort()
        } catch (error) {
          // Logs one line at the failures 1, 2, 4, 8, …
          if ((time & (time + 1)) === 0)
            log[levelOfFailure(error)](
              { receipt: receiptId, to: toWhom, err: error },
              'a reversal could not be handed on; it will be',
            )
          if (closing.signal.aborted) return
          await pause(RETRY_MS, undefined, { signal: until }).catch(() => {})
        }
      }
    }
    const delay = pause(STORED_AFTER_MS, undefined, { signal: until }).catch(() => {})
    const storing = delay.then(() => untilTaken(keep, 'store'))
    await Promise.race([untilTaken(add, 'queue').then(() => storing), storing])
    if (!handed.signal.aborted)
      log.error({ receipt: receiptId }, 'a reversal was neither queued nor stored before the end of the process')
  }
  /** A queue server that fails over may lose what it has acknowledged. Without success for a minute the queue has it alone. */
  async function keepBeside(receiptId: string, keep: () => Promise<void>): Promise<void> {
    for (let tries = 1; !closing.signal.aborted; tries += 1) {
      try {
        return await keep()
      } catch (error) {
        log.debug({ receipt: receiptId, error: describeError(error) }, 'a queued reversal could not be stored')
        if (tries === KEPT.tries) return
        await pause(KEPT.pauseMs, undefined, { signal: closing.signal }).catch(() => {})
      }
    }
  }
  async function learn(known: TimedOut): Promise<void> {
    const receipt = await receipts.find(store, known.reversalId).catch(() => undefined)
    if (receipt?.status === 'SUCCEEDED') end(known, { reversal_status: receipt.outcome })
  }
  function end(known: TimedOut, record: Record<string, unknown> | undefined): void {
    known.status = statusOf(record, known.kind)
    known.reversed.resolve(true)
  }
  function remember({ receiptId, kind }: Operation, reversalId: string, signed: Signed): void {
    const [oldest] = timedOut.keys()
    if (timedOut.size >= TIMED_OUT_MAX && oldest !== undefined) timedOut.delete(oldest)
    const [eldest] = byReversal.keys()
    if (byReversal.size >= TIMED_OUT_MAX && eldest !== undefined) byReversal.delete(eldest)
    timedOut.set(receiptId, {
      reversalId,
      kind,
      status: 'REQUIRED',
      reversed: Promise.withResolvers<true>(),
    })
    byReversal.set(reversalId, {
      receiptId,
      kind: 'reversal',
      answers: signed.answers,
      envelope: envelopeDigest(signed.data.jws).toString('base64url'),
    })
  }

  return {
    async reverse(caller, operation, requestDigest) {
      const { receiptId, envelopeDigest: digest, mayBeQueued } = operation
      if (!mayBeQueued()) return timedOut.get(receiptId)?.status ?? 'NONE'
      const envelope = digest.toString('base64url')
      const jti = reversalJti(receiptId, envelope)
      const signed = await sign(
        caller,
        'reversal',
        { receipt_id: receiptId, envelope },
        { jti, expiresInMs: LIFETIME_MS },
      )
      assert(!isRefusal(signed), 'a reversal has its form')
      const reversalId = receiptIdOf(caller.client.clientId, jti)
      remember(operation, reversalId, signed)
      const add = () => queues.add('reversal', { id: signed.id, data: signed.data, priority: 0 })
      let isStored = false
      const keep = async (dueInMs = 0) => {
        await storeReversal(store, caller, { signed, reversalId, requestDigest, now: clock(), dueInMs })
        isStored = true
      }
      const handed = handOver(receiptId, add, keep).finally(() => {
        pending.delete(receiptId)
        if (isStored) return
        const kept = keepBeside(receiptId, () => keep(KEPT.dueMs)).finally(() => keeping.delete(kept))
        keeping.add(kept)
      })
      pending.set(receiptId, handed)
      await settlesWithin(HANDOVER_MS_MAX.caller, handed)
      return 'REQUIRED'
    },
    resolve(result) {
      const sent = byReversal.get(result.receipt_id)
      if (sent === undefined || !isAnswerTo(result, sent)) return
      byReversal.delete(result.receipt_id)
      const known = timedOut.get(sent.receiptId)
      if (known) end(known, result.record)
    },
    async awaitReversal(receiptId, deadline) {
      const known = timedOut.get(receiptId)
      if (!known) return true
      for (;;) {
        const leftMs = deadline - clock()
        if (await settlesWithin(Math.max(0, Math.min(leftMs, ASK_MS)), known.reversed.promise)) return true
        if (leftMs <= ASK_MS) return false
        // A store that hangs is not awaited.
        void learn(known)
      }
    },
    pending: () => pending.size,
    async close() {
      closing.abort()
      await settlesWithin(HANDOVER_MS_MAX.close, Promise.all([...pending.values(), ...keeping]))
    },
  }
}

/**
 * How a reversal ended by its result's record. Without one the reversal failed: nobody knows what is left to undo. For
 * `token-lifecycle`, `COMPLETED` becomes `REQUIRED`: the job may have been a deletion, which isn't undone. A repeat of
 * the request is answered from the receipt.
 */
function statusOf(record: Record<string, unknown> | undefined, kind: string): ReversalStatus {
  const said = REVERSAL_STATUSES.find(status => status === record?.['reversal_status']) ?? 'REQUIRED'
  return said === 'COMPLETED' && kind === 'token-lifecycle' ? 'REQUIRED' : said
}

/** Stores a reversal as an operation; the sweepers queue it until it is answered. */
async function storeReversal(
  store: Store,
  { client, entityId }: Caller,
  { signed, reversalId, requestDigest, now, dueInMs }: StoredReversal,
): Promise<void> {
  const { jws } = signed.data
  // If the operation isn't new, the reversal is stored already.
  await operations.accept(store, {
    receiptId: reversalId,
    clientId: client.clientId,
    entityId,
    kind: 'reversal',
    jobId: signed.id,
    jws,
    requestDigest: Buffer.from(requestDigest, 'base64url'),
    acceptedAt: now,
    dueAt: now + dueInMs,
    refusalId: refusalResultId(reversalId, envelopeDigest(jws)),
    expiresAt: signed.expiresAt,
  })
}

interface StoredReversal {
  signed: Signed
  reversalId: string
  /** The digest of the request that is being reversed. */
  requestDigest: string
  now: number
  dueInMs: number
}

/**
 * The jti of a reversal. It is the same for the same envelope, so that a reversal that is queued twice takes effect
 * once.
 */
export function reversalJti(receiptId: string, envelope: string): string {
  return `reversal-${createHash('sha256').update(`${receiptId}\n${envelope}`).digest('base64url')}`
}
