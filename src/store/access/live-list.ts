// Decides which worker process publishes the list of live keys. Every worker process asks about once a second; one of
// them gets the turn, with the next number. It also keeps the list, for gateways.
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
 * Takes a turn if clients, keys or scopes have changed since the last turn, or if the last turn is `everyMs` ago; else
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

/** Keeps the list (JWS) that was signed in this turn, unless somebody took a later turn meanwhile. */
export async function keep(db: Db, { seq }: Pick<Turn, 'seq'>, list: string): Promise<void> {
  await db.query({
    text: `update tokenmill.live_list
set list = $2
where seq = $1`,
    values: [seq, list],
  })
}

/** The list (JWS) that is kept; undefined if there is none, or if it is the one with the number `known`. */
export async function findSigned(db: Db, known: number): Promise<string | undefined> {
  const { rows } = await db.query<{ list: string }>({
    name: 'live-list-signed',
    text: `select list
from tokenmill.live_list
where list is not null and seq <> $1`,
    values: [known],
  })
  return rows[0]?.list
}
