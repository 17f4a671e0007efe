// Puts stored chunks on their queue, a bounded number of them unanswered at a time, and records their answers. Every
// gateway runs a feeder, but the store lets only one feeder at a time take chunks, so that the limits hold for all
// gateways together. After a crash the chunks become due again; a chunk that is sent twice takes effect once.
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../../src/errors.ts'
import { type AnyResult, readResult } from '../../../src/job/answer/result.ts'
import { count } from '../../../src/job/chunk-outcomes.ts'
import { problemCodeOf } from '../../../src/job/problem.ts'
import { describeError } from '../../../src/logger.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as chunks from '../../../src/store/batch/intake-chunks.ts'
import { LostRace } from '../../../src/store/pool.ts'
import type { GatewayDeps } from '../deps.ts'

export interface Feeder {
  /** Feeds now instead of at the next interval, because something has changed. */
  wake(): void
  close(): Promise<void>
}

export interface FeederOptions {
  inFlight: chunks.InFlight
  /** A chunk without an answer is sent again after this many ms. */
  resendMs: number
}

export const IN_FLIGHT: chunks.InFlight = { ofOneMax: 16, ofClientMax: 32, max: 64 }

const BUSY_MS = 250
const IDLE_MS = 1_000
/** The number of chunks in memory at once, at most 5 MiB each. */
const TAKE_MAX = 8
const ANSWERS_MAX = 64
/** A job that started just before its deadline may end this much later. */
const GRACE_MS = 60_000
const AWAY_MS = 1_000

export function openFeeder(
  { store, queues, clock, log }: Pick<GatewayDeps, 'store' | 'queues' | 'clock' | 'log'>,
  { inFlight, resendMs }: FeederOptions,
): Feeder {
  const closed = new AbortController()
  let woken = Promise.withResolvers<void>()

  /** Queues the chunks in order, and stops at the first one that can't be queued. */
  async function send(envelopes: readonly chunks.Envelope[]): Promise<void> {
    for (const [index, envelope] of envelopes.entries()) {
      try {
        const { jobId: id, jws, block } = envelope
        await queues.add('token-batch', { id, data: { jws, block } })
      } catch (error) {
        for (const left of envelopes.slice(index)) await chunks.postpone(store, left, clock() + AWAY_MS)
        throw error
      }
    }
  }
  async function recordAnswers(): Promise<void> {
    await chunks.settleByReceipt(store)
    for (const { intakeNo, chunk, records, body } of await chunks.findTold(store, ANSWERS_MAX)) {
      await chunks.settleTold(store, intakeNo, chunk, endByBody(body, records))
    }
  }
  /**
   * How a chunk ends by its answer. An answer that can't be read ends the chunk, which would otherwise be found at each
   * pass.
   */
  function endByBody(body: string, records: number): chunks.Settled {
    try {
      return endOf(readResult(body), records)
    } catch (error) {
      log.error({ error: describeError(error) }, 'the answer to a chunk could not be read; its records count as FAILED')
      return { state: 'REFUSED', counts: { FAILED: records }, code: 500, reason: 'internal' }
    }
  }
  /** Feeds once. Returns whether any chunk is unanswered. */
  async function feed(): Promise<boolean> {
    await recordAnswers()
    const times = () => ({ now: clock(), dueAt: clock() + resendMs })
    for (;;) {
      const taken = await store.transaction(db => chunks.take(db, inFlight, times(), TAKE_MAX))
      await send(taken)
      if (taken.length < TAKE_MAX || closed.signal.aborted) break
    }
    await send(await chunks.takeAgain(store, times(), TAKE_MAX))
    for (const intakeNo of await intake.findExpired(store, clock() - GRACE_MS))
      await chunks.end(store, intakeNo, 'EXPIRED')
    return chunks.isAnySent(store)
  }
  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      const { promise } = woken
      let ms = IDLE_MS
      try {
        if (await feed()) ms = BUSY_MS
      } catch (error) {
        const expected = error instanceof LostRace || (error instanceof Fault && error.code !== 'defect')
        log[expected ? 'debug' : 'error']({ error: describeError(error) }, 'chunks could not be fed; they will be')
      }
      await Promise.race([promise, pause(ms, undefined, { signal: closed.signal }).catch(() => {})])
    }
  }
  const running = run()
  return {
    wake() {
      woken.resolve()
      woken = Promise.withResolvers<void>()
    },
    async close() {
      closed.abort()
      await running
    },
  }
}

/**
 * The end of a chunk whose answer has no receipt: the outcomes of a dry run, or the reason why no record was worked.
 */
function endOf(result: AnyResult, records: number): chunks.Settled {
  if (result.records) return { state: 'DONE', counts: count(result.records), code: result.code, reason: null }
  const code = problemCodeOf(result.code)
  const reason = result.error?.fields[0]?.reason ?? 'internal'
  return { state: 'REFUSED', counts: code === 500 ? { FAILED: records } : { REJECTED: records }, code, reason }
}
