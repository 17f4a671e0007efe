// Which process publishes the list of live keys. Every worker process asks about once a second; one of them gets the
// turn and the next number.
import type { Db } from '../pool.ts'

interface Turn {
  /** Grows with every turn. */
  seq: number
  /** By the database's clock, ms since the epoch. Data read after a turn are of this time or newer. */
  at: number
}

/** A turn, if clients or keys have changed since the last one or that is `everyMs` ago; else undefined. */
export async function takeTurn(db: Db, everyMs: number): Promise<Turn | undefined> {
  const { rows } = await db.query<{ seq: number; told_at: number }>({
    name: 'live-list-turn',
    text: `update tokenmill.live_list set seq = seq + 1, told_change = change, told_at = clock_timestamp()
where told_change <> change or told_at <= clock_timestamp() - make_interval(secs => $1 / 1000.0)
returning seq, told_at`,
    values: [everyMs],
  })
  const row = rows[0]
  return row && { seq: row.seq, at: row.told_at }
}
