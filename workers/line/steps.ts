// The steps of the line, and the value that goes through them. walk.ts has the order of the steps; a kind's handler
// does what differs by kind. Only `remember` writes the job's effect.
import { assert, isRefusal, type Refusal } from '../../src/errors.ts'
import type { Claims } from '../../src/job/envelope/envelope.ts'
import { panNameRefusal } from '../../src/job/envelope/names.ts'
import { isProved } from '../../src/store/job/receipt.ts'
import type { Receipt, StoredReceipt } from '../../src/store/job/receipts.ts'
import { LostRace } from '../../src/store/pool.ts'
import { CardPhaseChanged } from '../../src/store/token/card-phases.ts'
import type { Hashed } from '../../src/vault/ring/held-keys.ts'
import {
  type Complete,
  type Decision,
  type End,
  noEffect,
  Outdated,
  Postponed,
  type Selection,
  type Work,
} from '../work.ts'
import { permitted, admit as refusalOf } from './admit.ts'
import type { ReadContent } from './cards.ts'
import type { LineDeps } from './deps.ts'
import { withCompensation } from './owed.ts'
import { recallReceipt, refuseUnproved } from './recall.ts'
import { refuseEnvelope } from './refuse.ts'
import { answerAgain, remember as rememberDecision } from './remember.ts'

/** A job when the line begins. */
export interface LineInput<Request, Opened, Prepared> {
  handler: Complete<Request, Opened, Prepared>
  work: Work<Request>
  deps: LineDeps
  selection: Selection
}

/** The value that goes through the steps: the job, and what the steps have found. */
export interface Walk<Request, Opened, Prepared> extends LineInput<Request, Opened, Prepared> {
  /** How often the line was begun again for this attempt. */
  run: number
  /** Set by `open`: what was decrypted, and the digest that recognises a repeat. */
  read?: { opened: Opened; digest: Hashed }
  /** Set by `lookUp`, which doesn't wait for it. */
  receipt?: Promise<StoredReceipt | undefined>
  /** Set by `recallUnlessFailed`: the receipt of a chunk that is worked again. */
  previous?: StoredReceipt | undefined
  /** Set by `admit`: why the job may not be done now, why its client may not ask for it, and why its names are refused. */
  unadmitted?: { refusal: Refusal | undefined; unpermitted: Refusal | undefined; misnamed: Refusal | undefined }
  /** Set by `prepare`, for the receipt with that revision. */
  prepared?: { value: Prepared | Refusal; revision: number | undefined }
  /** Set by `reach`: the prepared value with the results of provider calls. */
  reached?: { value: Prepared | Refusal }
  /** Set by `decide`. */
  decision?: Decision
}

/**
 * The end of the attempt; `again`: back to `lookUp`, because another transaction was first; undefined: on to the next
 * step.
 */
export type Next = End | 'again' | undefined
export type Step = <Request, Opened, Prepared>(walk: Walk<Request, Opened, Prepared>) => Promise<Next>

/** How long a chunk is delayed while too many results of its client wait for room on their queue. */
const HELD_BACK_MS = 5_000

export const holdBack: Step = async ({ handler, work, deps }) => {
  const isHeldBack = await deps.announcer.isHeldBack(work.addressee, work.claims.reply_to ?? null)
  const ms = isHeldBack ? HELD_BACK_MS : await handler.pauseOf?.(work, deps)
  return ms === undefined ? undefined : { end: 'later', ms }
}

export const open: Step = async walk => {
  const { handler, work, deps } = walk
  const opened = await handler.open(work, deps)
  if (isRefusal(opened)) return refuseEnvelope(work, opened, deps)
  walk.read = { opened, digest: deps.ring.requestDigest(handler.digestText(work, opened)) }
  return undefined
}

/** Starts to look for the receipt and doesn't wait: the steps up to `recall` run meanwhile. */
export const lookUp: Step = async walk => {
  const { work } = walk
  walk.receipt = walk.deps.lookUps.receipt(work.receiptId).then(found => {
    work.foundRevision = found?.revision ?? 0
    return found
  })
  walk.receipt.catch(() => {})
  return undefined
}

/**
 * Only checks; `recall` and `refuseUnadmitted` refuse. A job with a receipt is answered from it though its time is over,
 * but never to a sender who may not ask for it.
 */
export const admit: Step = async walk => {
  const { handler, work, deps, read } = walk
  const { claims, client } = work
  const unpermitted = permitted(work) ?? handler.permits?.(work, present(read).opened, deps)
  const refusal = refusalOf(work, holdsCard(claims), deps.clock()) ?? unpermitted
  walk.unadmitted = { refusal, unpermitted, misnamed: panNameRefusal(claims, client.names) }
  return undefined
}

function holdsCard(claims: Claims): boolean {
  return claims.request['encrypted_card'] !== undefined
}

export const prepareMeanwhile: Step = async walk => {
  const { refusal, misnamed } = present(walk.unadmitted)
  return refusal || misnamed ? undefined : prepare(walk)
}

/**
 * Runs once per revision of the receipt. After a lost race it prepares again only if the prepared value is outdated.
 */
export const prepare: Step = async walk => {
  const { handler, work, deps, previous, selection } = walk
  const revision = previous?.revision
  if (walk.prepared && walk.prepared.revision === revision) return undefined
  walk.prepared = { value: await handler.prepare(work, present(walk.read).opened, deps, previous, selection), revision }
  return undefined
}

export const recall: Step = walk => recallUnless(walk, () => false)

/** Answers from the receipt, unless it has failed records: then the chunk is worked again for those. */
export const recallUnlessFailed: Step = async walk => {
  walk.previous = await present(walk.receipt)
  return recallUnless(walk, ({ failedRecords }) => failedRecords > 0)
}

/** Answers from the receipt, unless this is its request and `isWorkedAgain`. */
async function recallUnless<Request, Opened, Prepared>(
  walk: Walk<Request, Opened, Prepared>,
  isWorkedAgain: (stored: StoredReceipt) => boolean,
): Promise<Next> {
  const { handler, work, deps } = walk
  const stored = await present(walk.receipt)
  if (!stored) return undefined
  if (!isProved(deps.ring, stored)) return refuseUnproved(work, deps)
  const isVery = isSameText(stored, walk)
  if (isVery && isWorkedAgain(stored)) return undefined
  const { unpermitted } = present(walk.unadmitted)
  const refusal = unpermitted ?? (await deps.cards.storedAnswerRefusal(work, stored, deps))
  if (refusal) return refuseEnvelope(work, refusal, deps)
  const isSame = isVery || (await deps.cards.isSameContent(stored, work, readContent(walk), deps))
  if (isRefusal(isSame)) return refuseEnvelope(work, isSame, deps)
  if (isSame && isWorkedAgain(stored)) return undefined
  if (isSame) await handler.takeBeside?.(work, deps)
  return (await recallReceipt(stored, isSame, work, deps)) ?? 'again'
}

function readContent<Request, Opened, Prepared>({ handler, work, read }: Walk<Request, Opened, Prepared>): ReadContent {
  return handler.contentOf && (() => present(handler.contentOf?.(work, present(read).opened)))
}

/**
 * Whether the receipt belongs to this very text. Throws `Fault('key_unavailable')` if this process doesn't hold the version
 * of the receipt's key.
 */
function isSameText<Request, Opened, Prepared>(
  stored: Receipt,
  { handler, work, deps, read }: Walk<Request, Opened, Prepared>,
): boolean {
  const { opened, digest } = present(read)
  const { requestDigest, digestVersion } = stored
  // The receipt of a job that was cancelled before it began has no digest.
  if (requestDigest.length === 0) return false
  if (digestVersion === digest.keyVersion) return requestDigest.equals(digest.hash)
  return requestDigest.equals(deps.ring.requestDigestBy(handler.digestText(work, opened), digestVersion))
}

export const refuseUnadmitted: Step = async ({ work, deps, previous, unadmitted }) => {
  const { refusal, misnamed } = present(unadmitted)
  if (refusal) return refuseEnvelope(work, refusal, deps)
  // A chunk that has a receipt isn't refused for its names, because the receipt is stored under them already.
  return misnamed && !previous ? refuseEnvelope(work, misnamed, deps) : undefined
}

export const inspect: Step = async ({ work, deps }) => {
  deps.inspect?.({ reference: work.claims.reference })
  return undefined
}

/** Refuses a job whose names hold its card's number, without a receipt, because a receipt would store the names. */
export const refuseNamedAfterCard: Step = async ({ work, deps, prepared }) => {
  const { value } = present(prepared)
  return isRefusal(value) && (await deps.cards.isNamedAfterItsCard(work, deps))
    ? refuseEnvelope(work, value, deps)
    : undefined
}

/** Refuses a chunk as a whole, without a receipt, so that its jti stays free for the right chunk. */
export const refuseWhole: Step = async ({ work, deps, previous, prepared }) => {
  const { value } = present(prepared)
  if (!isRefusal(value)) return undefined
  // The batch is too old to work the failed records again, so the stored answer is sent again.
  if (!previous || value.reason !== 'batch_too_old') return refuseEnvelope(work, value, deps)
  await answerAgain(previous, work, deps)
  return { end: 'done', outcome: 'REPEATED' }
}

export const reach: Step = contended(async walk => {
  const { handler, work, deps, previous, selection } = walk
  const { value } = present(walk.prepared)
  // A probe makes no provider calls.
  const isAsking = !isRefusal(value) && selection.probe === undefined
  walk.reached = { value: isAsking && handler.reach ? await handler.reach(work, value, deps, previous) : value }
  return undefined
})

export const decide: Step = contended(async walk => {
  const { handler, work, deps } = walk
  const { value } = present(walk.reached)
  const decision = isRefusal(value) ? noEffect(value) : await handler.decide(work, value, deps)
  walk.decision = await withCompensation(decision, work, deps)
  return undefined
})

export const remember: Step = contended(async walk => {
  const { work, deps, read, decision, previous, selection, run } = walk
  const isProbe = selection.probe !== undefined
  const { digest } = present(read)
  const content = await deps.cards.contentDigest(work, readContent(walk), digest.keyVersion, deps)
  return rememberDecision({ work, digest, content, decision: present(decision), previous, isProbe, run }, deps)
})

/**
 * For steps that compete with others: another transaction may change the same rows, or another attempt may work the
 * same job.
 */
function contended(step: Step): Step {
  return async walk => {
    try {
      return await step(walk)
    } catch (error) {
      if (error instanceof Postponed) return { end: 'later', ms: error.ms }
      if (!(error instanceof LostRace)) throw error
      if (error instanceof CardPhaseChanged) await walk.deps.ring.refresh()
      if (error instanceof Outdated || error instanceof CardPhaseChanged) delete walk.prepared
      walk.deps.metrics.reruns.inc({ kind: walk.work.claims.kind })
      await new Promise(resolve => setTimeout(resolve, Math.random() * 4 * walk.run))
      return 'again'
    }
  }
}

/** A value that an earlier step has set; throws if it is missing. */
function present<T>(found: T | undefined): T {
  assert(found !== undefined, 'a step stands after those that it builds on')
  return found
}
