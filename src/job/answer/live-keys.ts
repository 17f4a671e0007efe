// The list of live keys, by which a sender finds out that its key isn't live. Workers sign the list and put it where
// senders can read it. A job by an unknown key never gets an answer, so the list is the only way to learn of it. The
// list is only a hint and grants nothing to senders: without it they keep waiting for their answers. Gateways believe only
// those clients whose rows it names.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { signText } from '../envelope/envelope.ts'
import { type InstallationKeys, openSigned, readUnverified } from '../envelope/installation-jws.ts'
import { NewKeys } from '../envelope/new-keys.ts'
import type { InstallationKey } from './result.ts'

export const LIVE_KEYS_TYP = 'tokenmill-live-keys+jwt'

export const LIVE_KEYS = {
  everyMs: 5_000,
  /** A list that is older than this is ignored. */
  lifeMs: 20_000,
  /** If there are more keys than this, or more rows than that, the list names none. */
  keysMax: 10_000,
  rightsMax: 20_000,
  /** How far `iat` may lie in the future by the sender's clock. */
  aheadMsMax: 60_000,
  jwsCharsMax: 1024 * 1024,
} as const

export const LiveKeys = z.object({
  /** The installation's name. */
  aud: z.string(),
  /** When the workers read the keys from the store, in seconds of the store's clock. */
  iat: z.number(),
  /** A number that grows with every list. */
  seq: z.int().min(1),
  /** The version of the contract that the installation speaks (`CONTRACT`). Absent: 1. */
  contract: z.int().min(1).optional(),
  /** The features that every live worker understands. */
  features: z.array(z.string()),
  /** The hash (`keyHash`) of each live key; undefined if there are more than 10,000. */
  keys: z.array(z.string()).max(LIVE_KEYS.keysMax).optional(),
  /**
   * The hash (`rightsHash`) of the row of each live client, of each live key and of each scope. If these are more than 20,000,
   * `rights` and `keys` are undefined.
   */
  rights: z.array(z.string()).max(LIVE_KEYS.rightsMax).optional(),
  /** Statements that announce newer signing keys, oldest first; absent unless a key was announced recently. */
  new_keys: NewKeys.optional(),
})
export type LiveKeys = z.infer<typeof LiveKeys>

/**
 * The first 9 bytes of SHA-256(client id, LF, kid), in base64url. That is too short to reveal client or key, and long
 * enough to find a known key.
 */
export function keyHash({ clientId, kid }: { clientId: string; kid: string }): string {
  return createHash('sha256').update(`${clientId}\n${kid}`).digest().subarray(0, 9).toString('base64url')
}

/**
 * The first 16 bytes of SHA-256 of what the code of a row covers, in base64url. It is longer than `keyHash`: whoever finds
 * another text with this hash has rights.
 */
export function rightsHash(text: string): string {
  return createHash('sha256').update(text).digest().subarray(0, 16).toString('base64url')
}

/** What a list names. */
export interface LiveRows {
  keys: readonly { clientId: string; kid: string }[]
  /** The hash (`rightsHash`) of the row of each live client and key, and of each scope. */
  rights: readonly string[]
}

/** Makes a list. `live`: all that is live, or at least one more than a list may name. */
export function makeLiveKeys(head: Omit<LiveKeys, 'keys' | 'rights'>, live: LiveRows): LiveKeys {
  return isNamed(live) ? { ...head, keys: live.keys.map(keyHash), rights: [...live.rights] } : head
}

/** Whether a list may name so many. */
export function isNamed({ keys, rights }: LiveRows): boolean {
  return keys.length <= LIVE_KEYS.keysMax && rights.length <= LIVE_KEYS.rightsMax
}

export function sealLiveKeys(list: LiveKeys, key: InstallationKey): string {
  return signText(JSON.stringify(list), key, LIVE_KEYS_TYP)
}

/** The list; undefined unless one of `keys` signed it for this installation. The caller checks its age. */
export function openLiveKeys(jws: string, audience: string, keys: InstallationKeys): LiveKeys | undefined {
  if (jws.length > LIVE_KEYS.jwsCharsMax) return undefined
  try {
    const list = LiveKeys.parse(openSigned(jws, LIVE_KEYS_TYP, keys))
    return list.aud === audience ? list : undefined
  } catch {
    return undefined
  }
}

/** The statements that a list carries, before its signature is verified: each is signed by itself. */
export function statementsOf(jws: string): string[] {
  if (jws.length > LIVE_KEYS.jwsCharsMax) return []
  try {
    return LiveKeys.shape.new_keys.parse(readUnverified(jws, LIVE_KEYS_TYP)?.payload['new_keys']) ?? []
  } catch {
    return []
  }
}
