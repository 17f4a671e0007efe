// Records that a version of a data key may have been stolen, and which steps of `key compromise` are done: the version
// is replaced, what it exposed is listed, and values are sealed or coded anew. A command that was killed continues from
// these records.
import * as dataKeys from '../../store/access/data-keys.ts'
import type { Db, Store } from '../../store/pool.ts'
import * as sharedKeys from '../../store/role-keys/shared-keys.ts'
import * as cardPhases from '../../store/token/card-phases.ts'
import type { Purpose } from '../../vault/ring/key-ring.ts'
import { type ActResult, type By, perform } from '../act.ts'

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
      const isDroppable = await mayDrop(db, purpose)
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
      const isInUse = key.state === 'ACTIVE'
      // In a resumed run the PENDING version is the one that this command has made.
      const waiting = isInUse && isDroppable && !isResumed ? keys.find(({ state }) => state === 'PENDING') : undefined
      if (waiting) await drop(db, waiting)
      const dropped = waiting?.version
      const done = { purpose, version, isResumed, isInUse, isListed: key.exposedAt !== null, dropped }
      return { done, detail: { step: 'begin', version, is_resumed: isResumed, ...(waiting && { dropped }) } }
    },
  )
}

/** False while cards may be written under a PENDING fingerprint key. The phase then stays until the transaction ends. */
async function mayDrop(db: Db, purpose: Purpose): Promise<boolean> {
  return purpose !== 'fingerprint' || (await cardPhases.find(db)).phase === 'SINGLE'
}

async function drop(db: Db, { purpose, version }: dataKeys.DataKeyLife): Promise<void> {
  await dataKeys.drop(db, purpose, version)
  await sharedKeys.removeVersion(db, purpose, version)
}

/**
 * Whether the version in use was made before this version was marked: then somebody else may have it, too, and it is to be
 * replaced.
 */
export async function isSuspect(
  db: Db,
  { purpose, version }: Pick<Compromise, 'purpose' | 'version'>,
): Promise<boolean> {
  const keys = (await dataKeys.list(db)).filter(key => key.purpose === purpose)
  const { compromisedAt } = keys.find(key => key.version === version) ?? {}
  const active = keys.find(({ state }) => state === 'ACTIVE')
  return active !== undefined && active.version > version && active.createdAt < (compromisedAt ?? 0)
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
