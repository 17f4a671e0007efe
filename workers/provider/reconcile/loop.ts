// Reconciles due rows without a job: provisionings and deletions that the loop calls for, calls whose processes died,
// notifications of networks, lost reversals. Several processes may do this at the same time.
import { setTimeout as pause } from 'node:timers/promises'
import { describeError } from '../../../src/logger.ts'
import { every } from '../../../src/recurring.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import * as intents from '../../../src/store/provider/scheme-intents.ts'
import * as notices from '../../../src/store/provider/scheme-notices.ts'
import type { StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import type { ProviderDeps } from '../deps.ts'
import { LEASE_MS, openLease } from '../lease.ts'
import { queueReversal } from '../queue-reversal.ts'
import { noteDrift } from './drift.ts'
import { reconcileRow } from './reconcile-row.ts'
import { sweep } from './sweep.ts'

const TICK_MS = 250
const OWED_MS = 15_000
const SWEEP_MS = 60_000
/** How many rows a process reconciles at the same time: enough for a few hundred calls a second. */
const ROWS_MAX = 64
const NOTICES_MAX = 64
/** A notification may come before the row of its token is written; after this time the token counts as unknown. */
const UNKNOWN_MS_MAX = 3_600_000
const UNKNOWN_AGAIN_MS = 2_000
const LEASED_AGAIN_MS = 500
/** How long to wait, in ms, before a row is tried again after an error in this process or the store. */
const FAILED_AGAIN_MS = 2_000
const GIVE_BACK_MS = 1_000

/** Starts the loop. Returns a function that stops it. */
export function startSchemeLoop(deps: ProviderDeps): () => Promise<void> {
  const stops = [
    openDueWorker(deps),
    every(TICK_MS, () => workNotices(deps), deps),
    every(OWED_MS, () => queueOwed(deps), deps),
    every(SWEEP_MS, () => sweep(deps), deps),
  ]
  return async () => {
    await Promise.all(stops.map(stop => stop()))
  }
}

/** Keeps up to `ROWS_MAX` rows in progress, so that one slow row doesn't hold up the others. */
function openDueWorker(deps: ProviderDeps): () => Promise<void> {
  const underway = new Set<Promise<void>>()
  const lease = openLease(deps)
  let isOver = false
  const stop = every(
    TICK_MS,
    async () => {
      for (let free = ROWS_MAX - underway.size; free > 0; free = ROWS_MAX - underway.size) {
        const rows = await schemeTokens.takeDue(deps.store, lease.id, deps.clock(), lease.until(), free)
        for (const row of rows) {
          const done = reconcileOrLeave(row, lease.id, deps, () => isOver).finally(() => underway.delete(done))
          underway.add(done)
        }
        if (rows.length < free) return
        await Promise.race(underway)
      }
    },
    deps,
  )
  return async () => {
    isOver = true
    await stop()
    await Promise.all(underway)
    lease.end()
  }
}

async function reconcileOrLeave(
  row: StoredScheme,
  lease: string,
  deps: ProviderDeps,
  isOver = () => true,
): Promise<void> {
  try {
    await reconcileRow(row, lease, 'bulk', deps)
  } catch (error) {
    deps.log.warn({ provision: row.provisionId, error: describeError(error) }, 'a scheme token is left for later')
    // The lease is renewed as long as this process lives, so without this no other process would ever get the row.
    while (!(await giveBack(row.provisionId, lease, deps)) && !isOver()) await pause(GIVE_BACK_MS)
  }
}

function giveBack(provisionId: string, lease: string, { store, clock }: ProviderDeps): Promise<boolean> {
  return schemeTokens.giveBack(store, provisionId, lease, clock() + FAILED_AGAIN_MS).then(
    () => true,
    () => false,
  )
}

/** Reconciles all due rows once; returns how many. For tests. */
export async function workDue(deps: ProviderDeps): Promise<number> {
  const lease = openLease(deps)
  try {
    const rows = await schemeTokens.takeDue(deps.store, lease.id, deps.clock(), lease.until(), ROWS_MAX)
    await Promise.all(rows.map(row => reconcileOrLeave(row, lease.id, deps)))
    return rows.length
  } finally {
    lease.end()
  }
}

/** Asks networks about the tokens of their notifications, whose content isn't trusted. Returns how many there were. */
export async function workNotices(deps: ProviderDeps): Promise<number> {
  const now = deps.clock()
  const due = await notices.takeDue(deps.store, now, now + LEASE_MS, NOTICES_MAX)
  await Promise.all(due.map(notice => workNotice(notice, deps)))
  return due.length
}

async function workNotice(notice: notices.SchemeNotice, deps: ProviderDeps): Promise<void> {
  const { store, clock } = deps
  const [row] = await storedSchemes.findByReferences(store, notice.provider, [notice.reference])
  if (!row) {
    if (clock() - notice.noticedAt < UNKNOWN_MS_MAX) return notices.putOff(store, notice, clock() + UNKNOWN_AGAIN_MS)
    await noteDrift(store, { what: 'unknown', provider: notice.provider, reference: notice.reference }, deps)
    return notices.remove(store, notice)
  }
  if (row.state === 'DELETED' || row.state === 'VOID') return notices.remove(store, notice)
  const lease = openLease(deps)
  try {
    const [leased] = await schemeTokens.take(store, [row.provisionId], lease.id, clock(), lease.until())
    // The call in progress may have begun before the notification.
    if (!leased) return await notices.putOff(store, notice, clock() + LEASED_AGAIN_MS)
    // If the network can't be called now, the row stays due.
    const after = await reconcileRow(leased, lease.id, 'bulk', deps)
    if (after) await notices.remove(store, notice)
  } finally {
    lease.end()
  }
}

/** Queues reversals again that have been owed for some time: the first may be lost with its queue. */
export async function queueOwed(deps: ProviderDeps): Promise<void> {
  const now = deps.clock()
  for (const receiptId of await intents.takeOwed(deps.store, now - 2 * OWED_MS, now, 100)) {
    const receipt = await receipts.find(deps.store, receiptId)
    if (receipt) await queueReversal(receipt, deps)
  }
}
