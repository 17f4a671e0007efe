// `reversal`: undoes the operation of one receipt, if every envelope that asked for it has been given up and no job has
// built on it since. A job that hasn't left a receipt gets one that says CANCELLED, so that it never takes effect.
// A job's provider calls are compensated in recorded steps: until they are done the receipt says REQUIRED, then
// COMPLETED.
import { isOfGateway } from '../src/acts/reversals.ts'
import { type Refusal, refuse } from '../src/errors.ts'
import { areGivenUp, askersOf, isUndoable, withoutAskers } from '../src/job/answer/askers.ts'
import type { ReversalStatus } from '../src/job/problem.ts'
import type { Reversal } from '../src/job/system/reversal.ts'
import * as operations from '../src/store/job/operations.ts'
import { isProved } from '../src/store/job/receipt.ts'
import * as receipts from '../src/store/job/receipts.ts'
import { type Db, hold, LostRace } from '../src/store/pool.ts'
import * as references from '../src/store/reference/source-references.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { takeBack } from '../src/token/on-file.ts'
import { isSameCard } from '../src/token/token.ts'
import { undo } from '../src/token/undo.ts'
import { findBefore, reversibleSince } from './card/before-image.ts'
import { putBack } from './card/put-back.ts'
import type { Deps } from './deps.ts'
import type { Effect } from './effect/effect.ts'
import { noteReleases } from './effect/note-releases.ts'
import { writeEffects } from './effect/write-effect.ts'
import { type Handler, type JobAnswer, Postponed, type Work } from './work.ts'

export const reversal: Handler<Reversal> = {
  async reach(work, request, deps) {
    if (work.isStolen && !(await isOfGateway(deps.store, request))) return refuse('field_value', 'body.envelope')
    const { compensation } = deps.networks
    if (!(await compensation.hasAsked(request.receipt_id, deps.store))) return request
    const refusal = await deps.store.transaction(db => requireCompensation(db, work, request, deps))
    if (refusal) return refusal
    const waitMs = await compensation.run(request.receipt_id, deps)
    if (waitMs > 0) throw new Postponed(waitMs)
    return request
  },

  // Everything is decided under the lock of the receipt that is to be undone: an attempt at that job waits, or has
  // ended.
  decide: async (work, request, deps) => ({ save: db => reverseJob(db, work, request, deps) }),
}

/** From here on the receipt says REQUIRED, so no attempt continues the job. */
async function requireCompensation(
  db: Db,
  work: Work<Reversal>,
  request: Reversal,
  deps: Deps,
): Promise<Refusal | undefined> {
  await hold(db, request.receipt_id)
  const receipt = await receipts.find(db, request.receipt_id)
  const unable = receipt && unableTo(receipt, work, deps)
  if (unable) return unable
  if (receipt && !(await isToBeUndone(db, receipt, request))) return undefined
  if (!(await deps.networks.compensation.record(db, request.receipt_id, deps.clock()))) return undefined
  if (receipt) await reverse(db, receipt, work, 'REQUIRED', deps)
  else await cancel(db, work, request, 'REQUIRED', deps)
  return undefined
}

async function reverseJob(db: Db, work: Work<Reversal>, request: Reversal, deps: Deps): Promise<JobAnswer> {
  await hold(db, request.receipt_id)
  const receipt = await receipts.find(db, request.receipt_id)
  const unable = receipt && unableTo(receipt, work, deps)
  if (unable) return unable
  // The job, or another attempt at it, has called a provider since `reach` looked: the reversal begins again.
  const isOpen = receipt ? await isToBeUndone(db, receipt, request) : true
  if (isOpen && (await deps.networks.compensation.record(db, request.receipt_id, deps.clock())))
    throw new LostRace('it was begun meanwhile')
  const reversalStatus = receipt
    ? await conclude(db, receipt, work, request, deps)
    : await cancel(db, work, request, null, deps)
  const record = { reversal_status: reversalStatus }
  return { code: 200, outcome: reversalStatus, tokenId: receipt?.tokenId ?? null, record }
}

/** Why nothing is undone: it is another client's job, or nobody knows what was decided. */
function unableTo(receipt: receipts.StoredReceipt, work: Work<Reversal>, deps: Deps): Refusal | undefined {
  if (receipt.clientId !== work.client.clientId) return refuse('field_value', 'body.receipt_id')
  if (isProved(deps.ring, receipt)) return undefined
  deps.onUnproved('receipt', receipt.receiptId)
  return refuse('receipt_unproved', 'body.receipt_id')
}

/** The job has no receipt yet: inserts one that says CANCELLED. */
async function cancel(
  db: Db,
  { claims, client, attempt, acceptedAt }: Work<Reversal>,
  { receipt_id: receiptId, envelope }: Reversal,
  status: 'REQUIRED' | null,
  deps: Deps,
): Promise<ReversalStatus> {
  await receipts.insertCancelled(db, deps.ring, {
    // The gateway names the entity of the request that it gave up; workers, which compensate for a job that has failed, may
    // name another one of the client.
    entityId: claims.iss === 'gateway' ? claims.entity_id : null,
    receiptId,
    clientId: client.clientId,
    iss: claims.iss,
    kind: claims.kind,
    jti: claims.jti,
    requestDigest: Buffer.alloc(0),
    envelopeDigest: Buffer.from(envelope, 'base64url'),
    code: 500,
    reversal: status,
    attempt,
    acceptedAt,
    completedAt: deps.clock(),
  })
  return 'COMPLETED'
}

/**
 * Whether the receipt's effect is to be undone. It isn't if the job was refused or its effect is a deletion, if another
 * envelope has asked for the effect and wasn't given up, or if a request for it was answered 202: such a request is never
 * given up, and its envelope may not have come yet.
 */
async function isToBeUndone(db: Db, receipt: receipts.StoredReceipt, request: Reversal): Promise<boolean> {
  if (!isUndoable(receipt) || !areGivenUp(askersAfter(receipt, request))) return false
  return !(await operations.isPromised(db, receipt.receiptId))
}

const namedBy = ({ envelope, earlier = [] }: Reversal) => [envelope, ...earlier]
const askersAfter = (receipt: receipts.StoredReceipt, request: Reversal) =>
  withoutAskers(askersOf(receipt), namedBy(request))

async function conclude(
  db: Db,
  receipt: receipts.StoredReceipt,
  work: Work<Reversal>,
  request: Reversal,
  deps: Deps,
): Promise<ReversalStatus> {
  if (receipt.reversal === 'REQUIRED') {
    // If the job was cancelled before it left a receipt, no answer was sent.
    if (receipt.requestDigest.length === 0) await receipts.recordCancelledCompensation(db, deps.ring, receipt)
    else
      await receipts.revise(db, deps.ring, receipt, {
        ...receipt,
        answers: null,
        reversal: 'COMPLETED',
        completedAt: deps.clock(),
      })
    return 'COMPLETED'
  }
  if (receipt.reversal === 'COMPLETED' || receipt.status === 'CANCELLED') return 'COMPLETED'
  if (await isToBeUndone(db, receipt, request)) {
    await reverse(db, receipt, work, null, deps)
    return 'COMPLETED'
  }
  // Whoever asked, too, may have been told that the effect holds. The last one who gives up undoes it.
  if (isUndoable(receipt)) await receipts.recordAskers(db, deps.ring, receipt, askersAfter(receipt, request))
  const isNamed = namedBy(request).includes(receipt.envelopeDigest.toString('base64url'))
  return isNamed && receipt.outcome === 'DELETED' ? 'COMPLETED' : 'NONE'
}

/** Restores the token's row. `status`: whether providers must still be called. */
async function reverse(
  db: Db,
  receipt: receipts.StoredReceipt,
  work: Work<Reversal>,
  status: 'REQUIRED' | null,
  deps: Deps,
): Promise<void> {
  const row = await tokens.hold(db, receipt.tokenId ?? '')
  // References are taken back before the token's row: an owner whom this job added counts as never added, so there is
  // no event of a release.
  await takeReferencesBack(db, receipt, work, deps)
  const now = deps.clock()
  const before = await findBefore(db, receipt.receiptId, deps.ring)
  const isOwned =
    row !== undefined && receipt.outcome === 'CREATED' && (await references.countOwners(db, [row.tokenId])).size > 0
  const operation = { outcome: receipt.outcome, receiptId: receipt.receiptId, reversalId: work.receiptId, now, isOwned }
  const undone = row && undo(row, before?.row, operation)
  const restored = row && undone && putBack(row, undone, before?.cardVersions, deps.ring)
  if (row && restored && !(await isTakenByAnother(db, restored))) {
    await writeEffects(db, [await restoring(db, row, restored, work, deps)], deps)
  }
  const answers = null
  await receipts.revise(db, deps.ring, receipt, {
    ...receipt,
    answers,
    status: 'CANCELLED',
    code: 500,
    reversal: status,
    completedAt: now,
  })
}

/**
 * Restores the references that no other job has written since. A token that gets an owner back must not be removed by
 * an earlier job's reversal.
 */
async function takeReferencesBack(
  db: Db,
  { receiptId }: receipts.Receipt,
  work: Work<Reversal>,
  deps: Deps,
): Promise<void> {
  const written = await references.findByReceipt(db, receiptId)
  if (written.length === 0) return
  const former = written.flatMap(({ before, tokenId }) => (before && before.tokenId !== tokenId ? before.tokenId : []))
  const held = former.length === 0 ? new Map() : await tokens.holdAll(db, former)
  const isLive = (tokenId: string) => held.has(tokenId) && held.get(tokenId)?.status !== 'DELETED'
  // Read under the locks: a batch that held them before has counted the owners who may still come back.
  const now = deps.clock()
  const at = { reversalId: work.receiptId, now, since: reversibleSince(now), isLive }
  const ends = written.map(row => ({ row, end: takeBack(row, at) }))
  const restored = ends.flatMap(({ row, end }) => (end && end !== 'removed' ? { row, end } : []))
  await tokens.nameReceipt(
    db,
    restored.flatMap(({ row, end }) => (end.tokenId === row.tokenId ? [] : end.tokenId)),
    work.receiptId,
  )
  await references.updateAll(
    db,
    restored.map(({ end }) => end),
  )
  const removed = ends.flatMap(({ row, end }) => (end === 'removed' ? row : []))
  await references.removeAll(db, removed)
  await noteLost(db, removed, work.receiptId, deps)
}

/** The owners of removed references who had a card before the job, on a token that was deleted meanwhile. */
async function noteLost(
  db: Db,
  removed: readonly references.StoredReference[],
  receiptId: string,
  deps: Deps,
): Promise<void> {
  const lost = removed.flatMap(reference =>
    reference.before ? [{ reference, tokenId: reference.before.tokenId }] : [],
  )
  if (lost.length === 0) return
  const rows = await tokens.findByIds(db, [...new Set(lost.map(({ tokenId }) => tokenId))])
  const deleted = new Map(rows.map(row => [row.tokenId, row]))
  const releases = lost.flatMap(({ reference, tokenId }) => {
    const token = deleted.get(tokenId)
    return token ? [{ reference, token, receiptId }] : []
  })
  await noteReleases(db, releases, 'TOKEN_DELETED', deps)
}

/** The effect that restores a token's row. The loop makes the provider calls that follow. */
async function restoring(
  db: Db,
  row: tokens.StoredToken,
  restored: tokens.StoredToken,
  work: Work<Reversal>,
  deps: Deps,
): Promise<Effect> {
  const updates = [restored]
  if (restored.status === 'DELETED') return { updates }
  const scope = isSameCard(row.cards, restored.cards)
    ? undefined
    : await deps.directory.scopeIn(db, restored.tokenScope)
  if (!scope) return { updates }
  const job = { receiptId: work.receiptId, clientId: work.client.clientId }
  const networks = await deps.networks.schemeTokens.restore(db, { token: restored, scope }, job, deps)
  return { updates, networks }
}

/** Whether the card that the token was linked to before has another live token by now. */
async function isTakenByAnother(db: Db, { tokenId, link }: tokens.StoredToken): Promise<boolean> {
  if (!link) return false
  return (await tokens.findByCards(db, link.known)).some(other => other.tokenId !== tokenId)
}
