// The lives of all data keys, and the phase of the fingerprint key, as one value. The store keeps it as one row with a proof
// that the key-encryption key (KEK) made: whoever owns the database and has no KEK can't write a life, and `grant`, the key
// that codes other rows, can't vouch for its own. Each change adds one to the epoch, so a former row is known by its epoch.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { Fault } from '../../errors.ts'
import type { Keks, KeyProvider } from '../kek/provider.ts'
import type { CardPhase } from './card-prints.ts'
import type { WrappedKey } from './key-ring.ts'

/** PENDING → ACTIVE → DECRYPT_ONLY → DESTROYED; a PENDING key that is dropped becomes DESTROYED at once. */
const KeyState = z.enum(['PENDING', 'ACTIVE', 'DECRYPT_ONLY', 'DESTROYED'])
export type KeyState = z.infer<typeof KeyState>

const KeyLife = z.object({
  purpose: z.string(),
  version: z.int().min(1),
  state: KeyState,
  /** The epoch in which it was made. */
  made: z.int(),
  /** The epoch in which an operator said that somebody else may have it. */
  compromised: z.int().optional(),
  /** What the compromise exposed was listed. */
  exposed: z.literal(true).optional(),
  /** Nothing that tokenmill wrote needs it any more: what it vouches for isn't believed. */
  ended: z.literal(true).optional(),
})
export type KeyLife = z.infer<typeof KeyLife>

/** `CardPhase` as it is stored. */
const Phase = z.object({
  /** Each change of the phase adds one. */
  turn: z.int().min(1),
  phase: z.enum(['SINGLE', 'BOTH', 'NEW']),
  /** The versions of the fingerprints that a token's row keeps. */
  writes: z.array(z.int()).min(1).max(2),
  /** All versions under which a card may be found; `writes` come first. */
  looks: z.array(z.int()).min(1),
})
export type Phase = z.infer<typeof Phase>

export interface KeyLives {
  /** It only grows. */
  epoch: number
  keys: readonly KeyLife[]
  phase: Phase
}

/** The lives as the store keeps them. */
export interface LivesRow {
  epoch: number
  /** JSON of the keys. */
  keys: string
  /** JSON of the phase. A transaction that writes cards compares these bytes with those that its process has verified. */
  phase: string
  /** The KEK that made the proof. */
  kekId: string
  /** SHA-256 over the installation, the epoch, `keys` and `phase`, wrapped by the KEK. */
  proof: Buffer
}

/** The lives of the first keys. */
export function firstLives(keys: readonly { purpose: string; version: number }[]): KeyLives {
  return {
    epoch: 1,
    keys: keys.map(({ purpose, version }) => ({ purpose, version, state: 'ACTIVE', made: 1 })),
    phase: { turn: 1, phase: 'SINGLE', writes: [1], looks: [1] },
  }
}

/** The row of these lives for an installation. Throws `Fault('kek_away')` if the KEK can't be reached. */
export async function proveLives(
  kek: KeyProvider,
  installationId: string,
  { epoch, keys, phase }: KeyLives,
): Promise<LivesRow> {
  const text = { epoch, keys: JSON.stringify(keys), phase: JSON.stringify(phase) }
  return { ...text, kekId: kek.id, proof: await kek.wrap(livesDigest(installationId, text), PURPOSE) }
}

/**
 * The lives in a row. Throws `Fault('key_unavailable')` if this installation's KEK didn't make the proof of these bytes, or if
 * this host doesn't have that KEK; `Fault('kek_away')` if the KEK can't be reached now.
 */
export async function openLives(keks: Pick<Keks, 'find'>, installationId: string, row: LivesRow): Promise<KeyLives> {
  const proved = await keks.find(row.kekId).unwrap(row.proof, PURPOSE)
  if (!proved.equals(livesDigest(installationId, row)))
    throw new Fault('key_unavailable', new Error('the lives of the data keys were changed by somebody without the KEK'))
  return readLives(row)
}

/** What a row says, whoever wrote it. Throws if it says nothing. */
export function readLives({ epoch, keys, phase }: Pick<LivesRow, 'epoch' | 'keys' | 'phase'>): KeyLives {
  return { epoch, keys: z.array(KeyLife).parse(JSON.parse(keys)), phase: readPhase(phase) }
}

const PURPOSE = 'key-lives'

/** As long as a data key, because a token may wrap nothing else. */
export function livesDigest(installationId: string, { epoch, keys, phase }: Omit<LivesRow, 'kekId' | 'proof'>): Buffer {
  return createHash('sha256')
    .update(JSON.stringify(['tokenmill key lives', installationId, epoch, keys, phase]))
    .digest()
}

export function readPhase(text: string): Phase {
  return Phase.parse(JSON.parse(text))
}

/** Under which versions cards are written and found, and the bytes by which the store says so. */
export function cardPhaseOf({ phase }: Pick<KeyLives, 'phase'>, text: string): CardPhase {
  return { ...phase, turn: text }
}

/** A key as the store has it, beside its life. */
interface StoredKey {
  purpose: string
  version: number
  kekId: string
  wrapped: Buffer | null
}

/** The keys with their lives: a key that the store has and the lives don't name doesn't count. */
export function keysOf({ keys }: Pick<KeyLives, 'keys'>, stored: readonly StoredKey[]): WrappedKey[] {
  return keys.map(({ purpose, version, state, ended }) => {
    const { kekId = '', wrapped = null } = stored.find(key => key.purpose === purpose && key.version === version) ?? {}
    const isDestroyed = state === 'DESTROYED'
    return {
      purpose,
      version,
      state,
      kekId,
      wrapped: isDestroyed ? null : wrapped,
      isEnded: ended === true,
      isLost: !isDestroyed && wrapped === null,
    }
  })
}

/** The lives of the keys of one purpose, oldest first. */
export function livesOf({ keys }: Pick<KeyLives, 'keys'>, purpose: string): KeyLife[] {
  return keys.filter(key => key.purpose === purpose).sort((a, b) => a.version - b.version)
}

/** The next lives: `change` of one purpose's keys, in the next epoch. */
export function withKeys(
  { epoch, keys, phase }: KeyLives,
  purpose: string,
  change: (keys: readonly KeyLife[], epoch: number) => readonly KeyLife[],
): KeyLives {
  const next = epoch + 1
  const changed = change(livesOf({ keys }, purpose), next)
  return { epoch: next, keys: [...keys.filter(key => key.purpose !== purpose), ...changed], phase }
}

/** These lives with another phase, in the same epoch. */
export function withPhase(lives: KeyLives, phase: Omit<Phase, 'turn'>): KeyLives {
  return { ...lives, phase: { ...phase, turn: lives.phase.turn + 1 } }
}

/** Adds a version that isn't in use yet. */
export const adding =
  (purpose: string, version: number) =>
  (keys: readonly KeyLife[], epoch: number): KeyLife[] => [...keys, { purpose, version, state: 'PENDING', made: epoch }]

/** Puts a PENDING version in the place of the ACTIVE one. */
export const activating =
  (version: number) =>
  (keys: readonly KeyLife[]): KeyLife[] =>
    keys.map(key => {
      if (key.version === version) return { ...key, state: 'ACTIVE' }
      return key.state === 'ACTIVE' ? { ...key, state: 'DECRYPT_ONLY' } : key
    })

/** Changes one version. */
export const setting =
  (version: number, more: Partial<KeyLife>) =>
  (keys: readonly KeyLife[]): KeyLife[] =>
    keys.map(key => (key.version === version ? { ...key, ...more } : key))
