// Bearer tokens: JWTs that a client signed with a key registered for it, or that an issuer whom the operator named
// signed. It finds out who speaks and what he claims; what he may do is his client's grant. An envelope or a result of
// ours, stolen from a queue, is no token here.

import type { KeyObject } from 'node:crypto'
import { decodeJwt, decodeProtectedHeader, type JWTPayload, jwtVerify } from 'jose'
import { z } from 'zod'
import type { Clock } from '../clock.ts'
import { ROLES, type Role } from '../job/catalogue.ts'
import { ALGORITHMS, type Algorithm } from '../job/envelope/signature.ts'
import { uuid } from '../job/envelope/text.ts'
import { type FetchJwks, openIssuerKeys } from './issuer-keys.ts'

export interface BearerClaims {
  /** UUID in lower case. */
  userId: string
  entityId: string
  /** Words that are no roles here are left out. */
  roles: Role[]
}

export interface VerifyingKey {
  alg: Algorithm
  publicKey: KeyObject
}

/** The live key that a user's client registered under this `kid`. */
export type FindKey = (userId: string, kid: string) => Promise<VerifyingKey | undefined>

export interface Bearer {
  /** Undefined for a token that isn't good, whatever is wrong with it. */
  verify(token: string, findKey: FindKey): Promise<BearerClaims | undefined>
}

export interface BearerOptions {
  /** issuer → URL of its JWKS. */
  issuers: ReadonlyMap<string, string>
  fetchJwks: FetchJwks
  /** Our name: `aud`, where it is given. */
  audience: string
  clock: Clock
}

const SKEW_S = 60
const TOKEN_LENGTH_MAX = 8_192
/** Envelopes and results have types of their own. */
const TYP = /^(application\/)?(jwt|at\+jwt)$/i

const Claims = z.object({
  sub: uuid(),
  entity_id: uuid(),
  roles: z.array(z.string().max(64)).max(64),
  exp: z.number(),
  iat: z.number().optional(),
})

export function openBearer({ issuers, fetchJwks, audience, clock }: BearerOptions): Bearer {
  const keysOf = new Map([...issuers].map(([issuer, url]) => [issuer, openIssuerKeys(url, fetchJwks, clock)]))

  async function check(token: string, findKey: FindKey): Promise<BearerClaims | undefined> {
    const { alg, kid, typ } = decodeProtectedHeader(token)
    const unverified = decodeJwt(token)
    if (typ !== undefined && !TYP.test(typ)) return undefined
    if (typeof kid !== 'string' || kid.length > 256 || !ALGORITHMS.includes(alg as Algorithm)) return undefined
    const issuer = keysOf.get(unverified.iss ?? '')
    const key = issuer
      ? await issuer.find(kid, alg as Algorithm)
      : await findKey(Claims.shape.sub.parse(unverified.sub), kid)
    if (!key || key.alg !== alg) return undefined
    const { payload } = await jwtVerify(token, key.publicKey, {
      algorithms: [key.alg],
      clockTolerance: SKEW_S,
      currentDate: new Date(clock()),
      requiredClaims: ['exp', 'sub', 'entity_id', 'roles'],
      ...(unverified.aud === undefined ? {} : { audience }),
    })
    return claimsOf(payload, clock() / 1000)
  }
  return {
    async verify(token, findKey) {
      if (token.length > TOKEN_LENGTH_MAX) return undefined
      return check(token, findKey).catch(error => {
        // What isn't the token's fault is told: the store may be away.
        if (isTokensFault(error)) return undefined
        throw error
      })
    },
  }
}

function claimsOf(payload: JWTPayload, now: number): BearerClaims | undefined {
  const { sub, entity_id: entityId, roles, iat } = Claims.parse(payload)
  if (iat !== undefined && iat > now + SKEW_S) return undefined
  return { userId: sub, entityId, roles: ROLES.filter(role => roles.includes(role)) }
}

function isTokensFault(error: unknown): boolean {
  return (
    error instanceof z.ZodError ||
    error instanceof TypeError ||
    String((error as { code?: unknown }).code).startsWith('ERR_J')
  )
}
