// The public keys of one issuer of JWTs, from the JWKS that the operator named. The JWKS is fetched when an unknown key
// is requested, at most once in thirty seconds. The caller passes the function that fetches.
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { Clock } from '../clock.ts'
import { ConfigError } from '../config.ts'
import type { Algorithm } from '../job/envelope/signature.ts'
import { importRegisteredJwk, type Jwk } from './client-key.ts'

export interface VerifyingKey {
  alg: Algorithm
  publicKey: KeyObject
}

/** Returns the text at `url`, or throws. */
export type FetchJwks = (url: string) => Promise<string>

interface IssuerKeys {
  /** The issuer's key with this `kid`, if it may be used with `alg`. */
  find(kid: string, alg: Algorithm): Promise<VerifyingKey | undefined>
}

const REFETCH_MS = 30_000
/** How long a key that the issuer has withdrawn may still be accepted. */
const VALID_MS = 10 * 60_000
const KEYS_MAX = 64

/** A JWKS (RFC 7517 section 5). A key that is invalid or has no `kid` is ignored. */
const Jwks = z.object({ keys: z.array(z.unknown()) })
const NamedJwk = z.looseObject({ kid: z.string() })

export function openIssuerKeys(url: string, fetchJwks: FetchJwks, clock: Clock): IssuerKeys {
  let keys = new Map<string, Jwk>()
  let triedAt = Number.NEGATIVE_INFINITY
  let fetchedAt = Number.NEGATIVE_INFINITY
  let fetching: Promise<void> | undefined

  async function refetch(): Promise<void> {
    triedAt = clock()
    try {
      keys = readJwks(await fetchJwks(url))
      fetchedAt = triedAt
    } catch {
      // A failed fetch admits no new key: the known keys are used until they are too old.
    }
  }
  return {
    async find(kid, alg) {
      const stale = clock() - fetchedAt > VALID_MS
      if ((stale || !keys.has(kid)) && clock() - triedAt >= REFETCH_MS) {
        fetching ??= refetch().finally(() => {
          fetching = undefined
        })
      }
      await fetching
      const jwk = clock() - fetchedAt > VALID_MS + REFETCH_MS ? undefined : keys.get(kid)
      return jwk && importFor(jwk, alg)
    },
  }
}

function readJwks(text: string): Map<string, Jwk> {
  const { keys } = Jwks.parse(JSON.parse(text))
  const named = keys.slice(0, KEYS_MAX).flatMap(key => NamedJwk.safeParse(key).data ?? [])
  return new Map(named.map(jwk => [jwk.kid, jwk]))
}

/** Issuers often leave `alg` out of an RSA key; such a key may be used with PS256 and RS256. */
function importFor(jwk: Jwk, alg: Algorithm): VerifyingKey | undefined {
  try {
    const imported = importRegisteredJwk({ ...jwk, alg: jwk['alg'] ?? alg })
    return imported.alg === alg ? { alg, publicKey: imported.key } : undefined
  } catch (error) {
    if (error instanceof ConfigError) return undefined
    throw error
  }
}
