// Brings a leased row and its provider together: finds the outcome of a lost call, provisions what the loop is to
// provision, deletes what is retired, or asks for the token's state. The row alone says what is due, so that the process
// that had it before may be dead.
import type { Urgency } from '../../../src/scheme/provider.ts'
import type { Db } from '../../../src/store/pool.ts'
import type { LeasedUpdate, StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import type { Deps } from '../../deps.ts'
import { type CallAnswer, callProvider, findProvisioned } from '../call-provider.ts'
import { insertEvent, publishEvent } from '../events.ts'
import { ABSENT_MAX } from '../interpret-answer.ts'
import { writeAnswer } from '../write-answer.ts'
import { applyToken, deletedRow, differs, unchangedRow, voidRow } from './apply-answer.ts'
import { noteDrift } from './drift.ts'

/** A provider that doesn't know of a call is asked about it so often. */
const UNKNOWN_MAX = 9
const BACKOFF = { firstMs: 500, mostMs: 300_000 } as const

export interface ReconcileOptions {
  /** True: the client learns of the change otherwise than by an event, from what is read once the transaction `ended`. */
  isSilent?: (ended: Promise<void>) => boolean
  /** Runs in the transaction that writes a change of what the token shows. */
  onChange?: (db: Db, after: StoredScheme) => Promise<unknown>
}

/** The row as written; undefined where the lease was lost. Never throws because of the provider. */
export async function reconcileRow(
  row: StoredScheme,
  lease: string,
  urgency: Urgency,
  deps: Deps,
  { isSilent = () => false, onChange }: ReconcileOptions = {},
): Promise<StoredScheme | undefined> {
  const update = await updateOf(row, urgency, deps)
  // Before the transaction: a transaction has a connection, and mustn't wait for a second one.
  const scope = await deps.directory.scope(row.tokenScope)
  const ended = Promise.withResolvers<void>()
  const writing = deps.store.transaction(async db => {
    const written = await writeAnswer(update, lease, deps, { db })
    if (written === undefined || !isNews(row, written)) return { written }
    await onChange?.(db, written)
    if (isSilent(ended.promise)) return { written }
    return { written, event: await insertEvent(db, row, written, scope, deps.clock()) }
  })
  const { written, event } = await writing.finally(ended.resolve)
  if (event) await publishEvent(event, deps)
  return written
}

/** A job's own call is told by its result; the client learns by an event of every other change. */
function isNews(before: StoredScheme, after: StoredScheme): boolean {
  if (!before.current || before.retiredAt !== null || after.retiredAt !== null) return false
  const isByJob = before.asked !== null && !before.background
  return !isByJob && differs(before, after)
}

async function updateOf(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<LeasedUpdate> {
  const now = deps.clock()
  if (row.state === 'DELETED' || row.state === 'VOID') return unchangedRow(row, null, null)
  if (row.retiredAt !== null) return row.thirdParty ? removeForgotten(row, urgency, deps) : remove(row, urgency, deps)
  if (row.state === 'PENDING') return row.background ? provision(row, urgency, deps) : findOutcome(row, urgency, deps)
  const answer = await callProvider(row, 'GET', urgency, deps)
  if (answer.answer === 'token') return { ...applyToken(row, answer.token, deps.ring), checkedAt: now }
  if (isTokenUnknown(answer)) {
    await noteDrift(deps.store, { what: 'missing', ...row }, deps)
    return { ...unchangedRow({ ...row, attempts: 0 }, null, null), checkedAt: now }
  }
  return later(row, answer, deps)
}

/** Of a row that the loop provisions: it calls at once the first time, and asks for the outcome before any other call. */
async function provision(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<LeasedUpdate> {
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
    // The issuer ended the token before we knew of it, and the network never makes another one under that id.
    if (answer.isAbsent) return voidRow(row, 'token_unknown')
    // The network has had no answer from the issuer each time.
    if (answer.isFinalTwice) return voidRow(row, 'card_declined')
  }
  return later(row, answer, deps)
}

/** Of a job's row: the job goes on by itself, so that only the outcome of its call is found. */
async function findOutcome(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<LeasedUpdate> {
  if (row.asked === null) return unchangedRow(row, null)
  const found = await findProvisioned(row, urgency, deps)
  if (found.answer === 'token') return applyToken(row, found.token, deps.ring)
  if (found.answer === 'duplicate') return voidRow(row, null)
  if (found.answer !== 'no-effect' || (row.thirdParty && mayStillHappen(row))) return later(row, found, deps)
  return unchangedRow({ ...row, attempts: 0 }, null, null)
}

async function remove(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<LeasedUpdate> {
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
  if (answer.answer === 'token') return deletedRow({ ...known, reference: answer.token.reference })
  if (isTokenUnknown(answer)) return deletedRow(known)
  return later(known === row ? row : { ...known, attempts: row.attempts }, answer, deps)
}

/**
 * Of a third party's token: nothing of it stays here, not even its name. A token that is found only now is deleted without
 * being written down.
 */
async function removeForgotten(row: StoredScheme, urgency: Urgency, deps: Deps): Promise<LeasedUpdate> {
  let { reference } = row
  if (reference === null) {
    if (row.asked === null) return voidRow(row, null)
    const found = await findProvisioned(row, urgency, deps)
    if (found.answer === 'duplicate') return voidRow(row, null)
    if (found.answer === 'no-effect' && !mayStillHappen(row)) return voidRow(row, null)
    if (found.answer !== 'token') return later(row, found, deps)
    reference = found.token.reference
  }
  const answer = await callProvider({ ...row, reference }, 'DELETE', urgency, deps)
  return answer.answer === 'token' || isTokenUnknown(answer) ? voidRow(row, null) : later(row, answer, deps)
}

function isTokenUnknown(answer: CallAnswer): boolean {
  return answer.answer === 'refused' && answer.reason === 'token_unknown'
}

/** For more than a minute, a provider that doesn't know of a call may be working on it, or may not have received it yet. */
function mayStillHappen({ attempts }: StoredScheme): boolean {
  return attempts < UNKNOWN_MAX
}

/** Exponential backoff with jitter; never earlier than the provider said. */
function later(row: LeasedUpdate, answer: CallAnswer, { clock, log }: Deps): LeasedUpdate {
  if (answer.answer === 'refused')
    log.warn({ provision: row.provisionId, reason: answer.reason }, 'a network refuses what is due of a scheme token')
  const most = Math.min(BACKOFF.firstMs * 2 ** Math.min(row.attempts, 20), BACKOFF.mostMs)
  const afterMs = 'afterMs' in answer ? answer.afterMs : undefined
  return unchangedRow(row, clock() + Math.max(afterMs ?? 0, Math.round(most * (0.5 + Math.random() / 2))))
}
