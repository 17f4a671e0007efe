// The line that every job walks: authenticate, recall, admit, decide, remember, announce. One attempt is one call.
// Transactions are opened and run again here, never by a handler; the receipt, written under its lock, is what makes
// an effect happen once. It decides nothing about cards: that is the handlers' and the rules'.
import { Fault, isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { addresseeOf, CATALOGUE, type Kind, requestOf } from '../../src/job/catalogue.ts'
import { envelopeDigest } from '../../src/job/envelope/digest.ts'
import { Claims, lifetimeOf } from '../../src/job/envelope/envelope.ts'
import { receiptId as receiptIdOf } from '../../src/job/envelope/ids.ts'
import { clearNumbersOf, nameRefusal } from '../../src/job/own-card.ts'
import { fieldsOf } from '../../src/job/problem.ts'
import { parse } from '../../src/job/refusal.ts'
import type { ReceivedJob } from '../../src/queue/engine.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { hold, LostRace } from '../../src/store/pool.ts'
import * as thirdParties from '../../src/store/provider/third-party-tokens.ts'
import type { Deps } from '../deps.ts'
import { handlerOf } from '../handlers.ts'
import { owing, settleOwed } from '../provider/owed.ts'
import { admit } from './admit.ts'
import { type Authentic, authenticate } from './authenticate.ts'
import { noteDrop } from './drops.ts'
import { isNamedAfterItsCard, withoutOwnCard } from './own-card.ts'
import { answerAgain, remember, tellWithoutReceipt } from './remember.ts'
import { type Decision, type Handler, NotYet, noEffect, type Selection, type Work } from './work.ts'

/** How often one attempt decides anew after somebody else changed the same rows first. */
const RERUNS_MAX = 25
/** How long a batch's chunk is put off while its client doesn't read its results. */
const HELD_BACK_MS = 5_000
/** How long a cancelled job is put off that is still being undone. */
const UNDOING_MS = 1_000

export type End =
  | { end: 'done'; outcome: 'SUCCEEDED' | 'FAILED' | 'DROPPED' | 'REPEATED' }
  | { end: 'later'; ms: number }

/** One job, authenticated; what `fail` needs to answer it after a fault. */
export interface Known {
  kind: Kind
  work: Work<unknown>
}

/** Runs one attempt; throws a Fault. `seen` is told who the job is from as soon as that is known. */
export async function attempt(
  job: ReceivedJob,
  deps: Deps,
  selection: Selection,
  seen: (known: Known) => void,
): Promise<End> {
  const authentic = await authenticate(job, deps.settings.audience, deps.directory)
  if (typeof authentic === 'string') {
    noteDrop(authentic, deps)
    return { end: 'done', outcome: 'DROPPED' }
  }
  const now = deps.clock()
  const claims = parse(Claims, authentic.payload, 'body')
  if (isRefusal(claims)) return refuseEnvelope(unshaped(authentic, now, job.attempt), claims, deps)
  const work = workOf(authentic, claims.value, now, job.attempt)
  // As it was sent: a schema's copy has lost what can't be copied, and that would pass unseen.
  const request = parse(requestOf(claims.value.kind, claims.value.iss), authentic.payload['request'], 'body')
  if (isRefusal(request)) return refuseEnvelope(work, request, deps)
  work.request = request.value
  if (job.progress) work.progress = job.progress
  seen({ kind: claims.value.kind, work })
  const refusal = nameRefusal(claims.value, clearNumbersOf(request.value))
  if (refusal) return refuseEnvelope(work, refusal, deps)
  if (!(await hasReplyQueue(work, deps))) return refuseEnvelope(work, refuse('reply_queues', 'body.reply_to'), deps)
  const handler = handlerOf(claims.value.kind)
  if (!handler) return refuseEnvelope(work, refuse('kind_unavailable', 'body.kind'), deps)
  return walk(handler, work, deps, selection)
}

/** Who a job is from, without doing it; undefined for one that would be dropped. */
export async function identify(job: ReceivedJob, deps: Deps): Promise<Known | undefined> {
  const authentic = await authenticate(job, deps.settings.audience, deps.directory)
  if (typeof authentic === 'string') return undefined
  const claims = parse(Claims, authentic.payload, 'body')
  const now = deps.clock()
  const work = isRefusal(claims)
    ? unshaped(authentic, now, job.attempt)
    : workOf(authentic, claims.value, now, job.attempt)
  return { kind: work.claims.kind, work }
}

async function walk(
  handler: Handler<unknown, unknown, unknown>,
  work: Work<unknown>,
  deps: Deps,
  selection: Selection,
): Promise<End> {
  const { claims, client } = work
  if (CATALOGUE[claims.kind].bulk && (await deps.announcer.isHeldBack(work.addressee, claims.reply_to ?? null)))
    return { end: 'later', ms: HELD_BACK_MS }
  const opened = await handler.open(work, deps)
  if (isRefusal(opened)) return refuseEnvelope(work, opened, deps)
  const digest = deps.ring.requestDigest(handler.digestText(work, opened))
  let prepared: unknown
  let preparedFor: number | undefined
  for (let run = 0; run <= RERUNS_MAX; run += 1) {
    const finding = receipts.find(deps.store, work.receiptId)
    finding.catch(() => {})
    const refusal = admit(claims, client, holdsCard(claims), deps.clock())
    // Cryptography while the store is asked. A chunk's depends on what its receipt says.
    if (!refusal && !CATALOGUE[claims.kind].bulk)
      prepared ??= await handler.prepare(work, opened, deps, undefined, selection)
    const stored = await finding
    const redo = stored !== undefined && stored.failedRecords > 0
    if (stored && !(redo && stored.requestDigest.equals(digest))) {
      const recalled = await recall(stored, digest, work, deps)
      if (recalled) return recalled
      continue
    }
    if (refusal) return refuseEnvelope(work, refusal, deps)
    // A chunk shows its records itself.
    if (!CATALOGUE[claims.kind].bulk) deps.inspect?.({ reference: claims.reference })
    // What a chunk comes to depends on what it came to before.
    if (preparedFor !== stored?.revision) prepared = undefined
    prepared ??= await handler.prepare(work, opened, deps, stored, selection)
    preparedFor = stored?.revision
    // Too late to be worked once more for its failed records: it is told as it stands.
    if (stored && isRefusal(prepared) && prepared.reason === 'batch_too_old') {
      await answerAgain(stored, work, deps)
      return { end: 'done', outcome: 'REPEATED' }
    }
    // A chunk refused as a whole spoils nothing: its jti stays free for the batch it really belongs to. A job that gives
    // its card away by its names leaves nothing that would keep them.
    if (isRefusal(prepared) && (CATALOGUE[claims.kind].bulk || (await isNamedAfterItsCard(work, deps))))
      return refuseEnvelope(work, prepared, deps)
    try {
      // A probe tries records, not the outside.
      const reached: unknown =
        isRefusal(prepared) || !handler.reach || selection.probe
          ? prepared
          : await handler.reach(work, prepared, deps, stored)
      const decision: Decision = isRefusal(reached)
        ? owing(noEffect(reached), work, deps)
        : await handler.decide(work, reached, deps)
      return await remember(work, digest, decision, stored, deps, selection.probe !== undefined)
    } catch (error) {
      if (error instanceof NotYet) return { end: 'later', ms: error.ms }
      if (!(error instanceof LostRace)) throw error
      deps.metrics.reruns.inc({ kind: claims.kind })
      await new Promise(resolve => setTimeout(resolve, Math.random() * 4 * run))
    }
  }
  throw new Fault('contention')
}

/**
 * A receipt is there: answer it again, to the current envelope's reply_to, unless it stands for another request.
 * Undefined where it is another by now.
 */
async function recall(
  stored: receipts.Receipt,
  digest: Buffer,
  work: Work<unknown>,
  deps: Deps,
): Promise<End | undefined> {
  // One that was cancelled before it began knows nothing of the request.
  if (!stored.requestDigest.equals(digest) && stored.requestDigest.length > 0)
    return refuseEnvelope(work, refuse('jti_reused', 'body.jti'), deps)
  // Cancelled while it spoke to the outside: it is told when that is undone, and not before.
  if (stored.requestDigest.length === 0 && stored.reversal === 'REQUIRED') return { end: 'later', ms: UNDOING_MS }
  // Whoever repeats it is told that it holds: a reversal of the envelope before must not take it away afterwards.
  if (isHandedOn(stored, work) && !(await handOn(stored, work, deps))) return undefined
  await answerAgain(stored, work, deps)
  return { end: 'done', outcome: 'REPEATED' }
}

/** Whether it could be undone, and is asked for by an envelope that isn't older. */
function isHandedOn({ status, tokenId, reversal, ...stored }: receipts.Receipt, work: Work<unknown>): boolean {
  const couldBeUndone = status === 'SUCCEEDED' && tokenId !== null && reversal === null
  return couldBeUndone && !stored.envelopeDigest.equals(work.envelopeDigest) && stored.acceptedAt <= work.acceptedAt
}

function handOn(stored: receipts.Receipt, work: Work<unknown>, { store }: Deps): Promise<boolean> {
  return store.transaction(async db => {
    await hold(db, stored.receiptId)
    return receipts.handOn(db, stored, work)
  })
}

/** An answer without a receipt. The same jti may come again. */
export async function refuseEnvelope(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<End> {
  deps.metrics.refusedEnvelopes.inc({ reason: refusal.reason })
  await tellOnly(work, refusal, deps)
  return { end: 'done', outcome: 'FAILED' }
}

/** After a fault has used up its attempts, or a defect: a 500, which is no receipt. */
export async function answerFault(work: Work<unknown>, deps: Deps): Promise<void> {
  await tellOnly(work, refuse('internal', 'body'), deps)
}

async function tellOnly(work: Work<unknown>, refusal: Refusal, deps: Deps): Promise<void> {
  // A chunk that ends without a receipt leaves nothing at third parties either.
  if (deps.outside && work.claims.kind === 'token-batch')
    await thirdParties.retireUntakenOf(deps.store, work.receiptId, deps.clock())
  if (await settleOwed(work, refusal, deps)) return
  const told = await withoutOwnCard(work, deps)
  if (!(await hasReplyQueue(work, deps))) delete told.claims.reply_to
  await tellWithoutReceipt(told, { fields: fieldsOf(refusal) }, deps)
}

/** Whoever is refused can't open more queues than others. */
async function hasReplyQueue({ claims, addressee }: Work<unknown>, { directory }: Deps): Promise<boolean> {
  return claims.reply_to === undefined || directory.openReplyQueue(addressee, claims.reply_to)
}

function workOf(authentic: Authentic, claims: Claims, now: number, attemptNo: number): Work<unknown> {
  const { client, jws, block } = authentic
  return {
    claims,
    request: claims.request,
    client,
    addressee: addresseeOf({ iss: claims.iss, clientId: client.clientId }),
    receiptId: receiptIdOf(client.clientId, claims.jti),
    envelopeDigest: envelopeDigest(jws),
    block,
    acceptedAt: lifetimeOf(claims, false).iat,
    now,
    attempt: attemptNo,
  }
}

/** Claims without their shape can still be answered: who, under which jti and to where is known. */
function unshaped(authentic: Authentic, now: number, attemptNo: number): Work<unknown> {
  const { payload, jti, iss } = authentic
  const kind =
    typeof payload['kind'] === 'string' && Object.hasOwn(CATALOGUE, payload['kind'])
      ? (payload['kind'] as Kind)
      : 'token-create'
  const iat =
    typeof payload['iat'] === 'number' && Number.isFinite(payload['iat']) && Math.abs(payload['iat']) < 1e11
      ? payload['iat']
      : now / 1000
  const claims = { iss, jti, kind, iat, request: isObject(payload['request']) ? payload['request'] : {} } as Claims
  const replyTo = payload['reply_to']
  const reference = payload['reference']
  if (typeof replyTo === 'string' && /^[a-z0-9]{1,32}$/.test(replyTo)) claims.reply_to = replyTo
  if (Claims.shape.reference.safeParse(reference).success && reference !== undefined)
    claims.reference = reference as string
  return workOf(authentic, claims, now, attemptNo)
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}

function holdsCard(claims: Claims): boolean {
  return claims.request['encrypted_card'] !== undefined
}
