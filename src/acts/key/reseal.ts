// Acts of an operator on the re-encryption of a purpose: begin or resume it, and cancel it. Bulk workers do the work.
import * as dataKeys from '../../store/access/data-keys.ts'
import type { Store } from '../../store/pool.ts'
import * as reseals from '../../store/reseal/reseals.ts'
import { estimateRows } from '../../store/reseal/sealed-rows.ts'
import { type ActResult, type By, perform } from '../act.ts'
import { listLacking } from './key-rotation.ts'

export const RESEAL = 'data-key.reseal'
export const RESEAL_CANCEL = 'data-key.reseal-cancel'

export type ResealRefusal = 'no_key' | 'running' | 'lacking'

export interface ResealBegun {
  /** Everything is to be sealed under this version. */
  version: number
  /** A cancelled re-encryption continues where it was. */
  isResumed: boolean
}

/** Refused (`lacking`) if a live process doesn't hold the version in use: it could open no row that is sealed anew. */
export function beginReseal(store: Store, purpose: string, by: By): Promise<ActResult<ResealBegun, ResealRefusal>> {
  return perform<ResealBegun, ResealRefusal>(store, { action: RESEAL, subject: purpose }, by, async db => {
    const former = await reseals.hold(db, purpose)
    const version = await dataKeys.findActiveVersion(db, purpose)
    if (version === undefined) return { refused: 'no_key' }
    const isCurrent = former?.version === version
    if (isCurrent && former.state === 'RUNNING') return { refused: 'running' }
    const lacking = await listLacking(db, purpose, version)
    if (lacking.length > 0) return { refused: 'lacking' }
    const isResumed = isCurrent && former.state === 'CANCELLED'
    if (isResumed) await reseals.resume(db, purpose)
    else await reseals.begin(db, { purpose, version, rowsExpected: await estimateRows(db, purpose) })
    return { done: { version, isResumed }, detail: { version, is_resumed: isResumed } }
  })
}

/** Cancels the re-encryption. Rows that are sealed anew stay so. */
export function cancelReseal(store: Store, purpose: string, by: By): Promise<ActResult<reseals.Reseal, 'not_running'>> {
  return perform<reseals.Reseal, 'not_running'>(store, { action: RESEAL_CANCEL, subject: purpose }, by, async db => {
    const running = await reseals.hold(db, purpose)
    if (running?.state !== 'RUNNING') return { refused: 'not_running' }
    await reseals.cancel(db, purpose)
    return { done: running, detail: { version: running.version, rows_done: running.rowsDone } }
  })
}
