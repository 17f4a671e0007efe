// Under which versions of the fingerprint key cards are written and found: a part of the row that holds the lives of the
// keys (access/key-lives.ts), which every transaction that writes cards reads. The lock of that read lasts until the end of
// the transaction, so a phase never changes under a writer, and no clock and no acknowledgement is needed.
import { type Db, LostRace, limitStatements, type Store } from '../pool.ts'

/** The phase has changed since the cards were hashed. The caller reads its keys again and hashes the cards again. */
export class CardPhaseChanged extends LostRace {
  override name = 'CardPhaseChanged'

  constructor() {
    super('the fingerprint key has turned meanwhile')
  }
}

/**
 * Throws `CardPhaseChanged` unless the store says the phase in these bytes (`CardPhase.turn`), which the caller's process has
 * verified. The phase then stays until the end of the transaction.
 */
export async function assertTurn(db: Db, turn: string): Promise<void> {
  const { rows } = await db.query<{ isSame: boolean }>({
    name: 'card-turn',
    text: `select phase = $1 as "isSame"
from tokenmill.key_lives`,
    values: [turn],
  })
  if (rows[0]?.isSame !== true) throw new CardPhaseChanged()
}

/** A chunk may hold the row for long. Writers that come after this lock request wait behind it, for no longer than this. */
const LOCK_MS = 200
/**
 * Pauses between attempts, in ms, in which writers go on. Each is twice as long as the last, up to `max`: a reader may
 * hold a table for hours.
 */
const PAUSE_MS = { first: 50, max: 5_000 }
const TELL_MS = 3_000
const LOCK_NOT_AVAILABLE = '55P03'

const TABLE = 'tokenmill.key_lives'

export interface AloneOptions {
  /**
   * Called after some seconds of waiting, and again, with up to five sessions that hold the tables, such as `pid 4711
   * (pg_dump)`.
   */
  waits?: ((holders: readonly string[]) => void) | undefined
}

/** A store whose transactions run while no other transaction writes cards. Each transaction is tried until it gets its locks. */
export function storeAlone(store: Store, options: AloneOptions = {}): Store {
  return { ...store, transaction: work => runAlone(store, work, options) }
}

async function runAlone<T>(store: Store, work: (db: Db) => Promise<T>, { waits }: AloneOptions): Promise<T> {
  const tellsFrom = Date.now() + TELL_MS
  for (let pauseMs = PAUSE_MS.first; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS.max)) {
    try {
      return await store.transaction(async db => {
        await db.query({ text: `set local lock_timeout = ${LOCK_MS}` })
        await db.query({ text: `lock table ${TABLE} in access exclusive mode` })
        return work(db)
      })
    } catch (error) {
      if (!(error instanceof LostRace) || error.message !== LOCK_NOT_AVAILABLE) throw error
      if (waits && Date.now() >= tellsFrom) waits(await findHolders(store))
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }
}

/**
 * Up to five sessions that hold the table, the longest transaction first. Only a superuser sees the names of all
 * sessions.
 */
async function findHolders(db: Db): Promise<string[]> {
  const { rows } = await db.query<{ pid: number; name: string | null }>({
    text: `select a.pid, nullif(a.application_name, '') as name
from pg_stat_activity as a
where a.datname = current_database() and a.pid <> pg_backend_pid() and exists (
  select
  from pg_locks as l
  where l.pid = a.pid and l.granted and l.relation = $1::regclass
)
order by a.xact_start
limit 5`,
    values: [TABLE],
  })
  return rows.map(({ pid, name }) => (name === null ? `pid ${pid}` : `pid ${pid} (${name})`))
}

/** How many cards are under this version. It reads the whole table, and changes the limits of the transaction in which it is called. */
export async function countUnder(db: Db, version: number): Promise<number> {
  await limitStatements(db, 0)
  await db.query({ text: 'set local enable_seqscan = on' })
  const { rows } = await db.query<{ cards: number }>({
    text: `select count(*) as cards
from tokenmill.card
where version = $1`,
    values: [version],
  })
  return rows[0]?.cards ?? 0
}
