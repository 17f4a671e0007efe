// Records that somebody else may have a version of a data key, and how far the answer to it is: the version is replaced,
// what it exposed is listed, and what can be sealed or coded anew is. The command that does it goes on where it was killed.
import * as dataKeys from '../../store/access/data-keys.ts'
import type { Store } from '../../store/pool.ts'
import type { Purpose } from '../../vault/key-ring.ts'
import { type ActResult, type By, perform } from '../act.ts'

export const COMPROMISE = 'data-key.compromise'

export interface Compromise {
  purpose: Purpose
  version: number
  /** Whether it is to be replaced first. */
  isInUse: boolean
  /** Whether what it exposed was listed before. */
  isListed: boolean
  /** Begun by an earlier run of the command. */
  isResumed: boolean
}

/**
 * Marks the version in use, or the one that is named; or goes on with one that was marked and isn't answered yet. Refused:
 * there is no such version, it is destroyed, or it is not in use yet.
 */
export function beginCompromise(
  store: Store,
  purpose: Purpose,
  named: number | undefined,
  by: By,
): Promise<ActResult<Compromise, 'unknown' | 'destroyed' | 'pending'>> {
  return perform<Compromise, 'unknown' | 'destroyed' | 'pending'>(
    store,
    { action: COMPROMISE, subject: purpose },
    by,
    async db => {
      const keys = await dataKeys.lockPurpose(db, purpose)
      const open = keys.find(key => key.compromisedAt !== null && key.compromiseEndedAt === null)
      const key =
        named === undefined
          ? (open ?? keys.find(({ state }) => state === 'ACTIVE'))
          : keys.find(({ version }) => version === named)
      if (!key) return { refused: 'unknown' }
      if (key.state === 'DESTROYED') return { refused: 'destroyed' }
      if (key.state === 'PENDING') return { refused: 'pending' }
      const { version } = key
      const isResumed = key.compromisedAt !== null
      await dataKeys.markCompromise(db, { purpose, version }, 'compromised')
      const done = {
        ...{ purpose, version, isResumed },
        ...{ isInUse: key.state === 'ACTIVE', isListed: key.exposedAt !== null },
      }
      return { done, detail: { step: 'begin', version, is_resumed: isResumed } }
    },
  )
}

/** What was exposed, by column. */
export type Exposure = Readonly<Record<string, number>>

export async function recordExposure(
  store: Store,
  { purpose, version }: Pick<Compromise, 'purpose' | 'version'>,
  exposure: Exposure,
  by: By,
): Promise<void> {
  await perform<true, never>(store, { action: COMPROMISE, subject: purpose }, by, async db => {
    await dataKeys.markCompromise(db, { purpose, version }, 'exposed')
    return { done: true, detail: { step: 'list', version, rows: exposure } }
  })
}

export async function endCompromise(
  store: Store,
  { purpose, version }: Pick<Compromise, 'purpose' | 'version'>,
  by: By,
): Promise<void> {
  await perform<true, never>(store, { action: COMPROMISE, subject: purpose }, by, async db => {
    await dataKeys.markCompromise(db, { purpose, version }, 'ended')
    return { done: true, detail: { step: 'end', version } }
  })
}
