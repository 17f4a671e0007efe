// Whether sessions of this database wait for a lock that another one keeps: an administrator's LOCK TABLE, a transaction that was
// begun and left open, a change of the schema.
import { cleanText } from '../../../src/clean-text.ts'
import type { Db } from '../../../src/store/pool.ts'
import { type LockHolder, listHolders } from '../../../src/store/watch/lock-waits.ts'
import { count, duration } from '../../../src/units.ts'
import { critical, type Verdict, warning, well } from '../check.ts'

/** A statement of tokenmill's own holds a lock for less than a second. */
const WAIT_MS = { warning: 3_000, critical: 20_000 } as const
const SHOWN_MAX = 3

export async function askLocks({ store }: { store(): Promise<Db> }): Promise<Verdict> {
  return judgeLocks(await listHolders(await store(), WAIT_MS.warning))
}

export function judgeLocks(holders: readonly LockHolder[]): Verdict {
  const [first] = holders
  if (!first) return well('nobody waits for a lock')
  const says = holders.slice(0, SHOWN_MAX).map(describeHolder).join('; ')
  const more = holders.length > SHOWN_MAX ? ` and ${holders.length - SHOWN_MAX} more` : ''
  const next =
    first.pid === 0
      ? 'see pg_prepared_xacts, and `commit prepared` or `rollback prepared` it'
      : `ask its user to end it; or in psql end it by \`pg_terminate_backend(${first.pid})\``
  return (first.waitMs >= WAIT_MS.critical ? critical : warning)(`${says}${more}`, next)
}

/** What holds others up, for a person. */
export function describeHolder(holder: LockHolder): string {
  const { pid, user, application, relations, mode, state, heldMs, waiting, waitMs } = holder
  const names = [user === null ? [] : `user ${shown(user)}`, application === null ? [] : shown(application)].flat()
  const who =
    pid === 0
      ? 'a prepared transaction'
      : `process ${pid} of PostgreSQL${names.length > 0 ? ` (${names.join(', ')})` : ''}`
  const what = relations.length === 0 ? 'a lock' : relations.map(shown).join(', ')
  const since = heldMs === null ? `for ${duration(waitMs)} or longer` : `for ${duration(heldMs)}`
  const how = [mode ?? [], state === null || state === 'active' ? [] : state].flat().join(', ')
  return `${who} has held ${what}${how ? ` (${how})` : ''} ${since}; ${count(waiting, 'session')} ${waiting === 1 ? 'waits' : 'wait'} for it, the first for ${duration(waitMs)}`
}

/** Anybody who connects gives itself a name: on one line, and not longer than a name of PostgreSQL. */
function shown(name: string): string {
  return cleanText(name).slice(0, 63)
}

/** What `explain` and others add where somebody waits. */
export async function lockNotes(db: Db): Promise<string[]> {
  const holders = await listHolders(db, WAIT_MS.warning)
  return holders.slice(0, SHOWN_MAX).map(holder => `PostgreSQL: ${describeHolder(holder)}.`)
}
