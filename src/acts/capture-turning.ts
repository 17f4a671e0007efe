// What is due for the capture keys of an entity whose keys turn by themselves: which line gets a further key, which
// former key is retired, and which former key isn't, because somebody still encrypts to it.

import * as captureKeys from '../store/access/capture-keys.ts'
import * as turning from '../store/capture/turning.ts'
import type { Db } from '../store/pool.ts'
import { KEYS_MAX } from '../vault/capture/keys-max.ts'
import { IDLE_MS } from './capture-keys.ts'

const DAY_MS = 86_400_000

/** The use of an entity's keys counts as watched while one of them was used in this time. */
const WATCHED_MS = 3 * DAY_MS

export interface DueLines {
  /** Aliases whose newest key is as old as the entity's keys may become. */
  rotate: string[]
  retire: captureKeys.CaptureKeyInfo[]
  /** Replaced long ago and still in use. */
  inUse: captureKeys.CaptureKeyInfo[]
  /** Aliases that can't get a further key, because the line has the most that it may have. */
  full: string[]
  /** Entities none of whose keys was used lately: nothing is known of their use, so none is retired for 14 days. */
  unwatched: string[]
}

const none = (): DueLines => ({ rotate: [], retire: [], inUse: [], full: [], unwatched: [] })

/** Whether tokenmill wrote the row. If tokenmill didn't write a row of a line, the line isn't changed. */
export type IsOurs = (key: captureKeys.CaptureKeyInfo) => boolean

/** `keys`: all of one entity. `now`: ms since the epoch. */
function dueOf(
  keys: readonly captureKeys.CaptureKeyInfo[],
  { entityId, everyDays, since }: turning.Turning,
  isOurs: IsOurs,
  now: number,
): DueLines {
  const due = none()
  const isWatched = keys.some(({ lastUsedAt }) => (lastUsedAt ?? 0) > now - WATCHED_MS)
  if (!isWatched) due.unwatched.push(entityId)
  // After a pause, or in a restored backup, the stored last use of a key may be older than the real one.
  const mayRetire = isWatched && since <= now - IDLE_MS
  for (const [alias, line] of Map.groupBy(keys, key => key.alias)) {
    const active = line.filter(({ state }) => state === 'ACTIVE').sort((a, b) => b.number - a.number)
    const [newest] = active
    if (!newest || !active.every(isOurs)) continue
    const isFull = line.filter(({ state }) => state !== 'DESTROYED').length >= KEYS_MAX
    if (newest.createdAt <= now - everyDays * DAY_MS) (isFull ? due.full : due.rotate).push(alias)
    for (const key of replaced(active, now)) {
      if ((key.lastUsedAt ?? 0) > now - IDLE_MS) due.inUse.push(key)
      else if (mayRetire) due.retire.push(key)
    }
  }
  return due
}

/** The keys that another active one replaced long ago. `active`: of one line, newest first. */
function replaced(active: readonly captureKeys.CaptureKeyInfo[], now: number): captureKeys.CaptureKeyInfo[] {
  return active.filter((_, index) => {
    const successor = active[index - 1]
    return successor !== undefined && successor.createdAt <= now - IDLE_MS
  })
}

/** What is due for all entities whose keys turn by themselves. */
export async function listDueLines(db: Db, now: number, isOurs: IsOurs = () => true): Promise<DueLines> {
  const all = none()
  for (const turns of await turning.list(db)) {
    const due = dueOf(await captureKeys.list(db, turns.entityId), turns, isOurs, now)
    all.rotate.push(...due.rotate)
    all.retire.push(...due.retire)
    all.inUse.push(...due.inUse)
    all.full.push(...due.full)
    all.unwatched.push(...due.unwatched)
  }
  return all
}
