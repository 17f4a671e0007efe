// Bearer tokens: JWTs signed by a client's registered key, or by an issuer that the operator named. This file finds the
// user and the claims; what the user may do follows from the client's roles and entities. A stolen envelope or result
// isn't accepted as a token.
import type { Clock } from '../clock.ts'
import { verifyCompact } from '../job/envelope/signature.ts'
import { type BearerClaims, type Flawed, readToken } from './bearer-claims.ts'
import { type FetchJwks, openIssuerKeys, type VerifyingKey } from './issuer-keys.ts'

/**
 * Finds a live key that the user's client registered under this `kid`; without a `kid`, the only active key of that
 * client.
 */
type FindKey = (userId: string, kid: string | undefined) => Promise<VerifyingKey | undefined>

export interface Bearer {
  /** Verifies a token. Throws if that isn't possible now, for example because the store is away. */
  verify(token: string, findKey: FindKey): Promise<BearerClaims | Flawed>
}

interface BearerOptions {
  /** Issuer → URL of its JWKS. */
  issuers: ReadonlyMap<string, string>
  fetchJwks: FetchJwks
  /** The installation's name, which the token's `aud` must be, if it has one. */
  audience: string
  clock: Clock
}

export function openBearer({ issuers, fetchJwks, audience, clock }: BearerOptions): Bearer {
  const keysOf = new Map([...issuers].map(([issuer, url]) => [issuer, openIssuerKeys(url, fetchJwks, clock)]))

  return {
    async verify(token, findKey) {
      const read = readToken(token, { audience, now: clock() / 1000 })
      if ('flaws' in read) return read
      const { alg, kid, issuer, claims } = read
      const keys = typeof issuer === 'string' ? keysOf.get(issuer) : undefined
      const ofIssuer = async () => (kid === undefined ? undefined : keys?.find(kid, alg))
      const key = await (keys ? ofIssuer() : findKey(claims.userId, kid))
      if (key?.alg === alg && verifyCompact(token, key)) return claims
      // For a token with a `kid` the flaw is the same for an unknown user, an unknown key and a wrong signature.
      return { flaws: [kid === undefined ? 'kid_missing' : 'unaccepted'] }
    },
  }
}
