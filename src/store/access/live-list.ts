// Decides which worker process publishes the list of live keys. Every worker process asks about once a second; one of
// them gets the turn, with the next number.
import type { Db } from '../pool.ts'

interface Turn {
  /** The list's number; it grows with every turn. */
  seq: number
  /**
   * When the turn was taken, ms since the epoch by the database's clock. Data that are read after it are at least that
   * new.
   */
  at: number
}

/**
 * Takes a turn if clients or keys have changed since the last turn, or if the last turn is `everyMs` ago; else
 * undefined.
 */
export async function takeTurn(db: Db, everyMs: number): Promise<Turn | undefined> {
  const { rows } = await db.query<Turn>({
    name: 'live-list-turn',
    text: `update tokenmill.live_list
set seq = seq + 1, told_change = change, told_at = clock_timestamp()
where told_change <> change or told_at <= clock_timestamp() - make_interval(secs => $1 / 1000.0)
returning seq, told_at as at`,
    values: [everyMs],
  })
  return rows[0]
}
