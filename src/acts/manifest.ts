// An operator's acts on the key of a migration's total: hand it to the sender, and destroy it at sign-off. The callers
// pass keys sealed, and no audit row holds one.
import * as audits from '../store/access/audits.ts'
import type { Store } from '../store/pool.ts'
import * as digestRuns from '../store/total/digest-runs.ts'
import * as totalKeys from '../store/total/total-keys.ts'
import * as totals from '../store/total/totals.ts'
import { type ActResult, type By, perform } from './act.ts'

export type TotalKeyRefusal = 'no_key' | 'signed_off'

/** The migration's key, to be encrypted to the key with the fingerprint `to`. `made` becomes the key if there is none. */
export function handOutTotalKey(
  store: Store,
  { migration, made, to }: { migration: string; made: totalKeys.SealedTotalKey; to: string },
  by: By,
): Promise<ActResult<{ key: totalKeys.SealedTotalKey; isNew: boolean }, TotalKeyRefusal>> {
  return perform(store, { action: 'manifest.key.hand-out', subject: migration }, by, async db => {
    const isNew = await totalKeys.insert(db, migration, made)
    const found = await totalKeys.hold(db, migration, 'share')
    if (!found?.key) return { refused: 'signed_off' }
    const actor = `${by.actor.kind}:${by.actor.id}`
    if (isNew) await audits.insert(db, { actor, action: 'manifest.key.make', subject: migration })
    return { done: { key: found.key, isNew }, detail: { to } }
  })
}

/** Destroys the migration's key, and ends the totals that are being computed with it. */
export function signOff(
  store: Store,
  migration: string,
  by: By,
): Promise<ActResult<{ ended: number }, TotalKeyRefusal>> {
  return perform(store, { action: 'manifest.key.destroy', subject: migration }, by, async db => {
    const found = await totalKeys.hold(db, migration, 'update')
    if (!found) return { refused: 'no_key' }
    if (!found.key) return { refused: 'signed_off' }
    await totalKeys.destroy(db, migration)
    const ended = await totals.refuse(db, 'signed_off', { migration })
    await digestRuns.erase(db, ended)
    return { done: { ended: ended.length }, detail: { totals_ended: ended.length } }
  })
}
