// Compensates what a job did at a provider: deletes what it provisioned, resumes what it suspended, suspends what it
// resumed, unless another job relies on it by now. A repeat continues where the last attempt ended.
import type { Db } from '../../src/store/pool.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { stepOf, UNDO } from '../../src/token/scheme.ts'
import { applyToken, unchangedRow } from './apply-answer.ts'
import { callProvider } from './call-provider.ts'
import type { ProviderDeps } from './deps.ts'
import { openLease } from './lease.ts'
import { reconcileRow } from './reconcile/reconcile-row.ts'
import { writeAnswer } from './write-answer.ts'

const AGAIN_MS = 1_000

/**
 * Compensates the intents of a receipt. Returns how many ms to wait before the next attempt; 0: everything that was
 * owed is compensated.
 */
export async function compensateAll(receiptId: string, deps: ProviderDeps): Promise<number> {
  let waitMs = 0
  for (const intent of await intents.findByReceipt(deps.store, receiptId)) {
    if (intent.reversal !== 'REQUIRED') continue
    const ms = await compensate(intent, deps)
    if (ms === 0) await intents.complete(deps.store, intent.intentId, deps.clock())
    waitMs = Math.max(waitMs, ms)
  }
  return waitMs
}

async function compensate(intent: SchemeIntent, deps: ProviderDeps): Promise<number> {
  const { store, clock } = deps
  const row = await storedSchemes.find(store, intent.provisionId)
  if (!row) return 0
  if (row.thirdParty) {
    const isWithdrawn = await store.transaction(db => withdrawUnused(db, row, deps))
    return isWithdrawn ? untilGone(row.provisionId, deps) : 0
  }
  if (intent.action === 'PROVISION') {
    // Another job relies on the scheme token, or the loop would have provisioned it without this job.
    if (row.current && (row.lastIntent !== intent.intentId || row.background)) return 0
    // What a job had made for a card that its token hasn't got is nobody else's.
    const isStanding = row.current || row.retiredAt === null
    if (isStanding && !(await schemeTokens.withdraw(store, row.provisionId, clock(), intent.intentId))) return 0
    return untilGone(row.provisionId, deps)
  }
  // A deletion isn't compensated.
  if (intent.action === 'DELETE' || row.lastIntent !== intent.intentId || isGone(row)) return 0
  return callBack(row, UNDO[intent.action], deps)
}

/**
 * Retires a third party's token. Does nothing and returns false if a live token uses it, because then another job
 * relies on it.
 */
async function withdrawUnused(
  db: Db,
  { provisionId, tokenId }: StoredScheme,
  { clock }: ProviderDeps,
): Promise<boolean> {
  await storedSchemes.holdAll(db, [provisionId])
  const [token] = await tokens.findByIds(db, [tokenId])
  if (token && token.status !== 'DELETED') return false
  await schemeTokens.withdraw(db, provisionId, clock())
  return true
}

async function untilGone(provisionId: string, deps: ProviderDeps): Promise<number> {
  const row = await storedSchemes.find(deps.store, provisionId)
  if (!row || isGone(row)) return 0
  const after = await withLease(provisionId, deps, (leased, lease) => reconcileRow(leased, lease, 'interactive', deps))
  return after && isGone(after) ? 0 : waitFor(after, deps)
}

/** Makes the opposite call. */
async function callBack(row: StoredScheme, opposite: 'RESUME' | 'SUSPEND', deps: ProviderDeps): Promise<number> {
  const action = opposite === 'RESUME' ? 'ACTIVATE' : 'SUSPEND'
  const after = await withLease(row.provisionId, deps, async (leased, lease) => {
    // A call is compensated only after its result is known.
    if (leased.asked !== null || leased.retiredAt !== null) return reconcileRow(leased, lease, 'interactive', deps)
    if (stepOf(leased, action) !== opposite)
      return writeAnswer(unchangedRow({ ...leased, attempts: 0 }, null), lease, deps)
    const answer = await callProvider(leased, opposite, 'interactive', deps)
    if (answer.answer === 'token') return writeAnswer(applyToken(leased, answer.token, deps.ring), lease, deps)
    // If the network refuses, its token has another state than the row: the state is asked for.
    const asked = answer.answer === 'refused' || answer.answer === 'unproved' ? null : opposite
    await writeAnswer(unchangedRow(leased, deps.clock() + AGAIN_MS, asked), lease, deps)
    return undefined
  })
  if (!after) return waitFor(after, deps)
  const isStillDue = stepOf(after, action) === opposite
  return after.asked === null && !isStillDue ? 0 : waitFor(after, deps)
}

const isGone = ({ state }: StoredScheme) => state === 'DELETED' || state === 'VOID'

function waitFor(row: StoredScheme | undefined, { clock }: ProviderDeps): number {
  return Math.max(AGAIN_MS, (row?.dueAt ?? 0) - clock())
}

/** Runs `work` under a lease; undefined if another process has the lease, or the answer was lost. */
async function withLease(
  provisionId: string,
  deps: ProviderDeps,
  work: (row: StoredScheme, lease: string) => Promise<StoredScheme | undefined>,
): Promise<StoredScheme | undefined> {
  const lease = openLease(deps)
  try {
    const [row] = await schemeTokens.take(deps.store, [provisionId], lease.id, deps.clock(), lease.until())
    return row && (await work(row, lease.id))
  } finally {
    lease.end()
  }
}
