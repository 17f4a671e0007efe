// Reads a Bearer token before any key is looked up: its form, its claims and its times. Every flaw found here follows
// from the token's text, the clock and the installation's name alone, so the sender may be told which one it is. The
// signature is verified later.
import { z } from 'zod'
import type { TokenFlaw } from '../errors.ts'
import { ROLES, type Role } from '../job/catalogue.ts'
import { isAlgorithm, readCompact } from '../job/envelope/envelope.ts'
import { type Algorithm, hasCanonicalSignature } from '../job/envelope/signature.ts'
import { uuid } from '../job/envelope/text.ts'

export interface BearerClaims {
  /** The user's UUID in lower case. */
  userId: string
  entityId: string
  /** The roles that the token names, without unknown words; empty if the token names none. */
  roles: Role[]
}

interface UnverifiedToken {
  alg: Algorithm
  kid: string | undefined
  issuer: unknown
  claims: BearerClaims
}

/** Everything that is wrong with a token: at least one flaw. */
export interface Flawed {
  flaws: readonly TokenFlaw[]
}

const TOKEN_LENGTH_MAX = 8_192
const SKEW_S = 60
/** How long a token without `exp` is valid after its `iat`, in seconds. */
const LIFETIME_S_MAX = 3_600
/** The permitted `typ`. Envelopes and results have other types. */
const TYP = /^(application\/)?(jwt|at\+jwt)$/i

const seconds = () => z.number().optional()
const Claims = z.object({
  sub: uuid(),
  entity_id: uuid(),
  roles: z.array(z.string().max(64)).max(64).default([]),
  exp: seconds(),
  iat: seconds(),
  nbf: seconds(),
})
type Claims = z.infer<typeof Claims>

/** Checks a token's form, claims and times. `now`: seconds since the epoch; `audience`: our name. */
export function readToken(
  token: string,
  { audience, now }: { audience: string; now: number },
): UnverifiedToken | Flawed {
  if (token.length > TOKEN_LENGTH_MAX) return { flaws: ['token_length'] }
  const parts = hasCanonicalSignature(token) ? readCompact(token) : undefined
  if (!parts) return { flaws: ['token_form'] }
  const { alg, kid } = parts.header
  const claims = Claims.safeParse(parts.payload)
  const flaws = [
    ...headerFlaws(parts.header),
    ...(claims.success ? timeFlaws(claims.data, now) : claimFlaws(claims.error, parts.payload)),
    ...audienceFlaws(parts.payload['aud'], audience),
  ]
  if (!claims.success || flaws.length > 0) return { flaws }
  const { sub, entity_id: entityId, roles } = claims.data
  return {
    alg: alg as Algorithm,
    kid: kid as string | undefined,
    issuer: parts.payload['iss'],
    claims: { userId: sub, entityId, roles: ROLES.filter(role => roles.includes(role)) },
  }
}

function headerFlaws({ alg, kid, typ, crit }: Record<string, unknown>): TokenFlaw[] {
  const flaws: TokenFlaw[] = []
  if (typ !== undefined && !(typeof typ === 'string' && TYP.test(typ))) flaws.push('typ')
  if (!isAlgorithm(alg)) flaws.push('alg')
  if (crit !== undefined) flaws.push('crit')
  if (kid !== undefined && !(typeof kid === 'string' && kid.length > 0 && kid.length <= 256)) flaws.push('kid')
  return flaws
}

function claimFlaws(error: z.ZodError, payload: Record<string, unknown>): TokenFlaw[] {
  const wrong = new Set(error.issues.map(({ path }) => path[0] as keyof Claims))
  const flaws = [...wrong].map((name): TokenFlaw => {
    const isMissing = payload[name] === undefined
    return isMissing && (name === 'sub' || name === 'entity_id') ? `${name}_missing` : `${name}_format`
  })
  return [...flaws, ...lifetimeFlaws(payload)]
}

function lifetimeFlaws({ exp, iat }: { exp?: unknown; iat?: unknown }): TokenFlaw[] {
  return exp === undefined && iat === undefined ? ['lifetime_missing'] : []
}

function timeFlaws({ exp, iat, nbf }: Claims, now: number): TokenFlaw[] {
  const flaws = lifetimeFlaws({ exp, iat })
  if (exp !== undefined && exp <= now - SKEW_S) flaws.push('exp_past')
  if (exp === undefined && iat !== undefined && iat + LIFETIME_S_MAX <= now) flaws.push('iat_past')
  if (iat !== undefined && iat > now + SKEW_S) flaws.push('iat_future')
  if (nbf !== undefined && nbf > now + SKEW_S) flaws.push('nbf_future')
  return flaws
}

/** A token without an audience is accepted: only those who know its key can have made it. */
function audienceFlaws(aud: unknown, audience: string): TokenFlaw[] {
  const isOurs = aud === undefined || (Array.isArray(aud) ? aud.includes(audience) : aud === audience)
  return isOurs ? [] : ['aud']
}
