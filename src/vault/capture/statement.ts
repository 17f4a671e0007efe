// What the installation says about a capture key, signed with its key for results: alias, entity, thumbprint and until
// when. Senders believe a key only with a statement, so nobody who owns the store, Redis or the way to the sender can put
// another key in its place. The statement travels inside the key: a member of the JWK, a comment of the armor.
import { createPublicKey, type JsonWebKey } from 'node:crypto'
import { z } from 'zod'
import type { InstallationKey } from '../../job/answer/result.ts'
import { type InstallationKeys, openSigned } from '../../job/envelope/installation-jws.ts'
import { signCompact } from '../../job/envelope/signature.ts'
import { alias, uuid } from '../../job/envelope/text.ts'
import { thumbprintOf } from '../client-key.ts'

export const CAPTURE_STATEMENT_TYP = 'tokenmill-capture-key+jwt'

const CHARS_MAX = 4096

export const CaptureStatement = z.object({
  /** The installation's name. */
  aud: z.string(),
  /** When it was signed, in seconds. */
  iat: z.number(),
  alias: alias(),
  entity_id: uuid(),
  /** JWE: the thumbprint of RFC 7638. OpenPGP: the fingerprint of the primary key, lower-case hex. */
  kid: z.string(),
  /** Until when a reader that fetches keys may take the key over, in seconds. */
  until: z.number(),
})

export interface StatedKey {
  alias: string
  entityId: string
  kid: string
  /** ms since the epoch. */
  until: number
}

export function sealCaptureStatement(
  { audience, key, now }: { audience: string; key: StatedKey; now: number },
  { alg, kid, privateKey }: InstallationKey,
): string {
  const statement: z.input<typeof CaptureStatement> = {
    aud: audience,
    iat: Math.floor(now / 1000),
    alias: key.alias,
    entity_id: key.entityId,
    kid: key.kid,
    until: Math.floor(key.until / 1000),
  }
  return signCompact({ alg, kid, typ: CAPTURE_STATEMENT_TYP }, JSON.stringify(statement), privateKey)
}

/** Undefined unless one of `keys` signed the statement for this installation. It doesn't check whether `until` has come. */
export function openCaptureStatement(jws: string, audience: string, keys: InstallationKeys): StatedKey | undefined {
  if (jws.length > CHARS_MAX) return undefined
  try {
    const stated = CaptureStatement.parse(openSigned(jws, CAPTURE_STATEMENT_TYP, keys))
    const { entity_id: entityId, kid, until } = stated
    return stated.aud === audience ? { alias: stated.alias, entityId, kid, until: until * 1000 } : undefined
  } catch {
    return undefined
  }
}

/** The `kid` by which a statement names a key. Throws for a text that is no public key. */
export async function kidOf(publicKey: string): Promise<string> {
  if (!isJwk(publicKey)) return (await import('../pgp/pgp-public-key.ts')).pgpFingerprintOf(publicKey)
  return thumbprintOf(createPublicKey({ key: JSON.parse(publicKey) as JsonWebKey, format: 'jwk' }))
}

const isJwk = (publicKey: string) => publicKey.trimStart().startsWith('{')

const BEGIN = '-----BEGIN PGP PUBLIC KEY BLOCK-----'
const COMMENT = /^Comment: (eyJ[\w-]+\.[\w-]+\.[\w-]+)\s*$/m

/** The public key with its statement; readers that know no statements ignore it. */
export function withStatement(publicKey: string, statement: string | null): string {
  if (statement === null) return publicKey
  if (isJwk(publicKey)) return JSON.stringify({ ...JSON.parse(publicKey), statement })
  return publicKey.replace(BEGIN, `${BEGIN}\nComment: ${statement}`)
}

/** The statement inside a public key; undefined if there is none. */
export function statementIn(publicKey: string): string | undefined {
  if (!isJwk(publicKey)) return COMMENT.exec(publicKey)?.[1]
  try {
    const { statement } = JSON.parse(publicKey) as Record<string, unknown>
    return typeof statement === 'string' ? statement : undefined
  } catch {
    return undefined
  }
}
