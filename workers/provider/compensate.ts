// Takes back what a job did at a network: deletes what it provisioned, resumes what it suspended, suspends what it
// resumed, unless somebody has built on it since. Done again it goes on where it was left.
import type { Db } from '../../src/store/pool.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { stepOf, UNDO } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import { ask } from './call-provider.ts'
import { openLease } from './lease.ts'
import { mirror, unchanged } from './reconcile/apply-answer.ts'
import { drive } from './reconcile/reconcile-row.ts'
import { settle } from './write-answer.ts'

const AGAIN_MS = 1_000

/** How long to wait before it is gone on with, ms; 0: all that is owed is undone. */
export async function undoAll(receiptId: string, deps: Deps): Promise<number> {
  let waitMs = 0
  for (const intent of await intents.findByReceipt(deps.store, receiptId)) {
    if (intent.reversal !== 'REQUIRED') continue
    const ms = await undoOne(intent, deps)
    if (ms === 0) await intents.complete(deps.store, intent.intentId, deps.clock())
    waitMs = Math.max(waitMs, ms)
  }
  return waitMs
}

async function undoOne(intent: SchemeIntent, deps: Deps): Promise<number> {
  const { store, clock } = deps
  const row = await storedSchemes.find(store, intent.provisionId)
  if (!row) return 0
  if (row.thirdParty)
    return (await store.transaction(db => giveUp(db, row, deps))) ? untilGone(row.provisionId, deps) : 0
  if (intent.action === 'PROVISION') {
    // Somebody has built on it, or would have had it provisioned all the same.
    if (row.current && (row.lastIntent !== intent.intentId || row.background)) return 0
    if (row.current && !(await schemeTokens.withdraw(store, row.provisionId, clock(), intent.intentId))) return 0
    return untilGone(row.provisionId, deps)
  }
  // A deletion stands.
  if (intent.action === 'DELETE' || row.lastIntent !== intent.intentId || isGone(row)) return 0
  return takeBack(row, UNDO[intent.action], deps)
}

/** A third party's token goes unless one of ours lives by it: then somebody has built on it. */
async function giveUp(db: Db, { provisionId, tokenId }: StoredScheme, { clock }: Deps): Promise<boolean> {
  await storedSchemes.hold(db, provisionId)
  const [token] = await tokens.findByIds(db, [tokenId])
  if (token && token.status !== 'DELETED') return false
  await schemeTokens.withdraw(db, provisionId, clock())
  return true
}

async function untilGone(provisionId: string, deps: Deps): Promise<number> {
  const row = await storedSchemes.find(deps.store, provisionId)
  if (!row || isGone(row)) return 0
  const after = await withLease(provisionId, deps, (leased, lease) => drive(leased, lease, 'interactive', deps))
  return after && isGone(after) ? 0 : waitFor(after, deps)
}

async function takeBack(row: StoredScheme, undo: 'RESUME' | 'SUSPEND', deps: Deps): Promise<number> {
  const asked = undo === 'RESUME' ? 'ACTIVATE' : 'SUSPEND'
  const after = await withLease(row.provisionId, deps, async (leased, lease) => {
    // What the call came to must be known before it can be taken back.
    if (leased.asked !== null || leased.retiredAt !== null) return drive(leased, lease, 'interactive', deps)
    if (stepOf(leased, asked) !== undo) return settle(unchanged({ ...leased, attempts: 0 }, null), lease, deps)
    const came = await ask(leased, undo, 'interactive', deps)
    if (came.came === 'token') return settle(mirror(leased, came.token, deps.ring), lease, deps)
    // Refused: they know it otherwise than we do; it is looked at anew.
    await settle(unchanged(leased, deps.clock() + AGAIN_MS, came.came === 'refused' ? null : undo), lease, deps)
    return undefined
  })
  if (!after) return waitFor(after, deps)
  const isStill = stepOf(after, asked) === undo
  return after.asked === null && !isStill ? 0 : waitFor(after, deps)
}

const isGone = ({ state }: StoredScheme) => state === 'DELETED' || state === 'VOID'

function waitFor(row: StoredScheme | undefined, { clock }: Deps): number {
  return Math.max(AGAIN_MS, (row?.dueAt ?? 0) - clock())
}

/** Undefined where somebody else has the lease, or the answer was lost. */
async function withLease(
  provisionId: string,
  deps: Deps,
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
