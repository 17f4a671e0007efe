// Records that a version of a data key may have been stolen, and which steps of `key compromise` are done: the version
// is replaced, what it exposed is listed, and values are sealed or coded anew. A command that was killed continues from
// these records.
import * as sharedKeys from '../../store/role-keys/shared-keys.ts'
import { type KeyLife, type KeyLives, livesOf, setting, withKeys } from '../../vault/ring/key-lives.ts'
import type { Purpose } from '../../vault/ring/key-ring.ts'
import type { ActResult, By } from '../act.ts'
import { type LivesKeeper, turnLives } from '../turn-lives.ts'

export const COMPROMISE = 'data-key.compromise'

export interface Compromise {
  purpose: Purpose
  version: number
  /** Whether the version is in use, and so has to be replaced first. */
  isInUse: boolean
  /** Whether what it exposed was listed before. */
  isListed: boolean
  /** Begun by an earlier run of the command. */
  isResumed: boolean
  /** A version that waited to come into use: whoever has the one may have the other. */
  dropped: number | undefined
}

/**
 * Marks the version in use, or the one that is named; or continues with a marked version whose steps aren't done.
 * Refused: there is no such version, it is destroyed, or it is not in use yet.
 */
export function beginCompromise(
  keeper: LivesKeeper,
  purpose: Purpose,
  named: number | undefined,
  by: By,
): Promise<ActResult<Compromise, 'unknown' | 'destroyed' | 'pending'>> {
  return turnLives<Compromise, 'unknown' | 'destroyed' | 'pending'>(
    keeper,
    { action: COMPROMISE, subject: purpose },
    by,
    {
      plan: now => {
        const found = findCompromised(now, purpose, named)
        if (typeof found === 'string') return found
        const { version } = found.key
        const dropped = found.dropped?.version
        return withKeys(now, purpose, (keys, epoch) => {
          const marked = setting(version, { compromised: found.key.compromised ?? epoch })(keys)
          return dropped === undefined ? marked : setting(dropped, { state: 'DESTROYED' })(marked)
        })
      },
      effect: async (db, { before }) => {
        const found = findCompromised(before, purpose, named)
        if (typeof found === 'string') return { refused: found }
        const { key, dropped } = found
        if (dropped) await sharedKeys.removeVersion(db, purpose, dropped.version)
        const { version } = key
        const isResumed = key.compromised !== undefined
        const done = {
          purpose,
          version,
          isResumed,
          isInUse: key.state === 'ACTIVE',
          isListed: key.exposed === true,
          dropped: dropped?.version,
        }
        const detail = { step: 'begin', version, is_resumed: isResumed }
        return { done, detail: dropped ? { ...detail, dropped: dropped.version } : detail }
      },
    },
  )
}

/** The version to be marked, and one that waits to take its place and is dropped. */
function findCompromised(
  now: KeyLives,
  purpose: Purpose,
  named: number | undefined,
): { key: KeyLife; dropped: KeyLife | undefined } | 'unknown' | 'destroyed' | 'pending' {
  const keys = livesOf(now, purpose)
  const open = keys.find(one => one.compromised !== undefined && !one.ended)
  const key =
    named === undefined
      ? (open ?? keys.find(({ state }) => state === 'ACTIVE'))
      : keys.find(({ version }) => version === named)
  if (!key) return 'unknown'
  if (key.state === 'DESTROYED') return 'destroyed'
  if (key.state === 'PENDING') return 'pending'
  // In a resumed run the PENDING version is the one that this command has made. Cards may be written under a PENDING
  // fingerprint key.
  const mayDrop = purpose !== 'fingerprint' || now.phase.phase === 'SINGLE'
  const isFresh = key.state === 'ACTIVE' && key.compromised === undefined
  const dropped = isFresh && mayDrop ? keys.find(({ state }) => state === 'PENDING') : undefined
  return { key, dropped }
}

/**
 * Whether the version in use was made before this version was marked: then somebody else may have it, too, and it is to be
 * replaced.
 */
export async function isSuspect(
  { lives }: Pick<LivesKeeper, 'lives'>,
  { purpose, version }: Pick<Compromise, 'purpose' | 'version'>,
): Promise<boolean> {
  const keys = livesOf(await lives.read(), purpose)
  const { compromised = 0 } = keys.find(key => key.version === version) ?? {}
  const active = keys.find(({ state }) => state === 'ACTIVE')
  return active !== undefined && active.version > version && active.made < compromised
}

/** What was exposed, by column. */
export type Exposure = Readonly<Record<string, number>>

export async function recordExposure(
  keeper: LivesKeeper,
  compromise: Pick<Compromise, 'purpose' | 'version'>,
  exposure: Exposure,
  by: By,
): Promise<void> {
  await mark(keeper, compromise, { exposed: true }, { by, detail: { step: 'list', rows: exposure } })
}

export async function endCompromise(
  keeper: LivesKeeper,
  compromise: Pick<Compromise, 'purpose' | 'version'>,
  by: By,
): Promise<void> {
  await mark(keeper, compromise, { exposed: true, ended: true }, { by, detail: { step: 'end' } })
}

function mark(
  keeper: LivesKeeper,
  { purpose, version }: Pick<Compromise, 'purpose' | 'version'>,
  marks: Pick<KeyLife, 'exposed' | 'ended'>,
  { by, detail }: { by: By; detail: { step: string; rows?: Exposure } },
): Promise<ActResult<true, never>> {
  return turnLives<true, never>(keeper, { action: COMPROMISE, subject: purpose }, by, {
    plan: now => withKeys(now, purpose, setting(version, marks)),
    effect: async () => ({ done: true, detail: { ...detail, version } }),
  })
}
