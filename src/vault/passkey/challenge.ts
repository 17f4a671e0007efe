// The challenge that a passkey signs for an act: the hash of all that the act is. So a signature holds for this act of this
// person in this installation, and for no other. A sign-in is no act and has a random challenge.
import { createHash } from 'node:crypto'
import { canonical } from '../../job/envelope/digest.ts'
import type { Act } from '../../job/system/act.ts'

/**
 * SHA-256 of the canonical JSON (RFC 8785) of the request without `proof`, with `installation` added. 32 bytes.
 * `installationId`: of the store, a UUID.
 */
export function challengeOf(request: Omit<Act, 'proof'> & { proof?: unknown }, installationId: string): Buffer {
  const { proof: _, ...signed } = request
  return createHash('sha256')
    .update(canonical({ ...signed, installation: installationId }))
    .digest()
}

/**
 * The challenge for which the new passkey of `passkey.add` is made: that of the request without its parameters, which hold the
 * new passkey. So a passkey is made for one request of one person, and the touch of another passkey covers both. 32 bytes.
 */
export function creationChallengeOf(request: Omit<Act, 'proof'> & { proof?: unknown }, installationId: string): Buffer {
  return challengeOf({ ...request, parameters: {} }, installationId)
}
