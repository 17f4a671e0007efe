// The signed envelope of a job: its claims, their compact JWS, and the strict parser. It doesn't know which clients
// exist: between `peek` and `verify` the caller looks up the client's key.
import type { KeyObject } from 'node:crypto'
import { z } from 'zod'
import { ROLES } from '../choices.ts'
import { ALGORITHMS, type Algorithm, signCompact, verifyCompact } from './signature.ts'
import { readObject } from './strict-json.ts'
import { kindName, text, uuid } from './text.ts'

export const JOB_TYP = 'tokenmill-job+jwt'

export const ENVELOPE = {
  jwsBytesMax: 1024 * 1024,
  blockBytesMax: 4 * 1024 * 1024,
  /** How far `iat` may lie in the future by the worker's clock. */
  aheadMsMax: 60_000,
  lifetimeMsMax: 7 * 86_400_000,
  lifetimeMsDefault: 86_400_000,
  cardLifetimeMsMax: 86_400_000,
  cardLifetimeMsDefault: 3_600_000,
} as const

export const clientId = () => z.string().regex(/^(c[a-z0-9]{25}|console|gateway|scheduler|worker)$/)
const seconds = () => z.number().min(0).max(253_402_300_799)
const jti = () => z.string().regex(/^[!-~]{1,128}$/)
const replyTo = () => z.string().regex(/^[a-z0-9]{1,32}$/)

const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

/**
 * What a worker may leave out of account. A worker ignores members that it doesn't know, so a sender needn't ask what
 * workers know before it says them. Nothing belongs here that decides: no role, kind or destination.
 */
export const Optional = z.object({
  /** Where the work began, for traces (W3C Trace Context, version 00). */
  traceparent: z.string().regex(TRACEPARENT).optional(),
  /** The `kid` of an announced signing key of the installation that the reader of the results knows. */
  knows_key: z
    .string()
    .regex(/^[!-~]{1,256}$/)
    .optional(),
  /** Every reader of the results queue reads deliveries with several results. */
  result_sets: z.literal(true).optional(),
  /** Every reader of the results queue reads results that tell of records in columns. */
  result_columns: z.literal(true).optional(),
})
export type Optional = z.infer<typeof Optional>

/** Any member that isn't named here is refused before a receipt; its sender then does without it (features.ts). */
export const Claims = z.strictObject({
  iss: clientId(),
  aud: z.string(),
  client_id: clientId().optional(),
  sub: uuid(),
  entity_id: uuid(),
  roles: z.array(z.enum(ROLES)).max(16),
  /**
   * The job may name what belongs to this entity only, as the Bearer token of its caller may. Without it a job may name
   * what belongs to any entity of the client: `entity_id` says where the caller stands.
   */
  only_entity: uuid().optional(),
  iat: seconds(),
  exp: seconds().optional(),
  jti: jti(),
  /** Whether there is such a kind, the catalogue says. */
  kind: kindName(),
  request: z.record(z.string(), z.unknown()),
  reference: text(1, 128).optional(),
  sequence: z.int().min(0).optional(),
  reply_to: replyTo().optional(),
  optional: Optional.optional(),
})
export type Claims = z.infer<typeof Claims>

/** A job's `data` on its queue. */
export const JobData = z.strictObject({ jws: z.string(), block: z.string().optional() })
export type JobData = z.infer<typeof JobData>

/** Why a worker drops a job without an answer. The words are labels of one counter. */
export const DROPS = [
  'malformed',
  'oversized',
  'header',
  'unknown_client',
  'unknown_key',
  'revoked',
  'signature',
  'audience',
  'claims',
  'block',
  'tied',
  'damaged',
] as const
export type Drop = (typeof DROPS)[number]

interface Peeked {
  alg: Algorithm
  kid: string
  iss: string
  /** The payload as sent, not yet verified. */
  payload: Record<string, unknown>
}

const COMPACT = /^[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+$/
const PART = /^[A-Za-z0-9_-]+$/
const HEADER_KEYS = new Set(['alg', 'kid', 'typ'])

/** Made once, because making a schema takes far longer than using it, and every job is peeked at. */
const Sender = clientId()

/** Reads a JWS without verifying it, so that the caller can look up its key. */
export function peek(jws: string): Peeked | Drop {
  if (jws.length > ENVELOPE.jwsBytesMax) return 'oversized'
  const parts = readCompact(jws)
  if (!parts) return 'malformed'
  const { header, payload } = parts
  const { alg, kid, typ } = header
  const plain = Object.keys(header).every(key => HEADER_KEYS.has(key))
  if (!plain || typ !== JOB_TYP || !isAlgorithm(alg) || typeof kid !== 'string' || kid.length > 256) return 'header'
  const iss = payload['iss']
  if (!Sender.safeParse(iss).success) return 'unknown_client'
  return { alg, kid, iss: iss as string, payload }
}

/** Header and payload of a compact JWS, not yet verified; undefined for anything but canonical base64url and strict JSON. */
export function readCompact(
  jws: string,
): { header: Record<string, unknown>; payload: Record<string, unknown> } | undefined {
  if (!COMPACT.test(jws)) return undefined
  const [head = '', body = ''] = jws.split('.', 2)
  const header = readPart(head)
  const payload = readPart(body)
  return header && payload && { header, payload }
}

export function isAlgorithm(value: unknown): value is Algorithm {
  return ALGORITHMS.includes(value as Algorithm)
}

/** `base64url`: letters of that alphabet only. */
function readPart(base64url: string): Record<string, unknown> | undefined {
  return isCanonical(base64url) ? readObject(Buffer.from(base64url, 'base64url')) : undefined
}

/** By the number of letters behind the last four: the letters that may be last, because their unused bits are zero. */
const LAST_LETTERS = ['', '', 'AQgw', 'AEIMQUYcgkosw048'] as const

/**
 * Whether the bytes have no other text of this alphabet: else the same envelope would have several digests. Only the end
 * decides. To encode the bytes again and to compare takes much longer for a large payload.
 */
function isCanonical(base64url: string): boolean {
  const over = base64url.length % 4
  return over === 0 || (LAST_LETTERS[over] ?? '').includes(base64url.at(-1) ?? ' ')
}

/** Whether `key` signed this JWS, and its header names the algorithm that was fixed when the key was registered. */
export function verify(jws: string, key: { alg: Algorithm; publicKey: KeyObject }): boolean {
  const head = jws.slice(0, jws.indexOf('.'))
  return PART.test(head) && readPart(head)?.['alg'] === key.alg && verifyCompact(jws, key)
}

export interface SigningKey {
  clientId: string
  kid: string
  alg: Algorithm
  privateKey: KeyObject
}

/** Signs claims without checking them: the reader checks them. */
export function sign(claims: Claims, key: SigningKey): string {
  return signText(JSON.stringify(claims), key, JOB_TYP)
}

export function signText(payload: string | Buffer, key: Omit<SigningKey, 'clientId'>, typ: string): string {
  return signCompact({ alg: key.alg, kid: key.kid, typ }, payload, key.privateKey)
}

/** The claims that a worker needs to answer a job at all. */
export const Identity = z.object({
  iss: clientId(),
  aud: z.string(),
  client_id: clientId().optional(),
  jti: jti(),
})

/**
 * `iat` and `exp`, ms since the epoch, and the longest lifetime that this job may have, ms. An absent `exp` gets its
 * default.
 */
export function lifetimeOf(claims: Claims, holdsCard: boolean): { iat: number; exp: number; lifetimeMsMax: number } {
  const iat = claims.iat * 1000
  const fallback = holdsCard ? ENVELOPE.cardLifetimeMsDefault : ENVELOPE.lifetimeMsDefault
  const exp = claims.exp === undefined ? iat + fallback : claims.exp * 1000
  return { iat, exp, lifetimeMsMax: holdsCard ? ENVELOPE.cardLifetimeMsMax : ENVELOPE.lifetimeMsMax }
}
