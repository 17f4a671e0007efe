// Reconciles a leased row with its provider: finds the result of a lost call, provisions what the loop must provision,
// deletes what is retired, or asks for the token's state. Only the row decides what is due, so nothing is lost if the
// process that had the lease before is dead.
import type { Urgency } from '../../../src/scheme/provider.ts'
import type { Db } from '../../../src/store/pool.ts'
import {
  type LeasedUpdate,
  type Reference,
  referenceFor,
  type StoredScheme,
} from '../../../src/store/provider/scheme-row.ts'
import { applyToken, deletedRow, differs, unchangedRow, voidRow } from '../apply-answer.ts'
import { type CallAnswer, callProvider, findProvisioned } from '../call-provider.ts'
import type { ProviderDeps } from '../deps.ts'
import { insertEvent, publishEvent } from '../events.ts'
import { ABSENT_MAX } from '../interpret-answer.ts'
import { writeAnswer } from '../write-answer.ts'
import { noteDrift } from './drift.ts'

/** How often a provider is asked about a call that it doesn't know before that counts as final. */
const UNKNOWN_MAX = 9
const BACKOFF = { firstMs: 500, mostMs: 300_000 } as const

export interface ReconcileOptions {
  /**
   * If it returns true, the client learns of the change otherwise and gets no event. `ended` settles when the
   * transaction has ended; whatever tells the client must be read after that.
   */
  isSilent?: (ended: Promise<void>) => boolean
  /** Runs in the transaction that writes a change of the shown scheme token. */
  onChange?: (db: Db, after: StoredScheme) => Promise<unknown>
}

/** Returns the row as written; undefined if the lease was lost. Errors of the provider don't make it throw. */
export async function reconcileRow(
  row: StoredScheme,
  lease: string,
  urgency: Urgency,
  deps: ProviderDeps,
  { isSilent = () => false, onChange }: ReconcileOptions = {},
): Promise<StoredScheme | undefined> {
  const update = await updateOf(row, urgency, deps)
  // Read before the transaction: a transaction holds a connection and must not wait for a second one.
  const scope = await deps.directory.scope(row.tokenScope)
  const ended = Promise.withResolvers<void>()
  const writing = deps.store.transaction(async db => {
    const written = await writeAnswer(update, lease, deps, { db })
    if (written === undefined || !isNews(row, written)) return { written }
    await onChange?.(db, written)
    if (isSilent(ended.promise)) return { written }
    return { written, event: await insertEvent(db, row, written, scope, { now: deps.clock(), coder: deps.ring }) }
  })
  const { written, event } = await writing.finally(ended.resolve)
  if (event) await publishEvent(event, deps)
  return written
}

/**
 * Whether the client gets an event. The result of a job reports the job's own call. Every other change that the record
 * of a current scheme token shows is reported by an event.
 */
function isNews(before: StoredScheme, after: StoredScheme): boolean {
  if (!before.current || before.retiredAt !== null || after.retiredAt !== null) return false
  const isByJob = before.asked !== null && !before.background
  return !isByJob && differs(before, after)
}

async function updateOf(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<LeasedUpdate> {
  const now = deps.clock()
  if (row.state === 'DELETED' || row.state === 'VOID') return unchangedRow(row, null, null)
  if (row.retiredAt !== null) return row.thirdParty ? removeForgotten(row, urgency, deps) : remove(row, urgency, deps)
  if (row.state === 'PENDING') return row.background ? provision(row, urgency, deps) : findOutcome(row, urgency, deps)
  const answer = await callProvider(row, 'GET', urgency, deps)
  if (answer.answer === 'token') return { ...applyToken(row, answer.token, deps.ring), checkedAt: now }
  if (answer.answer === 'unproved') return { ...unchangedRow({ ...row, attempts: 0 }, null, null), checkedAt: now }
  if (isTokenUnknown(answer)) {
    await noteDrift(deps.store, { what: 'missing', ...row }, deps)
    return { ...unchangedRow({ ...row, attempts: 0 }, null, null), checkedAt: now }
  }
  return later(row, answer, deps)
}

/**
 * Provisions a row of the loop: the first time it calls at once; later it first asks for the result of the earlier
 * call.
 */
async function provision(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<LeasedUpdate> {
  if (row.attempts > 1) {
    const found = await findProvisioned(row, urgency, deps)
    if (found.answer === 'token') return applyToken(row, found.token, deps.ring)
    if (found.answer !== 'no-effect') return later(row, found, deps)
  }
  const answer = await callProvider(row, 'PROVISION', urgency, deps)
  if (answer.answer === 'token') return applyToken(row, answer.token, deps.ring)
  if (answer.answer === 'refused') return voidRow(row, answer.reason)
  if (answer.answer === 'duplicate') return voidRow(row, null)
  if (answer.answer === 'no-effect' && row.attempts > ABSENT_MAX) {
    // The issuer ended the token before we knew of it, and the network never makes another token for that id.
    if (answer.isAbsent) return voidRow(row, 'token_unknown')
    // An answer that is final if it comes twice: the issuer gave the network no answer.
    if (answer.isFinalTwice) return voidRow(row, 'card_declined')
  }
  return later(row, answer, deps)
}

/** Handles a row of a job: the job makes its own calls, so only the result of a lost call is looked for. */
async function findOutcome(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<LeasedUpdate> {
  if (row.asked === null) return unchangedRow(row, null)
  const found = await findProvisioned(row, urgency, deps)
  if (found.answer === 'token') return applyToken(row, found.token, deps.ring)
  if (found.answer === 'duplicate') return voidRow(row, null)
  if (found.answer !== 'no-effect' || (row.thirdParty && mayStillHappen(row))) return later(row, found, deps)
  return unchangedRow({ ...row, attempts: 0 }, null, null)
}

async function remove(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<LeasedUpdate> {
  let known: LeasedUpdate = row
  if (row.state === 'PENDING') {
    if (row.asked === null) return voidRow(row, null)
    const found = await findProvisioned(row, urgency, deps)
    if (found.answer === 'no-effect' && !mayStillHappen(row)) return voidRow(row, null)
    if (found.answer !== 'token') return later(row, found, deps)
    known = applyToken(row, found.token, deps.ring)
  }
  if (known.state === 'DELETED') return known
  const answer = await callProvider({ ...row, ...known }, 'DELETE', urgency, deps)
  if (answer.answer === 'token')
    return deletedRow({ ...known, ...referenceFor({ ...row, ...known }, answer.token.reference, deps.ring) })
  if (isTokenUnknown(answer)) return deletedRow(known)
  return later(known === row ? row : { ...known, attempts: row.attempts }, answer, deps)
}

/**
 * Deletes a retired third party's token. Its name isn't stored: a token that is found only now is deleted without being
 * written down.
 */
async function removeForgotten(row: StoredScheme, urgency: Urgency, deps: ProviderDeps): Promise<LeasedUpdate> {
  let named: Reference = row
  if (named.reference === null) {
    if (row.asked === null) return voidRow(row, null)
    const found = await findProvisioned(row, urgency, deps)
    if (found.answer === 'duplicate') return voidRow(row, null)
    if (found.answer === 'no-effect' && !mayStillHappen(row)) return voidRow(row, null)
    if (found.answer !== 'token') return later(row, found, deps)
    named = referenceFor(row, found.token.reference, deps.ring)
  }
  const answer = await callProvider({ ...row, ...named }, 'DELETE', urgency, deps)
  return answer.answer === 'token' || isTokenUnknown(answer) ? voidRow(row, null) : later(row, answer, deps)
}

function isTokenUnknown(answer: CallAnswer): boolean {
  return answer.answer === 'refused' && answer.reason === 'token_unknown'
}

/**
 * Whether a provider that doesn't know of a call may still be working on it, or may not have received it yet. With the
 * pauses between attempts that is true for more than a minute.
 */
function mayStillHappen({ attempts }: StoredScheme): boolean {
  return attempts < UNKNOWN_MAX
}

/** The row, due again after an exponential backoff with jitter, but never earlier than the provider said. */
function later(row: LeasedUpdate, answer: CallAnswer, { clock, log }: ProviderDeps): LeasedUpdate {
  if (answer.answer === 'refused')
    log.warn({ provision: row.provisionId, reason: answer.reason }, 'a network refuses what is due of a scheme token')
  const most = Math.min(BACKOFF.firstMs * 2 ** Math.min(row.attempts, 20), BACKOFF.mostMs)
  const afterMs = 'afterMs' in answer ? answer.afterMs : undefined
  return unchangedRow(row, clock() + Math.max(afterMs ?? 0, Math.round(most * (0.5 + Math.random() / 2))))
}
