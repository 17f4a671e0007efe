// Runs one attempt at a job: finds its client, checks its form, and takes it through the steps (walk.ts). It decides
// nothing about cards: handlers and rules do.
import { isOfGateway, STOLEN } from '../../src/acts/reversals.ts'
import { isRefusal, refuse } from '../../src/errors.ts'
import { askedOf, envelopeDigest, NOT_UNDERSTOOD } from '../../src/job/envelope/digest.ts'
import { Claims, lifetimeOf } from '../../src/job/envelope/envelope.ts'
import { receiptId as receiptIdOf } from '../../src/job/envelope/ids.ts'
import { kindName } from '../../src/job/envelope/text.ts'
import { requestSchema } from '../../src/job/kind-entry.ts'
import { clearNumbersOf, nameRefusal } from '../../src/job/pan-in-names.ts'
import { parse } from '../../src/job/refusal.ts'
import { Reversal } from '../../src/job/system/reversal.ts'
import { addresseeOf } from '../../src/job/system-clients.ts'
import type { ReceivedJob } from '../../src/queue/engine.ts'
import { moveToFailed } from '../../src/queue/failed.ts'
import type { End, Selection, Work } from '../work.ts'
import { limitedTo } from './admit.ts'
import { type Authentic, authenticate, claimedClient } from './authenticate.ts'
import type { LineDeps } from './deps.ts'
import { handlerOf } from './handlers.ts'
import { traced } from './job-trace.ts'
import { hasReplyQueue, refuseEnvelope } from './refuse.ts'
import { walk } from './walk.ts'

/** A job that is authenticated. That is enough to answer it, whatever fails later. */
export interface Identified {
  kind: string
  work: Work<unknown>
}

/**
 * Runs one attempt. Throws if the attempt fails; `toFault` turns the error into a Fault. Calls `onIdentified` as soon
 * as the job's client and kind are known.
 */
export async function attempt(
  job: ReceivedJob,
  deps: LineDeps,
  selection: Selection,
  onIdentified: (identified: Identified) => void,
): Promise<End> {
  const authentic = await authenticate(job, deps)
  if (typeof authentic === 'string' || authentic.theft === 'after') {
    if (typeof authentic !== 'string') await withhold(job, authentic, deps)
    const drop = typeof authentic === 'string' ? authentic : 'revoked'
    deps.dropped.note(drop, { claimedClient: await claimedClient(job, deps.directory) })
    return { end: 'done', outcome: 'DROPPED' }
  }
  const now = deps.clock()
  const claims = parse(deps.catalogue.claims, authentic.payload, 'body')
  if (isRefusal(claims)) return refuseEnvelope(malformed(authentic, now, job, deps), claims, deps)
  const work = workOf(authentic, claims.value, now, job, deps)
  const { optional: { knows_key: knownKey } = {}, reply_to: replyTo = null } = claims.value
  if (knownKey !== undefined) deps.keyReaders.note(knownKey, { clientId: work.client.clientId, replyTo })
  const begun = { job, authentic, claims: claims.value, work, selection }
  const gathering = work.isBackground ? { ...deps, ...deps.background } : deps
  return traced(work, gathering, selection, own => attemptKnown(begun, own, onIdentified))
}

/** A job whose claims have the right form. */
interface Begun {
  job: ReceivedJob
  authentic: Authentic
  claims: Claims
  work: Work<unknown>
  selection: Selection
}

async function attemptKnown(
  { job, authentic, claims, work, selection }: Begun,
  deps: LineDeps,
  onIdentified: (identified: Identified) => void,
): Promise<End> {
  // The request is checked as it was sent: the copy in `claims` lacks unknown members, which must be refused.
  const request = parse(requestSchema(work.entry, claims.iss), authentic.payload['request'], 'body')
  if (isRefusal(request)) return refuseEnvelope(work, request, deps)
  work.request = request.value
  work.asked = askedOf(claims.kind, claims.request)
  if (job.progress) work.progress = job.progress
  onIdentified({ kind: claims.kind, work })
  const refusal = nameRefusal(claims, clearNumbersOf(request.value))
  if (refusal) return refuseEnvelope(work, refusal, deps)
  if (!(await hasReplyQueue(work, deps))) return refuseEnvelope(work, refuse('reply_queues', 'body.reply_to'), deps)
  const handler = handlerOf(claims.kind, deps)
  if (!handler) return refuseEnvelope(work, refuse('kind_unavailable', 'body.kind'), deps)
  return walk({ handler, work, deps, selection })
}

/**
 * Keeps a reversal that a stolen key signed after the theft, for an operator to confirm. One that undoes what no gateway asked
 * for can't be confirmed, so a thief can't fill the failed set with it.
 */
async function withhold(
  job: ReceivedJob,
  { jws, payload, client: { clientId } }: Authentic,
  { store, queues, clock }: LineDeps,
): Promise<void> {
  const request = Reversal.safeParse(payload['request'])
  if (!request.success || !(await isOfGateway(store, request.data))) return
  const copy = { jws, kind: 'reversal', code: STOLEN, attempt: job.attempt, failedAt: clock(), jobId: job.id, clientId }
  await moveToFailed(queues, 'reversal', job, copy)
}

/** Finds out whose job it is without working it; undefined for a job that is dropped. */
export async function identify(job: ReceivedJob, deps: LineDeps): Promise<Identified | undefined> {
  const authentic = await authenticate(job, deps)
  if (typeof authentic === 'string' || authentic.theft === 'after') return undefined
  const claims = parse(deps.catalogue.claims, authentic.payload, 'body')
  const now = deps.clock()
  const work = isRefusal(claims)
    ? malformed(authentic, now, job, deps)
    : workOf(authentic, claims.value, now, job, deps)
  return { kind: work.claims.kind, work }
}

type Attempted = Pick<ReceivedJob, 'attempt' | 'isBackground' | 'enqueuedAt'>

function workOf(
  authentic: Authentic,
  claims: Claims,
  now: number,
  { attempt, isBackground = false, enqueuedAt }: Attempted,
  { catalogue }: Pick<LineDeps, 'catalogue'>,
): Work<unknown> {
  const { jws, block, theft } = authentic
  const client = limitedTo(claims.only_entity, authentic.client)
  return {
    claims,
    entry: catalogue.entry(claims.kind),
    request: claims.request,
    client,
    addressee: addresseeOf({ iss: claims.iss, clientId: client.clientId }),
    receiptId: receiptIdOf(client.clientId, claims.jti),
    envelopeDigest: envelopeDigest(jws),
    signedKind: claims.kind,
    asked: NOT_UNDERSTOOD,
    block,
    acceptedAt: lifetimeOf(claims, false).iat,
    enqueuedAt,
    now,
    attempt,
    isStolen: theft !== undefined,
    isBackground,
  }
}

/** A job whose claims are malformed. Client, jti and results queue are known, so that the sender can be answered. */
function malformed(
  authentic: Authentic,
  now: number,
  attempted: Attempted,
  deps: Pick<LineDeps, 'catalogue'>,
): Work<unknown> {
  const { payload, jti, iss } = authentic
  const kind = deps.catalogue.find(payload['kind']) ? payload['kind'] : 'token-create'
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
  const work = workOf(authentic, claims, now, attempted, deps)
  return { ...work, signedKind: kindName().safeParse(payload['kind']).data ?? claims.kind }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value)
}
