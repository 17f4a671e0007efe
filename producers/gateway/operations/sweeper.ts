// What makes a 202 a promise: operations without an answer are queued again until their time is over, and then marked;
// what is answered, or too old, is erased. Every gateway runs one, and takes only what no other has just taken. It also
// takes the answers to operations off the gateways' common results queue, where nobody waits for them.
import { setTimeout as pause } from 'node:timers/promises'
import { Fault } from '../../../src/errors.ts'
import { describeError } from '../../../src/log.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as chunks from '../../../src/store/batch/intake-chunks.ts'
import * as operations from '../../../src/store/job/operations.ts'
import { LostRace } from '../../../src/store/pool.ts'
import { importPublicJwk } from '../../../src/vault/client-key.ts'
import { type Delivery, openInbox } from '../../results.ts'
import type { GatewayDeps } from '../deps.ts'
import { recordAnswers } from './operations.ts'

export type SweeperDeps = Pick<
  GatewayDeps,
  'store' | 'queues' | 'signingKey' | 'settings' | 'clock' | 'metrics' | 'log'
>

export interface Sweeper {
  close(): Promise<void>
}

const SWEEP_MS = 1_000
const TAKE_MAX = 100
/** A job that was started in time may end so long after. */
const GRACE_MS = 60_000
const HOUSEKEEPING_MS = 60_000
const GAUGES_MS = 10_000
/** A body of which nothing came for so long, and nobody said so: its gateway is gone. */
const STALE_MS = 600_000
const DAY_MS = 86_400_000
/** The texts of dry runs lie in the outbox, which is kept so long. */
const DRY_RUN_DAYS = 7
const REMOVE_MAX = 10_000
const DELIVERIES = 10
const CLOSE_MS = 5_000

export async function openSweeper(deps: SweeperDeps): Promise<Sweeper> {
  const { clock, log } = deps
  const closed = new AbortController()
  const inbox = await openCommonInbox(deps)
  let keptHouseAt = 0
  let measuredAt = 0

  async function run(): Promise<void> {
    while (!closed.signal.aborted) {
      try {
        await sweep(deps)
        if (clock() - keptHouseAt >= HOUSEKEEPING_MS) {
          keptHouseAt = clock()
          await keepHouse(deps)
        }
        if (clock() - measuredAt >= GAUGES_MS) {
          measuredAt = clock()
          await measure(deps)
        }
      } catch (error) {
        const expected = error instanceof LostRace || (error instanceof Fault && error.code !== 'defect')
        log[expected ? 'debug' : 'error'](
          { error: describeError(error) },
          'operations could not be swept; they will be',
        )
      }
      await pause(SWEEP_MS, undefined, { signal: closed.signal }).catch(() => {})
    }
  }
  const running = run()
  return {
    async close() {
      closed.abort()
      await Promise.all([running, inbox.close(CLOSE_MS)])
    },
  }
}

/** One round over what is due. Returns how many were queued again. */
export async function sweep({ store, queues, settings, clock }: SweeperDeps): Promise<number> {
  let queued = 0
  for (;;) {
    const due = await operations.take(store, clock(), settings.resendMs, TAKE_MAX)
    const receiptIds = due.map(({ receiptId }) => receiptId)
    const settled = await recordAnswers(receiptIds, store)
    for (const { receiptId, kind, jobId: id, jws, expiresAt } of due) {
      if (settled.has(receiptId) || expiresAt <= clock()) continue
      await queues.add(kind, { id, data: { jws } })
      queued += 1
    }
    await operations.expire(store, receiptIds, clock() - GRACE_MS)
    if (due.length < TAKE_MAX) return queued
  }
}

async function keepHouse({ store, settings, clock }: SweeperDeps): Promise<void> {
  const old = clock() - settings.receiptDays * DAY_MS
  await intake.discardStale(store, clock() - STALE_MS)
  await operations.removeOld(store, old, REMOVE_MAX)
  await intake.removeOld(store, { batches: old, dryRuns: clock() - DRY_RUN_DAYS * DAY_MS })
}

/** What was promised by a 202. */
async function measure({ store, metrics, clock }: SweeperDeps): Promise<void> {
  const promised = { operation: await operations.measure(store), chunk: await chunks.measure(store) }
  for (const [what, { rows, oldest }] of Object.entries(promised)) {
    metrics.gatewayPromised.set({ what }, rows)
    metrics.gatewayPromisedOldest.set({ what }, oldest === null ? 0 : Math.max(0, clock() - oldest) / 1000)
  }
}

async function openCommonInbox({ store, queues, signingKey, log }: SweeperDeps) {
  const keys = new Map(
    (await signingKeys.findPublic(store)).map(({ kid, alg, publicJwk }) => [
      kid,
      { alg, publicKey: importPublicJwk(publicJwk).key },
    ]),
  )
  // The answer itself lies in the store: this only says that it is there.
  async function receive(delivery: Delivery): Promise<'taken'> {
    if (delivery.type === 'result' && delivery.kind !== 'token-batch') await recordAnswers([delivery.receipt_id], store)
    return 'taken'
  }
  return openInbox(queues, { clientId: signingKey.clientId, keys }, receive, { concurrency: DELIVERIES, log })
}
