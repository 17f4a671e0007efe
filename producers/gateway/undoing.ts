// What is done about an operation whose time is over: a reversal of its very envelope is queued, and tried again until
// the queue has it or the process ends. From then on the reversal wins: an answer that still comes is not told. It
// doesn't undo anything itself.
import { createHash } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import { assert, isRefusal } from '../../src/errors.ts'
import { receiptId as receiptIdOf } from '../../src/job/ids.ts'
import type { ReversalStatus } from '../../src/job/problem.ts'
import type { Result } from '../../src/job/result.ts'
import type { Logger } from '../../src/log.ts'
import type { Queues } from '../../src/queue/engine.ts'
import type { Signed } from '../envelope.ts'
import type { Caller } from './deps.ts'
import type { Desk } from './desk.ts'
import type { Operation } from './operation.ts'

export interface Undoing {
  /**
   * `REQUIRED`: an effect may have been made; its reversal is queued, or will be as soon as the queue takes it. `NONE`: the
   * job never left this process, so there is nothing to undo.
   */
  undo(caller: Caller, operation: Operation, requestDigest: string): Promise<ReversalStatus>
  /** A reversal's result was found. */
  settle(result: Result): void
  /** Whether this receipt's operation was given up here with another request. */
  isOther(receiptId: string, requestDigest: string): boolean
  /** False if the reversal of an operation that was given up here under this receipt isn't through by `deadline` (ms). */
  through(receiptId: string, deadline: number): Promise<boolean>
  /** Reversals that the queue hasn't taken yet. */
  owed(): number
  close(): void
}

export interface UndoingDeps {
  queues: Queues
  clock: Clock
  log: Logger
  sign: Desk['sign']
}

interface GivenUp {
  requestDigest: string
  through: PromiseWithResolvers<true>
}

/** A reversal is owed however long the workers stay away: as long as an envelope may live. */
const LIFETIME_MS = 7 * 86_400_000
/** How long the caller waits for the queue to take the reversal. */
const PATIENCE_MS = 3_000
const RETRY_MS = 500
const GIVEN_UP_MAX = 10_000

export function openUndoing({ queues, clock, log, sign }: UndoingDeps): Undoing {
  // By receipt; the oldest are forgotten, which only makes a repeat of theirs less sure of the final state.
  const givenUp = new Map<string, GivenUp>()
  const byReversal = new Map<string, string>()
  const owed = new Set<string>()
  let closed = false

  async function queue(receiptId: string, signed: Signed): Promise<void> {
    for (let time = 0; !closed; time += 1) {
      try {
        await queues.add('reversal', { id: signed.id, data: signed.data, priority: 0 })
        return
      } catch (error) {
        // One line at 1, 2, 4, 8 …
        if ((time & (time + 1)) === 0)
          log.warn({ receipt: receiptId, err: error }, 'a reversal could not be queued; it will be')
        await pause(RETRY_MS)
      }
    }
    log.error({ receipt: receiptId }, 'a reversal was not queued before the end of the process')
  }
  function note(receiptId: string, reversalId: string, requestDigest: string): void {
    const [oldest] = givenUp.keys()
    if (givenUp.size >= GIVEN_UP_MAX && oldest !== undefined) givenUp.delete(oldest)
    const [eldest] = byReversal.keys()
    if (byReversal.size >= GIVEN_UP_MAX && eldest !== undefined) byReversal.delete(eldest)
    givenUp.set(receiptId, { requestDigest, through: Promise.withResolvers<true>() })
    byReversal.set(reversalId, receiptId)
  }

  return {
    async undo(caller, { receiptId, envelopeDigest, wasOffered }, requestDigest) {
      if (!wasOffered()) return 'NONE'
      const envelope = envelopeDigest.toString('base64url')
      const jti = reversalJti(receiptId, envelope)
      const request = { receipt_id: receiptId, envelope }
      const signed = await sign(caller, 'reversal', request, { jti, expiresInMs: LIFETIME_MS })
      assert(!isRefusal(signed), 'a reversal has its form')
      note(receiptId, receiptIdOf(caller.client.clientId, jti), requestDigest)
      owed.add(receiptId)
      const queued = queue(receiptId, signed).finally(() => owed.delete(receiptId))
      await Promise.race([queued, pause(PATIENCE_MS)])
      return 'REQUIRED'
    },
    settle({ receipt_id }) {
      const receiptId = byReversal.get(receipt_id)
      if (receiptId === undefined) return
      byReversal.delete(receipt_id)
      givenUp.get(receiptId)?.through.resolve(true)
    },
    isOther: (receiptId, requestDigest) => {
      const known = givenUp.get(receiptId)
      return known !== undefined && known.requestDigest !== requestDigest
    },
    async through(receiptId, deadline) {
      const known = givenUp.get(receiptId)
      if (!known) return true
      const late = new AbortController()
      const left = pause(Math.max(0, deadline - clock()), late.signal).then(() => false)
      return Promise.race([known.through.promise, left]).finally(() => late.abort())
    },
    owed: () => owed.size,
    close: () => {
      closed = true
    },
  }
}

/** The same for the same envelope, so that a reversal that is queued twice is one. */
export function reversalJti(receiptId: string, envelope: string): string {
  return `reversal-${createHash('sha256').update(`${receiptId}\n${envelope}`).digest('base64url')}`
}

function pause(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, ms)
    signal?.addEventListener('abort', () => {
      clearTimeout(timer)
      resolve()
    })
  })
}
