// What jobs owe that end in a refusal although their provider calls had, or may have had, an effect. A job without such
// calls owes nothing, and its jti stays free. compensate.ts undoes what is owed.
import type { NewReceipt, Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import { hold } from '../../src/store/pool.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import { type Standable, shows } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'

/** What happens to the intents of a refused job, whose provider calls must be undone. */
export interface Compensation {
  receiptId: string
  /** Intents whose effect a reversal must undo. */
  owed: readonly string[]
  /** Intents whose calls had no effect and never will. */
  abandoned: readonly string[]
  /** Provisionings of abandoned intents, for which the provider was never called. */
  withdrawn: readonly string[]
}

/** For a job that ends without a decision: writes its receipt, if it owes compensation. */
export async function endOwing(
  receiptId: string,
  receiptOf: () => Promise<NewReceipt>,
  { store, clock, ring }: Pick<Deps, 'store' | 'clock' | 'ring'>,
): Promise<(receipts.Written & { receipt: Receipt }) | undefined> {
  const receipt = await receiptOf()
  const [row] = await store.transaction(async db => {
    await hold(db, receiptId)
    const compensations = await findCompensations(db, [receiptId])
    const isOurs = owes(compensations) && (await receipts.findAll(db, [receiptId])).length === 0
    const recorded = isOurs ? compensations : compensations.map(one => ({ ...one, owed: [] }))
    await recordCompensations(db, recorded, clock())
    return isOurs ? receipts.insertAll(db, ring, [receipt]) : []
  })
  return row && { ...row, receipt }
}

/** Records, under the lock of the receipt, which provider calls must be compensated; false if there are none. */
export async function recordOwed(db: Db, receiptId: string, now: number): Promise<boolean> {
  const compensations = await findCompensations(db, [receiptId])
  await recordCompensations(db, compensations, now)
  return owes(compensations)
}

export function owes(compensations: readonly Compensation[]): boolean {
  return compensations.some(({ owed }) => owed.length > 0)
}

/** The compensation of each receipt, in the same order. */
export async function findCompensations(db: Db, receiptIds: readonly string[]): Promise<Compensation[]> {
  const open = (await intents.findByReceipts(db, receiptIds)).filter(isOpen)
  const rows =
    open.length === 0
      ? []
      : await storedSchemes.findAll(
          db,
          open.map(({ provisionId }) => provisionId),
        )
  const byId = new Map(rows.map(row => [row.provisionId, row]))
  const byReceipt = Map.groupBy(open, ({ receiptId }) => receiptId)
  return receiptIds.map(receiptId => compensationOf(receiptId, byReceipt.get(receiptId) ?? [], byId))
}

function isOpen({ state, reversal }: SchemeIntent): boolean {
  return reversal === null && (state === 'INTENDED' || state === 'DONE')
}

/** What is asked of a provisioning. */
export type Provisioning = Pick<StoredScheme, 'lastIntent' | 'asked' | 'background'> & Standable

/** `open`: intents of one job that had, or may still have, an effect. `rows`: their provisionings, by id. */
export function compensationOf(
  receiptId: string,
  open: readonly Pick<SchemeIntent, 'intentId' | 'provisionId' | 'action' | 'state'>[],
  rows: ReadonlyMap<string, Provisioning>,
): Compensation {
  const owed: string[] = []
  const abandoned: string[] = []
  const withdrawn: string[] = []
  for (const { intentId, provisionId, action, state } of open) {
    const row = rows.get(provisionId)
    const own = row?.lastIntent === intentId ? row : undefined
    if (state === 'DONE' || (own && (own.asked !== null || hadEffect(own, action)))) owed.push(intentId)
    else {
      abandoned.push(intentId)
      if (own?.state === 'PENDING' && !own.background) withdrawn.push(provisionId)
    }
  }
  return { receiptId, owed, abandoned, withdrawn }
}

/**
 * Whether the row shows the effect of its last intent, which is not done: the loop learned it from the provider before the
 * job did. A provisioning of the loop's own needs no job.
 */
function hadEffect(row: Provisioning, action: SchemeIntent['action']): boolean {
  return action !== 'DELETE' && !row.background && shows(row, action)
}

export function isSameCompensation(one: Compensation, other: Compensation): boolean {
  const textOf = ({ owed, abandoned, withdrawn }: Compensation) => JSON.stringify([owed, abandoned, withdrawn])
  return textOf(one) === textOf(other)
}

/** Records compensations; the caller holds the locks of their receipts. */
export async function recordCompensations(db: Db, compensations: readonly Compensation[], now: number): Promise<void> {
  await Promise.all([
    intents.abandon(db, compensations.flatMap(({ abandoned }) => abandoned).sort(), now),
    schemeTokens.withdrawAll(db, compensations.flatMap(({ withdrawn }) => withdrawn).sort(), now),
    intents.owe(db, compensations.flatMap(({ owed }) => owed).sort(), now),
  ])
}
