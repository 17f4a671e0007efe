// What a copy in the failed set says: who sent the job, which batch it is of, and whether it can be sent again. Nothing here is
// verified: a worker verified the envelope before it made the copy, and the next worker verifies it again.
import { Claims, lifetimeOf, peek } from '../../job/envelope/envelope.ts'
import type { FailedCopy } from '../failed.ts'

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

/**
 * The client to whom the copy belongs. Undefined if the copy names another one than its envelope: then somebody else than a
 * worker wrote it.
 */
export function ownerOf(copy: FailedCopy): string | undefined {
  const claims = claimsOf(copy.jws)
  return claims && clientIn(claims) !== copy.clientId ? undefined : copy.clientId
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

/** Whoever a system client acts for; else the signer. */
function clientIn({ iss, client_id: onBehalfOf = iss }: Claims): string {
  return onBehalfOf
}

function claimsOf(jws: string): Claims | undefined {
  const peeked = peek(jws)
  return typeof peeked === 'string' ? undefined : Claims.safeParse(peeked.payload).data
}
