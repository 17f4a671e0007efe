// Destroys one version of a data key that nothing can need any more: no row names it, the pass that found no such row
// began a day ago or earlier, and no backup from before that pass is kept, as TOKENMILL_BACKUP_DAYS or the operator
// (`--backups-are-gone`) says.
import * as dataKeys from '../../store/access/data-keys.ts'
import type { Db } from '../../store/pool.ts'
import { hashedColumnsOf } from '../../store/reseal/hashed-columns.ts'
import * as reseals from '../../store/reseal/reseals.ts'
import { BEFORE_IMAGE, sealingPurpose } from '../../store/reseal/sealed-columns.ts'
import { countUnder, type UnderKey } from '../../store/reseal/sealed-rows.ts'
import * as sharedKeys from '../../store/role-keys/shared-keys.ts'
import { readClock } from '../../store/server.ts'
import { livesOf, setting, withKeys } from '../../vault/ring/key-lives.ts'
import type { By } from '../act.ts'
import type { UseConfirmation } from '../confirmation.ts'
import { type LivesKeeper, turnLives } from '../turn-lives.ts'

export const DESTROY = 'data-key.destroy'

/** A before-image may hold a row that was sealed under the version. It is kept for this long. */
const AFTER_PASS_MS = 24 * 3_600_000
const DAY_MS = 86_400_000

/** Why a version may not be destroyed. `from`: when it may be (ms). */
export type Hindrance =
  | { refused: 'unknown' | 'pending' | 'active' | 'destroyed' | 'hashes' | 'not_resealed' | 'unconfirmed' }
  | { refused: 'too_soon' | 'backups'; from: number }
  | { refused: 'in_use'; under: UnderKey[] }

export interface Destruction {
  purpose: string
  version: number
  /** How long backups are kept. */
  backupDays: number
  /** The operator says that no backup from before the last pass is left. */
  areBackupsGone: boolean
}

export async function destroyKey(
  keeper: LivesKeeper,
  destruction: Destruction,
  by: By,
  useConfirmation: UseConfirmation,
): Promise<{ done: { purpose: string; version: number } } | Hindrance> {
  const { purpose, version, areBackupsGone } = destruction
  let hindrance: Hindrance | undefined
  const deed = { action: DESTROY, subject: `${purpose}/${version}` }
  const result = await turnLives<{ purpose: string; version: number }, Hindrance['refused']>(keeper, deed, by, {
    plan: now => {
      const key = livesOf(now, purpose).find(one => one.version === version)
      const word = !key
        ? 'unknown'
        : !isDestructible(purpose)
          ? 'hashes'
          : key.state === 'DECRYPT_ONLY'
            ? undefined
            : NOT_YET[key.state]
      if (word) hindrance = { refused: word }
      return word ?? withKeys(now, purpose, setting(version, { state: 'DESTROYED' }))
    },
    effect: async db => {
      hindrance = await findHindrance(db, destruction)
      if (hindrance) return { refused: hindrance.refused }
      const confirmed = await useConfirmation(db)
      if (!confirmed) {
        hindrance = { refused: 'unconfirmed' }
        return hindrance
      }
      await sharedKeys.removeVersion(db, purpose, version)
      return { done: { purpose, version }, detail: { backups_are_gone: areBackupsGone, ...confirmed.detail } }
    },
  })
  if ('done' in result) return result
  if (!hindrance) throw new Error('broken law: what is refused has a reason')
  return hindrance
}

async function findHindrance(db: Db, destruction: Destruction): Promise<Hindrance | undefined> {
  const { purpose, version, backupDays, areBackupsGone } = destruction
  const key = (await dataKeys.list(db)).find(one => one.purpose === purpose && one.version === version)
  if (!key) return { refused: 'unknown' }
  const provedAt = await findProof(db, key)
  if (typeof provedAt !== 'number') return provedAt
  // The store's clock wrote these times.
  const now = await readClock(db)
  if (now < provedAt + AFTER_PASS_MS) return { refused: 'too_soon', from: provedAt + AFTER_PASS_MS }
  const keptUntil = provedAt + backupDays * DAY_MS
  if (!areBackupsGone && now < keptUntil) return { refused: 'backups', from: keptUntil }
  const under = await countUnder(db, purpose, version)
  return under.length > 0 ? { refused: 'in_use', under } : undefined
}

const NOT_YET = { PENDING: 'pending', ACTIVE: 'active', DESTROYED: 'destroyed' } as const

/** Whether every row that needs a version of the key names it: only then can rows be counted that need it. */
function isDestructible(purpose: string): boolean {
  return hasNoPass(purpose) || sealingPurpose(purpose) !== undefined
}

/** True for purposes whose rows no pass seals anew: such rows are erased in time, or keep their version. */
function hasNoPass(purpose: string): boolean {
  return purpose === BEFORE_IMAGE.purpose || hashedColumnsOf(purpose) !== undefined
}

/**
 * When the pass that found no row under a former version began. For before-images, which are erased after a day, and for hashes
 * there is no pass: for their keys it is the time at which another version took this one's place.
 */
async function findProof(db: Db, { purpose, version, retiredAt }: dataKeys.DataKeyLife): Promise<number | Hindrance> {
  if (hasNoPass(purpose)) return retiredAt ?? { refused: 'not_resealed' }
  const reseal = await reseals.hold(db, purpose)
  // A pass under this version or an earlier one proves nothing about it: this version may have sealed since.
  if (reseal?.state !== 'DONE' || reseal.cleanAt === null || reseal.version <= version)
    return { refused: 'not_resealed' }
  return reseal.cleanAt
}
