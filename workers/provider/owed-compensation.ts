// Compensation for a job that ends in a refusal although its provider calls had, or may have had, an effect: its
// receipt says REQUIRED, and a reversal is queued. A job without such calls owes nothing, and its jti stays free.
import { isRefusal, REASONS, type Refusal } from '../../src/errors.ts'
import { requestText } from '../../src/job/envelope/digest.ts'
import { fieldsOf } from '../../src/job/problem.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Db } from '../../src/store/pool.ts'
import { hold } from '../../src/store/pool.ts'
import type { SchemeIntent } from '../../src/store/provider/scheme-intents.ts'
import * as intents from '../../src/store/provider/scheme-intents.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import { type Standable, shows } from '../../src/token/scheme.ts'
import { contentDigest } from '../card/same-request.ts'
import type { Deps } from '../deps.ts'
import type { Compensation } from '../line/effect.ts'
import { withoutOwnCard } from '../line/pan-in-names.ts'
import { resultOf } from '../line/result-text.ts'
import type { Decision, Work } from '../line/work.ts'
import { queueReversal } from './queue-reversal.ts'

/** The decision; if it is a refusal, with what all attempts of the job have left at providers. */
export async function withCompensation(decision: Decision, work: Work<unknown>, deps: Deps): Promise<Decision> {
  if ('save' in decision || !isRefusal(decision.answer) || !deps.providers || !asksProvider(work)) return decision
  const compensations = await findCompensations(deps.store, [work.receiptId])
  const isOwed = compensations.some(({ owed }) => owed.length > 0)
  return {
    ...decision,
    effect: { ...decision.effect, compensations },
    ...(isOwed ? { reversal: 'REQUIRED' as const } : {}),
  }
}

/** For a job that ends without a decision. True if it owes compensation: then this function has answered the caller. */
export async function answerOwed(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<boolean> {
  const { kind } = work.claims
  if (!deps.providers || !asksProvider(work)) return false
  const receipt = await receiptOf(work, refusal, deps)
  const written = await deps.store.transaction(async db => {
    await hold(db, work.receiptId)
    const compensations = await findCompensations(db, [work.receiptId])
    const isOwed = compensations.some(({ owed }) => owed.length > 0)
    const isOurs = isOwed && (await receipts.findAll(db, [work.receiptId])).length === 0
    const recorded = isOurs ? compensations : compensations.map(one => ({ ...one, owed: [] }))
    await recordCompensations(db, recorded, deps.clock())
    return isOurs ? receipts.insertAll(db, [receipt]) : []
  })
  const [row] = written
  if (!row) return false
  deps.metrics.receipts.inc({ kind, status: receipt.status })
  const { outboxId, revision } = row
  const fields = fieldsOf(refusal)
  const result = resultOf({ ...receipt, retell: work.entry.retell, fields, revision, reversalStatus: 'REQUIRED' })
  await deps.announcer.publish({
    clientId: work.addressee,
    replyTo: receipt.replyTo,
    outboxId,
    revision,
    ...result,
  })
  await queueReversal(receipt, deps)
  return true
}

function asksProvider({ claims, entry }: Work<unknown>): boolean {
  return entry.asksProvider(claims.request)
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

async function receiptOf(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<Receipt> {
  const { claims, client, receiptId, envelopeDigest, attempt, acceptedAt } = work
  const { jti, reference } = (await withoutOwnCard(work, deps)).claims
  const digest = deps.ring.requestDigest(requestText(claims.kind, claims.request))
  return {
    receiptId,
    entityId: claims.entity_id,
    clientId: client.clientId,
    iss: claims.iss,
    kind: claims.kind,
    jti,
    requestDigest: digest.hash,
    digestVersion: digest.keyVersion,
    contentDigest: (await contentDigest(work, undefined, digest.keyVersion, deps)) ?? null,
    envelopeDigest,
    replyTo: claims.reply_to ?? null,
    reference: reference ?? null,
    status: 'FAILED',
    code: REASONS[refusal.reason].code,
    outcome: null,
    refusal: fieldsOf(refusal),
    tokenId: null,
    batchNo: null,
    chunk: null,
    counts: null,
    reasons: null,
    outcomes: null,
    failedRecords: 0,
    revision: 1,
    reversal: 'REQUIRED',
    attempt,
    acceptedAt,
    completedAt: deps.clock(),
  }
}
