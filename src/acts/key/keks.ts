// What an operator does to key-encryption keys (KEKs): announces one, makes it the current one, forgets one. No KEK and
// no place of one is written to the store: only its id, its probe, and what it has wrapped.
import { ConfigError } from '../../config.ts'
import * as dataKeys from '../../store/access/data-keys.ts'
import * as keks from '../../store/access/keks.ts'
import * as keyLives from '../../store/access/key-lives.ts'
import * as installation from '../../store/installation.ts'
import { type Db, LostRace, type Store } from '../../store/pool.ts'
import { readClock } from '../../store/server.ts'
import type { Keks, KeyProvider } from '../../vault/kek/provider.ts'
import { rewrap } from '../../vault/ring/rewrap.ts'
import { type ActResult, type By, perform } from '../act.ts'
import type { UseConfirmation } from '../confirmation.ts'
import { type LivesKeeper, proveLivesBy } from '../turn-lives.ts'

const DAY_MS = 86_400_000

/** Stores id and probe of a key that is to become the current one, so that processes prove that they have it. */
export function announceKek(
  store: Store,
  { kekId, probe }: { kekId: string; probe: Buffer },
  by: By,
): Promise<ActResult<undefined, 'known'>> {
  return perform(store, { action: 'kek.add', subject: kekId }, by, async db => {
    const isNew = await keks.insert(db, { kekId, state: 'PENDING', probe })
    return isNew ? { done: undefined, detail: {} } : { refused: 'known' }
  })
}

export interface Rotation extends Pick<LivesKeeper, 'store' | 'installationId' | 'lives'> {
  /** The keys of this host: those that wrap something now, and `to`. */
  keks: Pick<Keks, 'find'>
  to: KeyProvider
}

export type TurnRefusal = 'current' | 'not_ready' | 'forgotten' | 'unconfirmed'

export interface Turned {
  /** The key that was the current one. */
  former: string
  dataKeys: number
}

/**
 * Wraps every data key by `to` and makes it the current one, in one transaction. `isReady` decides in that transaction
 * whether every process has `to`. Throws `LostRace` if keys were added or destroyed meanwhile: call it again.
 */
export async function turnKek(
  rotation: Rotation,
  { isReady, useConfirmation }: { isReady: (db: Db) => Promise<boolean>; useConfirmation: UseConfirmation },
  by: By,
): Promise<ActResult<Turned, TurnRefusal>> {
  const { store, keks: host, to } = rotation
  const anew = await Promise.all(
    (await dataKeys.findAll(store)).flatMap(({ purpose, version, kekId, wrapped }) =>
      wrapped && kekId !== to.id ? [wrapAnew(host, { purpose, version, kekId, wrapped }, to)] : [],
    ),
  )
  const lives = await proveLivesBy(to, rotation)
  return perform(store, { action: 'kek.rotate', subject: to.id }, by, async db => {
    const former = await installation.lockKek(db)
    if (former === undefined || former === to.id) return { refused: 'current' }
    if (!(await isReady(db))) return { refused: 'not_ready' }
    // `key forget kek` may have run while this command waited.
    if (!(await keks.list(db)).some(({ kekId }) => kekId === to.id)) return { refused: 'forgotten' }
    const confirmed = await useConfirmation(db)
    if (!confirmed) return { refused: 'unconfirmed' }
    await installation.setKek(db, to.id)
    await writeAnew(db, anew)
    if (!(await keyLives.replace(db, lives.row, lives.former))) throw new LostRace('the lives of the keys changed')
    // Without its row nothing would keep the former key from being forgotten while backups need it.
    if (!(await keks.retire(db, former))) throw new ConfigError(installation.INCOMPLETE)
    const isKnown = await keks.activate(db, to.id)
    if (!isKnown || (await dataKeys.countUnderOther(db, to.id)) > 0) throw new LostRace('keys were added')
    const detail = { former, data_keys: anew.length, ...confirmed.detail }
    return { done: { former, dataKeys: anew.length }, detail }
  })
}

async function writeAnew(db: Db, anew: readonly (WrappedNow & { from: string })[]): Promise<void> {
  for (const { from, ...key } of anew)
    if (!(await dataKeys.rewrap(db, key, from))) throw new LostRace(`the key ${key.purpose} changed`)
}

type WrappedNow = Parameters<typeof rewrap>[1]

async function wrapAnew(
  host: Rotation['keks'],
  key: WrappedNow,
  to: KeyProvider,
): Promise<WrappedNow & { from: string }> {
  return { ...key, kekId: to.id, wrapped: await rewrap(host, key, to), from: key.kekId }
}

export type ForgetRefusal = 'current' | 'wraps' | 'unknown' | 'backups' | 'unconfirmed'

export interface Forgetting {
  kekId: string
  /** How long backups are kept. */
  backupDays: number
  /** The operator says that no backup needs the key. */
  areBackupsGone: boolean
}

/** Removes the row of a key that wraps nothing. The key itself must be destroyed where it is kept. */
export function forgetKek(
  store: Store,
  { kekId, backupDays, areBackupsGone }: Forgetting,
  by: By,
  useConfirmation: UseConfirmation,
): Promise<ActResult<keks.KekInfo, ForgetRefusal>> {
  return perform(store, { action: 'kek.forget', subject: kekId }, by, async db => {
    if ((await installation.lockKek(db)) === kekId) return { refused: 'current' }
    if ((await dataKeys.countUnder(db, kekId)) > 0) return { refused: 'wraps' }
    const kek = await keks.lock(db, kekId)
    if (!kek) return { refused: 'unknown' }
    if (!areBackupsGone && (await readClock(db)) < neededUntil(kek, backupDays)) return { refused: 'backups' }
    const confirmed = await useConfirmation(db)
    if (!confirmed) return { refused: 'unconfirmed' }
    await keks.remove(db, kekId)
    return { done: kek, detail: { state: kek.state, backups_are_gone: areBackupsGone, ...confirmed.detail } }
  })
}

/** Until when backups may need a key, in ms since the epoch. A key that never wrapped anything: 0. */
export function neededUntil({ retiredAt }: Pick<keks.KekInfo, 'retiredAt'>, backupDays: number): number {
  return retiredAt === null ? 0 : retiredAt + backupDays * DAY_MS
}
