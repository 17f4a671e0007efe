// Writes that are answered later (`Prefer: respond-async`): the envelope is stored before the 202 and queued after it;
// if queueing fails, the sweeper does it later. The answer to a question for the operation is made from the receipt as
// it is then.
import { createHash, randomUUID } from 'node:crypto'
import { setTimeout as pause } from 'node:timers/promises'
import { assert, isRefusal, type Refusal, refuse } from '../../../src/errors.ts'
import { answerFrom } from '../../../src/job/answer/receipt-answer.ts'
import { readResult } from '../../../src/job/answer/result.ts'
import { envelopeDigest, requestText } from '../../../src/job/envelope/digest.ts'
import { receiptId as receiptIdOf, refusalResultId } from '../../../src/job/envelope/ids.ts'
import { type Failure, failureFor } from '../../../src/job/problem.ts'
import { describeError, type Logger } from '../../../src/logger.ts'
import { levelOfFailure } from '../../../src/server-error.ts'
import * as operations from '../../../src/store/job/operations.ts'
import type { Receipt } from '../../../src/store/job/receipts.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import * as shownTokens from '../../../src/store/token/token-views.ts'
import type { Caller } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { type Decline, roleMissing, TOKEN_ERRORS } from '../error-bodies.ts'
import { findVisible } from '../visible-token.ts'
import { declineOfJob, roleDecline, type Write, type Written, writtenOf } from './write.ts'

export type OperationDeps = Pick<
  GatewayDeps,
  'store' | 'queues' | 'catalogue' | 'requestReply' | 'directory' | 'schemeTokens' | 'clock' | 'log'
>

/**
 * `queued` resolves when the queue has the job or couldn't be reached; in the second case the sweeper queues the job.
 */
export type Accepted = { receiptId: string; queued: Promise<void> } | { declined: Decline }

/** When the sweeper may first queue the operation; a running gateway has queued it by then. */
const FIRST_DUE_MS = 5_000
/** How often the store is asked whether an operation has ended, ms. */
const ASK_MS = 250

/** Whether the header `Prefer` (RFC 7240) has `respond-async` among its preferences, in upper or lower case. */
export function prefersAsync(prefer: string | undefined): boolean {
  return prefer?.split(',').some(one => one.trim().toLowerCase() === 'respond-async') ?? false
}

/**
 * Stores an operation before the promise resolves. A repeat with the same idempotency key and the same request is the
 * same operation.
 */
export async function accept(write: Write, caller: Caller, deps: OperationDeps): Promise<Accepted> {
  const { store, requestReply, clock } = deps
  const entityId = await entityNamed(write.request, caller, deps)
  const { kind, request, idempotencyKey: jti = randomUUID() } = write
  const { clientId } = caller.client
  const unpermitted = roleDecline(write, caller, deps)
  if (unpermitted) return { declined: unpermitted }
  // A synchronous write has used the key: a worker decides whether this is the same request, before it is answered.
  const receiptId = receiptIdOf(clientId, jti)
  if (write.idempotencyKey !== undefined && (await isUsed(receiptId, deps))) {
    const written = writtenOf(await requestReply.ask(caller, kind, request, { idempotencyKey: jti }))
    if ('declined' in written) return written
  }
  const acceptedAt = clock()
  const signed = await requestReply.sign(caller, kind, request, { jti, listens: false })
  if (isRefusal(signed)) return declinedBy(signed)
  const { jws } = signed.data
  const requestDigest = createHash('sha256')
    .update(`${caller.onlyEntity ?? ''}\n${requestText(kind, request)}`)
    .digest()
  const operation = {
    receiptId,
    clientId,
    entityId,
    kind,
    jobId: signed.id,
    requestDigest,
    jws,
    acceptedAt,
    refusalId: refusalResultId(receiptId, envelopeDigest(jws)),
    expiresAt: signed.expiresAt,
    dueAt: acceptedAt + FIRST_DUE_MS,
  }
  const fresh = await operations.accept(store, operation).catch(async error => {
    // The commit may have taken effect although its answer was lost: then the sweeper queues the operation.
    if ((await operations.find(store, receiptId)) === undefined) throw error
    return false
  })
  if (fresh) {
    const queued = deps.queues.add(kind, { id: signed.id, data: { jws } }).catch(error => {
      deps.log[levelOfFailure(error)](
        { receipt: receiptId, err: error },
        'an accepted operation could not be queued; it will be',
      )
    })
    return { receiptId, queued }
  }
  const known = await operations.find(store, receiptId)
  assert(known, 'an operation that is not new is there')
  const accepted = { receiptId, queued: Promise.resolve() }
  if (known.requestDigest.equals(requestDigest)) return accepted
  if (!('encrypted_card' in request)) return declinedBy(refuse('jti_reused', 'body'))
  // Other bytes may be the same card, encrypted again: a worker decides, before this request is answered.
  if (!(await hasEnded(receiptId, deps))) return declined(writtenOf({ end: 'late', reversalStatus: 'NONE' }))
  const written = writtenOf(await requestReply.ask(caller, kind, request, { idempotencyKey: jti }))
  return 'declined' in written ? written : accepted
}

/** Whether a write that isn't an operation has the key, or has had it. */
async function isUsed(receiptId: string, { store, requestReply }: OperationDeps): Promise<boolean> {
  if ((await operations.find(store, receiptId)) !== undefined) return false
  return requestReply.isAsking(receiptId) || (await receipts.find(store, receiptId)) !== undefined
}

/**
 * Waits for the end of an operation. Until then no other envelope is sent under its key: if that were given up, the operation
 * would be cancelled. False if it doesn't end in time.
 */
async function hasEnded(receiptId: string, deps: OperationDeps): Promise<boolean> {
  const { store, clock, requestReply } = deps
  const deadline = clock() + requestReply.timeoutMs
  for (;;) {
    await recordAnswers([receiptId], deps)
    if ((await operations.find(store, receiptId))?.state !== 'QUEUED') return true
    if (clock() >= deadline) return false
    await pause(ASK_MS)
  }
}

/** The entity of what the request names, so that callers for another entity don't see what became of it. */
async function entityNamed(
  { token_scope: scope, entity_id: entity, id }: Record<string, unknown>,
  caller: Caller,
  deps: OperationDeps,
): Promise<string> {
  const found = typeof id === 'string' ? (await findVisible(id, caller, deps))?.scope : undefined
  const named = typeof scope === 'string' ? await deps.directory.scope(scope) : found
  const owner = typeof entity === 'string' ? entity : named?.entityId
  return owner !== undefined && caller.client.entities.includes(owner) ? owner : caller.entityId
}

function declinedBy(refusal: Refusal): { declined: Decline } {
  return declined(writtenOf({ end: 'refused', refusal }))
}

function declined(written: Written): { declined: Decline } {
  assert('declined' in written, 'such an end declines')
  return written
}

/** The state of an operation, in the form of the interface. */
export interface OperationStatus {
  receipt_id: string
  status: 'PENDING' | 'SUCCEEDED' | 'FAILED'
  /** 0 if the operation isn't answered, or was answered without a receipt. */
  revision: number
  code?: number
  record?: Record<string, unknown>
  error?: Record<string, unknown>
  accepted_at: string
  completed_at?: string
}

/** The state of an operation. Another client's operation is answered like a missing one. */
export async function find(receiptId: string, caller: Caller, deps: OperationDeps): Promise<OperationStatus | Decline> {
  const { store } = deps
  const { client, roles } = caller
  const none = failureFor('operation_not_found', 'params.id')
  const seen = await operations.find(store, receiptId)
  if (!seen || seen.clientId !== client.clientId || !client.entities.includes(seen.entityId)) return none
  const entry = deps.catalogue.find(seen.kind)
  if (entry?.statusAt !== 'operations') return none
  const { role } = entry
  if (!roles.includes('TOKEN_READ') && !(role && roles.includes(role)))
    return roleMissing('params', 'TOKEN_READ', ...(role ? [role] : []))
  if (seen.state === 'QUEUED') await recordAnswers([receiptId], deps)
  const operation = await operations.find(store, receiptId)
  if (!operation) return none
  if (operation.state === 'QUEUED') return { ...headOf(operation), status: 'PENDING' }
  // If there is a receipt, it is the answer, unless the operation was refused while the receipt existed already
  // (revision 0).
  const isBeside = operation.state === 'REFUSED' && operation.revision === 0
  const receipt = isBeside ? undefined : await receipts.find(store, receiptId)
  if (receipt) return statusByReceipt(operation, receipt, deps)
  return operation.state === 'ANSWERED' ? none : statusWithoutReceipt(operation)
}

async function statusByReceipt(
  operation: operations.Operation,
  receipt: Receipt,
  deps: OperationDeps,
): Promise<OperationStatus> {
  const { revision, completedAt, tokenId } = receipt
  const token = tokenId === null ? undefined : await shownTokens.find(deps.store, tokenId)
  const scope = token && (await deps.directory.scope(token.tokenScope))
  const scheme = token && (await deps.schemeTokens.find(token.tokenId, scope))
  const { retell } = deps.catalogue.find(receipt.kind) ?? {}
  const said = answerFrom(receipt, retell, token, await deps.directory.binRange(token?.binRange ?? null), scheme)
  const ended = 'failure' in said ? failed(said.failure, completedAt) : { status: 'SUCCEEDED' as const, ...said }
  return { ...headOf(operation), revision, ...ended, completed_at: moment(completedAt) }
}

function statusWithoutReceipt(operation: operations.Operation): OperationStatus {
  const { failure, revision, expiresAt, completedAt } = operation
  const at = completedAt ?? expiresAt
  const ended = failed(failure ?? failureFor('envelope_expired', 'body.exp'), at)
  return { ...headOf(operation), revision, ...ended, completed_at: moment(at) }
}

function headOf({ receiptId, acceptedAt }: operations.Operation) {
  return { receipt_id: receiptId, status: 'PENDING' as const, revision: 0, accepted_at: moment(acceptedAt) }
}

/** The error of an operation: the same as if the write had been refused at once. */
function failed(failure: Failure, at: number) {
  const said = declineOfJob(failure)
  return { status: 'FAILED' as const, code: said.status, error: TOKEN_ERRORS.render(said, at) }
}

const moment = (ms: number) => new Date(ms).toISOString()

/**
 * Records the answers that are in the store, and erases the answered envelopes. Returns the receipts of the answered
 * operations.
 */
export async function recordAnswers(
  receiptIds: readonly string[],
  { store, clock, log }: Pick<OperationDeps, 'store' | 'clock' | 'log'>,
): Promise<Set<string>> {
  const signs = await operations.findSigns(store, receiptIds)
  await operations.answer(
    store,
    signs.filter(({ body }) => body === null).map(({ receiptId }) => receiptId),
  )
  for (const { receiptId, body } of signs) {
    if (body !== null) await operations.refuse(store, receiptId, endByBody(receiptId, body, clock(), log))
  }
  return new Set(signs.map(({ receiptId }) => receiptId))
}

/**
 * The end of an operation that was answered without a receipt. An answer that can't be read becomes a 500, because the
 * job would otherwise be sent again until it expires. The effect of the job isn't known, so `reversal_status` is
 * `REQUIRED`. The 500 has revision 1, so that a receipt replaces it.
 */
function endByBody(receipt: string, body: string, now: number, log: Logger): operations.Refused {
  try {
    const { error: failure, revision, completed_at } = readResult(body)
    assert(failure, 'what is told without a receipt is a failure')
    assert(revision !== undefined, 'an answer has a revision')
    return { failure, revision, completedAt: completed_at === undefined ? now : Date.parse(completed_at) }
  } catch (error) {
    log.error(
      { receipt, error: describeError(error) },
      'the answer to an operation could not be read; it counts as 500',
    )
    return { failure: failureFor('internal', 'body', 'REQUIRED'), revision: 1, completedAt: now }
  }
}
