// The list by which a sender finds out that its key isn't live: workers sign it and lay it where senders may read it. An
// unknown sender is never answered, so this is all that it hears. It is a hint and grants nothing: whoever holds it
// back leaves senders where they were without it.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { signText } from './envelope/envelope.ts'
import { type InstallationKeys, openSigned } from './envelope/installation-jws.ts'
import type { InstallationKey } from './result.ts'

export const LIVE_KEYS_TYP = 'tokenmill-live-keys+jwt'

export const LIVE_KEYS = {
  everyMs: 5_000,
  /** After so long it says nothing any more. */
  lifeMs: 20_000,
  /** Beyond so many it names none. */
  keysMax: 10_000,
  /** How far ahead of a sender's clock it may have been signed. */
  aheadMsMax: 60_000,
  jwsCharsMax: 1024 * 1024,
} as const

/**
 * What workers of this release understand and some older one refuses: words for members of envelopes and requests. A
 * sender uses such a member only while a list names its word.
 */
export const FEATURES: readonly string[] = []

export const LiveKeys = z.object({
  /** The installation's name. */
  aud: z.string(),
  /** When it was read, in seconds, by the store's clock. */
  iat: z.number(),
  /** Grows with every list. */
  seq: z.int().min(1),
  /** What every live worker understands. */
  features: z.array(z.string()),
  /** Of each live key its hash (`keyHash`); absent where there are more than 10,000. */
  keys: z.array(z.string()).max(LIVE_KEYS.keysMax).optional(),
})
export type LiveKeys = z.infer<typeof LiveKeys>

/** The first 9 bytes of SHA-256(client id, LF, kid), base64url: too little to learn either from, enough to find one's own. */
export function keyHash({ clientId, kid }: { clientId: string; kid: string }): string {
  return createHash('sha256').update(`${clientId}\n${kid}`).digest().subarray(0, 9).toString('base64url')
}

/** `live` are all that there are, or at least one more than a list may name. */
export function makeLiveKeys(
  head: Omit<LiveKeys, 'keys'>,
  live: readonly { clientId: string; kid: string }[],
): LiveKeys {
  return live.length > LIVE_KEYS.keysMax ? head : { ...head, keys: live.map(keyHash) }
}

export function sealLiveKeys(list: LiveKeys, key: InstallationKey): string {
  return signText(JSON.stringify(list), key, LIVE_KEYS_TYP)
}

/** The list, if one of `keys` signed it for this installation; else undefined. Its age is the caller's to judge. */
export function openLiveKeys(jws: string, audience: string, keys: InstallationKeys): LiveKeys | undefined {
  if (jws.length > LIVE_KEYS.jwsCharsMax) return undefined
  try {
    const list = LiveKeys.parse(openSigned(jws, LIVE_KEYS_TYP, keys))
    return list.aud === audience ? list : undefined
  } catch {
    return undefined
  }
}
