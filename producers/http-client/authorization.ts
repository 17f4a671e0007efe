// Who a request is of: Basic by the API key of the client's file, else a JWT that the client signs with its own key.
import type { Clock } from '../../src/clock.ts'
import { ROLES } from '../../src/job/choices.ts'
import { signCompact } from '../../src/job/envelope/signature.ts'
import type { Credentials } from '../client/client-file.ts'

const LIFE_S = 300
/** A JWT is made anew this long before its end, so that it doesn't end on its way. */
const MARGIN_S = 60

type Signer = Pick<Credentials, 'userId' | 'entityId' | 'signingKey'>

export function basic(userId: string, apiKey: string): () => string {
  const value = `Basic ${Buffer.from(`${userId}:${apiKey}`).toString('base64')}`
  return () => value
}

/** The JWT lists all roles: the caller has those that the client has. */
export function bearer({ userId, entityId, signingKey }: Signer, clock: Clock): () => string {
  let made: { value: string; until: number } | undefined
  return () => {
    const now = Math.floor(clock() / 1_000)
    if (made && now < made.until - MARGIN_S) return made.value
    const claims = { sub: userId, entity_id: entityId, roles: ROLES, iat: now, exp: now + LIFE_S }
    const { alg, kid, privateKey } = signingKey
    const jwt = signCompact({ alg, kid, typ: 'JWT' }, JSON.stringify(claims), privateKey)
    made = { value: `Bearer ${jwt}`, until: now + LIFE_S }
    return made.value
  }
}
