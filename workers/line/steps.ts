// The steps of the line, and the value that goes through them. Which step follows which is walk.ts; what a step asks of
// a kind is its handler's. Only `remember` writes the job's effect.
import { assert, isRefusal, type Refusal } from '../../src/errors.ts'
import type { Claims } from '../../src/job/envelope/envelope.ts'
import { panNameRefusal } from '../../src/job/envelope/names.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import { LostRace } from '../../src/store/pool.ts'
import type { Deps } from '../deps.ts'
import { withCompensation } from '../provider/compensation.ts'
import { admit as refusalOf } from './admit.ts'
import { isNamedAfterItsCard } from './pan-in-names.ts'
import { recallReceipt } from './recall.ts'
import { refuseEnvelope } from './refuse.ts'
import { answerAgain, remember as rememberDecision } from './remember.ts'
import { type Complete, type Decision, type End, NotYet, noEffect, type Selection, type Work } from './work.ts'

/** What a job brings to the line. */
export interface Entrant<Request, Opened, Prepared> {
  handler: Complete<Request, Opened, Prepared>
  work: Work<Request>
  deps: Deps
  selection: Selection
}

/** The value that goes through the steps: what the job brought, and what the steps found. */
export interface Walk<Request, Opened, Prepared> extends Entrant<Request, Opened, Prepared> {
  /** How often the line was begun again. */
  run: number
  /** By `open`: what was read, and the digest by which a repeat is known. */
  read?: { opened: Opened; digest: Buffer }
  /** By `lookUp`: the receipt, while it is being looked for. */
  finding?: Promise<Receipt | undefined>
  /** By `recall`: a receipt whose job is worked once more. */
  stored?: Receipt | undefined
  /** By `admit`: why it may not be done now, and why not under these names. */
  unadmitted?: { refusal: Refusal | undefined; misnamed: Refusal | undefined }
  /** By `prepare`, for the receipt at that revision. */
  prepared?: { value: Prepared | Refusal; revision: number | undefined }
  /** By `reach`: what was prepared, and what came of asking outside. */
  reached?: { value: Prepared | Refusal }
  /** By `decide`. */
  decision?: Decision
}

/** An end; or look for the receipt again, since somebody else was faster; or nothing: the next step. */
export type Next = End | 'again' | undefined
export type Step = <Request, Opened, Prepared>(walk: Walk<Request, Opened, Prepared>) => Promise<Next>

/** How long a batch's chunk is put off while its client doesn't read its results. */
const HELD_BACK_MS = 5_000

export const holdBack: Step = async ({ work, deps }) => {
  const isHeldBack = await deps.announcer.isHeldBack(work.addressee, work.claims.reply_to ?? null)
  return isHeldBack ? { end: 'later', ms: HELD_BACK_MS } : undefined
}

export const open: Step = async walk => {
  const { handler, work, deps } = walk
  const opened = await handler.open(work, deps)
  if (isRefusal(opened)) return refuseEnvelope(work, opened, deps)
  walk.read = { opened, digest: deps.ring.requestDigest(handler.digestText(work, opened)) }
  return undefined
}

/** Only begins: the steps up to `recall` run meanwhile. */
export const lookUp: Step = async walk => {
  walk.finding = receipts.findAll(walk.deps.store, [walk.work.receiptId]).then(([found]) => found)
  walk.finding.catch(() => {})
  return undefined
}

/** Judges; a receipt is answered first, and `refuseUnadmitted` says no. */
export const admit: Step = async walk => {
  const { claims, client } = walk.work
  const refusal = refusalOf(claims, client, holdsCard(claims), walk.deps.clock())
  walk.unadmitted = { refusal, misnamed: panNameRefusal(claims, client.names) }
  return undefined
}

function holdsCard(claims: Claims): boolean {
  return claims.request['encrypted_card'] !== undefined
}

export const prepareMeanwhile: Step = async walk => {
  const { refusal, misnamed } = done(walk.unadmitted)
  return refusal || misnamed ? undefined : prepare(walk)
}

/** Once for a receipt's revision: what is decided anew after a lost race was prepared already. */
export const prepare: Step = async walk => {
  const { handler, work, deps, stored, selection } = walk
  const revision = stored?.revision
  if (walk.prepared && walk.prepared.revision === revision) return undefined
  walk.prepared = { value: await handler.prepare(work, done(walk.read).opened, deps, stored, selection), revision }
  return undefined
}

export const recall: Step = async walk => {
  const stored = await done(walk.finding)
  return stored && ((await recallReceipt(stored, done(walk.read).digest, walk.work, walk.deps)) ?? 'again')
}

/** A chunk with records that failed is worked once more for those. */
export const recallUnlessFailed: Step = async walk => {
  const stored = await done(walk.finding)
  walk.stored = stored
  const isRedone = stored && stored.failedRecords > 0 && stored.requestDigest.equals(done(walk.read).digest)
  return isRedone ? undefined : recall(walk)
}

export const refuseUnadmitted: Step = async ({ work, deps, stored, unadmitted }) => {
  const { refusal, misnamed } = done(unadmitted)
  if (refusal) return refuseEnvelope(work, refusal, deps)
  // What has a receipt is answered, and made whole, by the name that it was stored under.
  return misnamed && !stored ? refuseEnvelope(work, misnamed, deps) : undefined
}

export const inspect: Step = async ({ work, deps }) => {
  deps.inspect?.({ reference: work.claims.reference })
  return undefined
}

/** A job that gives its card away by its names leaves nothing that would keep them. */
export const refuseNamedAfterCard: Step = async ({ work, deps, prepared }) => {
  const { value } = done(prepared)
  return isRefusal(value) && (await isNamedAfterItsCard(work, deps)) ? refuseEnvelope(work, value, deps) : undefined
}

/** A chunk refused as a whole spoils nothing: its jti stays free for the batch it really belongs to. */
export const refuseWhole: Step = async ({ work, deps, stored, prepared }) => {
  const { value } = done(prepared)
  if (!isRefusal(value)) return undefined
  // Too late to be worked once more for its failed records: it is told as it stands.
  if (!stored || value.reason !== 'batch_too_old') return refuseEnvelope(work, value, deps)
  await answerAgain(stored, work, deps)
  return { end: 'done', outcome: 'REPEATED' }
}

export const reach: Step = contended(async walk => {
  const { handler, work, deps, stored, selection } = walk
  const { value } = done(walk.prepared)
  // A probe tries records, not the outside.
  const isAsking = !isRefusal(value) && selection.probe === undefined
  walk.reached = { value: isAsking && handler.reach ? await handler.reach(work, value, deps, stored) : value }
  return undefined
})

export const decide: Step = contended(async walk => {
  const { handler, work, deps } = walk
  const { value } = done(walk.reached)
  const decision = isRefusal(value) ? noEffect(value) : await handler.decide(work, value, deps)
  walk.decision = await withCompensation(decision, work, deps)
  return undefined
})

export const remember: Step = contended(async ({ work, deps, read, decision, stored, selection }) => {
  const isProbe = selection.probe !== undefined
  const { digest } = done(read)
  return rememberDecision({ work, requestDigest: digest, decision: done(decision), previous: stored, isProbe }, deps)
})

/** From here on somebody else may be at the same rows, or at the same job outside. */
function contended(step: Step): Step {
  return async walk => {
    try {
      return await step(walk)
    } catch (error) {
      if (error instanceof NotYet) return { end: 'later', ms: error.ms }
      if (!(error instanceof LostRace)) throw error
      walk.deps.metrics.reruns.inc({ kind: walk.work.claims.kind })
      await new Promise(resolve => setTimeout(resolve, Math.random() * 4 * walk.run))
      return 'again'
    }
  }
}

/** What an earlier step of the list found. */
function done<T>(found: T | undefined): T {
  assert(found !== undefined, 'a step stands after those that it builds on')
  return found
}
