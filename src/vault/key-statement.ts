// Statements by which one signing key of the installation announces the next. A reader that trusts the first key trusts
// the announced one, too, and needs no other way to the installation than its results.
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import type { InstallationKey } from '../job/answer/result.ts'
import { type InstallationKeys, openSigned } from '../job/envelope/installation-jws.ts'
import { type Algorithm, signCompact } from '../job/envelope/signature.ts'
import { importPublicJwk, Jwk, thumbprintOf } from './client-key.ts'

export const STATEMENT_TYP = 'tokenmill-signing-key+jwt'

const CHARS_MAX = 4096

export const KeyStatement = z.object({
  /** The installation's name. */
  aud: z.string(),
  /** When the key was announced, in seconds. */
  iat: z.number(),
  /** When it is planned to begin to sign, in seconds. It may begin earlier; a reader accepts it as soon as it is announced. */
  nbf: z.number(),
  /** The announced key. Its `kid` is its thumbprint (RFC 7638). */
  jwk: Jwk,
})

export interface AnnouncedKey {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
  /** When it is planned to begin to sign, ms since the epoch. */
  from: number
}

export type KnownKeys = Map<string, { alg: Algorithm; publicKey: KeyObject }>

/** `from` and `now`: ms since the epoch. */
export function sealStatement(
  { audience, publicJwk, from, now }: { audience: string; publicJwk: Jwk; from: number; now: number },
  { alg, kid, privateKey }: InstallationKey,
): string {
  const statement = { aud: audience, iat: Math.floor(now / 1000), nbf: Math.floor(from / 1000), jwk: publicJwk }
  return signCompact({ alg, kid, typ: STATEMENT_TYP }, JSON.stringify(statement), privateKey)
}

/** The announced key; undefined unless one of `keys` signed the statement for this installation. */
export function openStatement(jws: string, audience: string, keys: InstallationKeys): AnnouncedKey | undefined {
  if (jws.length > CHARS_MAX) return undefined
  try {
    const { aud, nbf, jwk } = KeyStatement.parse(openSigned(jws, STATEMENT_TYP, keys))
    const { kid, alg, key } = importPublicJwk(jwk)
    // A chosen kid could take the place of another key.
    return aud === audience && kid === thumbprintOf(key) ? { kid, alg, publicKey: key, from: nbf * 1000 } : undefined
  } catch {
    return undefined
  }
}

/**
 * Adds to `keys` each key that a statement of a known key announces, also by a chain of statements; never replaces a
 * key. `valid`: the valid statements; `added`: those of them that added a key; `last`: the key that the last valid
 * statement announces.
 */
export function learnKeys(
  keys: KnownKeys,
  statements: readonly string[],
  audience: string,
): { valid: string[]; added: string[]; last: AnnouncedKey | undefined } {
  const valid: string[] = []
  const added: string[] = []
  let open = [...statements]
  let found: number
  let last: AnnouncedKey | undefined
  do {
    found = valid.length
    open = open.filter(jws => {
      const announced = openStatement(jws, audience, keys)
      if (!announced) return true
      valid.push(jws)
      last = announced
      if (!keys.has(announced.kid)) {
        keys.set(announced.kid, { alg: announced.alg, publicKey: announced.publicKey })
        added.push(jws)
      }
      return false
    })
  } while (valid.length > found)
  return { valid, added, last }
}

export interface ListedKey {
  publicJwk: Jwk
  state: string
  statement: string | null
  /** ms since the epoch. */
  activeAt: number
  retiredAt: number | null
}

const moment = (ms: number) => new Date(ms).toISOString()

/**
 * The announced, active and retired keys as a JWKS (RFC 7517), for readers that fetch them over HTTP. Readers ignore
 * members that they don't know (section 4).
 */
export function jwksOf(keys: readonly ListedKey[]): { keys: Jwk[] } {
  return {
    keys: keys.map(({ publicJwk, state, statement, activeAt, retiredAt }) => ({
      ...publicJwk,
      state,
      from: moment(activeAt),
      ...(retiredAt === null ? {} : { until: moment(retiredAt) }),
      ...(statement === null ? {} : { statement }),
    })),
  }
}
