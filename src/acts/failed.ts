// What an operator does to a copy in the failed set. The copy is in a queue, outside the store's transaction: so the
// audit row is committed first, and then the act is done. After a crash in between the copy is still there, and the
// operator can repeat the act.
import { Claims, lifetimeOf, peek } from '../job/envelope/envelope.ts'
import type { Queues } from '../queue/engine.ts'
import { type FailedCopy, type FailedJob, failedDiscard, failedFind, failedRetry, isInWork } from '../queue/failed.ts'
import * as clients from '../store/access/clients.ts'
import type { Store } from '../store/pool.ts'
import { type ActResult, type By, perform } from './act.ts'

/** Why a copy can't be sent again; the copy itself and its client's row say so. */
export type WhyNot = 'card_data_removed' | 'expired' | 'client_revoked'
/**
 * `gone`: somebody else retried or discarded the copy. `in_work`: the worker that gave the job up hasn't removed it
 * yet.
 */
export type RetryRefusal = WhyNot | 'gone' | 'in_work'

export const RETRY_REFUSALS = {
  card_data_removed: 'its card data were removed after 15 minutes; submit it again',
  expired: 'no worker starts it any more, because its envelope has expired; submit it again',
  client_revoked: 'its client is revoked',
  gone: 'it is not in the failed set any more',
  in_work: 'the worker that gave it up still has it; try again in a minute',
} as const satisfies Record<RetryRefusal, string>

export interface FailedActDeps {
  store: Store
  queues: Queues
  /** ms since the epoch. */
  now: number
}

/** Names a copy: the kind in whose queue the job failed, and the copy's own id. */
export interface FailedName {
  kind: string
  id: string
}

export async function retryFailed(
  { kind, id }: FailedName,
  by: By,
  { store, queues, now }: FailedActDeps,
): Promise<ActResult<FailedJob, RetryRefusal>> {
  const verdict = await perform<FailedJob, RetryRefusal>(
    store,
    { action: 'failed.retry', subject: id },
    by,
    async db => {
      const copy = await failedFind(queues, kind, id)
      if (!copy) return { refused: 'gone' }
      const { clientId } = senderOf(copy)
      const client = clientId === undefined ? undefined : await clients.find(db, clientId)
      const refused = whyNot(copy, { now, isRevoked: client?.revokedAt != null })
      if (refused) return { refused }
      if (await isInWork(queues, kind, copy)) return { refused: 'in_work' }
      return { done: copy, detail: detailOf(kind, copy) }
    },
  )
  if ('refused' in verdict) return verdict
  const refused = await failedRetry(queues, kind, id)
  if (refused) return { refused: refused === 'emptied' ? 'card_data_removed' : refused }
  return verdict
}

/** Discards the copy of a failed job for good. The job's sender was answered 500 when the job failed. */
export async function discardFailed(
  { kind, id }: FailedName,
  by: By,
  { store, queues }: Pick<FailedActDeps, 'store' | 'queues'>,
): Promise<ActResult<FailedJob, 'gone'>> {
  const verdict = await perform<FailedJob, 'gone'>(store, { action: 'failed.discard', subject: id }, by, async () => {
    const copy = await failedFind(queues, kind, id)
    return copy ? { done: copy, detail: detailOf(kind, copy) } : { refused: 'gone' }
  })
  if ('refused' in verdict) return verdict
  return (await failedDiscard(queues, kind, id)) ? verdict : { refused: 'gone' }
}

/** The detail of the audit row. It leaves out the job's reference, which is personal data. */
function detailOf(kind: string, copy: FailedJob): Record<string, unknown> {
  const { clientId } = senderOf(copy)
  return { kind, job_id: copy.jobId, code: copy.code, ...(clientId !== undefined && { client_id: clientId }) }
}

/**
 * The client that sent the job: as the copy says, else as the envelope says. The result is empty for a scrubbed copy of
 * an older release.
 */
export function senderOf({
  clientId,
  jti,
  reference,
  jws,
}: FailedCopy): Pick<FailedCopy, 'clientId' | 'jti' | 'reference'> {
  if (clientId !== undefined)
    return { clientId, ...(jti !== undefined && { jti }), ...(reference !== undefined && { reference }) }
  const claims = claimsOf(jws)
  if (!claims) return {}
  const { iss, client_id: onBehalfOf = iss } = claims
  return {
    clientId: onBehalfOf,
    jti: claims.jti,
    ...(claims.reference !== undefined && { reference: claims.reference }),
  }
}

/** The batch of a failed chunk. A scrubbed copy has only the jti, which our own senders make from batch and chunk. */
export function batchIdOf({ jws, jti }: Pick<FailedCopy, 'jws' | 'jti'>): string | undefined {
  const batchId = claimsOf(jws)?.request['batch_id'] ?? jti?.replace(/-\d+$/, '')
  return typeof batchId === 'string' ? batchId : undefined
}

/**
 * Why a copy can't be sent again; undefined if it can. An envelope that can't be read passes: the worker will judge it.
 */
export function whyNot(copy: FailedCopy, { now, isRevoked }: { now: number; isRevoked: boolean }): WhyNot | undefined {
  if (copy.jws === '') return 'card_data_removed'
  const claims = claimsOf(copy.jws)
  if (claims) {
    const holdsCard = 'encrypted_card' in claims.request
    if (lifetimeOf(claims, holdsCard).exp <= now) return 'expired'
  }
  return isRevoked ? 'client_revoked' : undefined
}

/**
 * The envelope's claims, not verified: a worker verified them before it made the copy, and the next worker verifies
 * them again.
 */
function claimsOf(jws: string): Claims | undefined {
  const peeked = peek(jws)
  return typeof peeked === 'string' ? undefined : Claims.safeParse(peeked.payload).data
}
