// Proves who an operator is: a client with the role ADMIN signs the act. The signature is verified against the client's
// keys in the store, and is kept in the act's audit row.
import { ConfigError } from '../config.ts'
import { readCompact, type SigningKey, signText, verify } from '../job/envelope/envelope.ts'
import * as clients from '../store/access/clients.ts'
import type { Db } from '../store/pool.ts'
import { importPublicJwk, thumbprintOf } from '../vault/client-key.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import type { Actor, Deed } from './act.ts'
import { isClientGranted, isClientKeyGranted } from './grants.ts'

const ACT_TYP = 'tokenmill-act+jws'

/** Signs one act. `at`: when it is signed, ms since the epoch. */
export function signAct(
  { action, subject, reason, audience }: Deed & { reason: string | undefined; audience: string },
  key: SigningKey,
  at: number,
): string {
  const payload = { iss: key.clientId, aud: audience, iat: Math.floor(at / 1000), action, subject, reason }
  return signText(JSON.stringify(payload), key, ACT_TYP)
}

type Ring = Pick<KeyRing, 'grantMacBy'>

/**
 * The client that signed the act. Throws `ConfigError` if the client may not act, or if none of its live keys made the
 * signature. With `ring` also if tokenmill didn't write the client or the key; without it the actor is `unchecked`.
 */
export async function proveOperator(db: Db, proof: string, deed: Deed, now: number, ring?: Ring): Promise<Actor> {
  const { header, payload } = readCompact(proof) ?? {}
  const clientId = payload?.['iss']
  if (typeof clientId !== 'string' || header?.['typ'] !== ACT_TYP) throw new ConfigError('the operator signed no act')
  if (payload?.['action'] !== deed.action || payload?.['subject'] !== deed.subject)
    throw new ConfigError('the operator signed another act')
  const client = await clients.find(db, clientId)
  const keys = client && client.revokedAt === null ? await clients.findClientKeys(db, clientId) : []
  const key = keys.find(
    ({ kid, state, validUntil }) =>
      kid === header['kid'] && (state === 'ACTIVE' || (state === 'RETIRED' && (validUntil ?? 0) > now)),
  )
  const publicKey = key && importPublicJwk(key.publicJwk).key
  if (!key || !publicKey || !verify(proof, { alg: key.alg, publicKey }))
    throw new ConfigError(`${clientId} is no client here, is revoked, or this is not its key`)
  if (!client?.roles.includes('ADMIN')) throw new ConfigError(`client ${clientId} lacks the role ADMIN`)
  const actor: Actor = { kind: 'client', id: clientId, proof, key: thumbprintOf(publicKey) }
  if (!ring) return { ...actor, unchecked: true }
  if (!isClientGranted(ring, client) || !isClientKeyGranted(ring, key))
    throw new ConfigError(
      `the row of client ${clientId} or of its key was not written by tokenmill, or was changed since: see \`tokenmill doctor\`; revoke it, and add another operator`,
    )
  return actor
}
