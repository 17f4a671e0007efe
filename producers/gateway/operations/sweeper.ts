// After a 202: queues unanswered operations again until they expire, marks expired ones, erases the envelopes of
// answered ones, and removes old ones. Every gateway runs a sweeper; each takes only operations that no other sweeper
// has just taken. It also reads answers from the results queue that all gateways share.

import { every } from '../../../src/recurring.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as operations from '../../../src/store/job/operations.ts'
import type { Delivery } from '../../client/interface.ts'
import { openInbox } from '../../results.ts'
import type { GatewayDeps } from '../deps.ts'
import { recordAnswers } from './operations.ts'

export type SweeperDeps = Pick<
  GatewayDeps,
  'store' | 'queues' | 'catalogue' | 'signingKey' | 'trusted' | 'settings' | 'clock' | 'log'
>

export interface Sweeper {
  close(): Promise<void>
}

const SWEEP_MS = 1_000
const TAKE_MAX = 100
/** A job that started just before its deadline may end this much later. */
const GRACE_MS = 60_000
const HOUSEKEEPING_MS = 60_000
/** If a body hasn't grown for this long and its gateway didn't discard it, the gateway has died. */
const STALE_MS = 600_000
const DAY_MS = 86_400_000
/** For how many days dry runs are kept: their results are only in the outbox, whose rows are kept as long. */
const DRY_RUN_DAYS = 7
const REMOVE_MAX = 10_000
const DELIVERIES = 10
const CLOSE_MS = 5_000

export async function openSweeper(deps: SweeperDeps): Promise<Sweeper> {
  const { log } = deps
  const inbox = await openCommonInbox(deps)
  // The tasks start at once, so that a gateway that is restarted every minute still runs them.
  const stops = [
    every(SWEEP_MS, () => sweep(deps), { log, firstMs: 0 }),
    every(HOUSEKEEPING_MS, () => keepHouse(deps), { log, firstMs: 0 }),
  ]
  return {
    async close() {
      await Promise.all([...stops.map(stop => stop()), inbox.close(CLOSE_MS)])
    },
  }
}

/** Queues due operations again until none is due. */
async function sweep(deps: SweeperDeps): Promise<void> {
  const { store, queues, settings, clock } = deps
  for (;;) {
    const due = await operations.take(store, clock(), settings.resendMs, TAKE_MAX)
    const receiptIds = due.map(({ receiptId }) => receiptId)
    const answered = await recordAnswers(receiptIds, deps)
    // First, because it also erases what these operations hold, whether or not the queues take the others.
    await operations.expire(store, receiptIds, clock() - GRACE_MS)
    for (const { receiptId, kind, jobId: id, jws, expiresAt } of due) {
      if (answered.has(receiptId) || expiresAt <= clock()) continue
      await queues.add(kind, { id, data: { jws } })
    }
    if (due.length < TAKE_MAX) return
  }
}

async function keepHouse({ store, settings, clock }: SweeperDeps): Promise<void> {
  const old = clock() - settings.receiptDays * DAY_MS
  await intake.discardStale(store, clock() - STALE_MS)
  await operations.removeOld(store, old, REMOVE_MAX)
  await intake.removeOld(store, { batches: old, dryRuns: clock() - DRY_RUN_DAYS * DAY_MS })
}

async function openCommonInbox(deps: SweeperDeps) {
  const { queues, catalogue, signingKey, trusted, log } = deps
  // The answer itself is read from the store: the delivery only tells that it is there.
  async function receive(delivery: Delivery): Promise<'taken'> {
    // A newer gateway may have asked for a kind that this release doesn't know.
    if (delivery.type === 'result' && catalogue.find(delivery.kind)?.statusAt !== 'batches')
      await recordAnswers([delivery.receipt_id], deps)
    return 'taken'
  }
  return openInbox(queues, { clientId: signingKey.clientId, ...trusted }, receive, { concurrency: DELIVERIES, log })
}
