// Under which versions of the fingerprint key cards are written and found: one row, which every transaction that writes
// cards reads. The lock of that read lasts until the end of the transaction, so a phase never changes under a writer,
// and no clock and no acknowledgement is needed. Only this file writes the row.
import { ConfigError } from '../../config.ts'
import { plains, texts } from '../columns.ts'
import { type Db, LostRace, limitStatements, type Store } from '../pool.ts'

/**
 * SINGLE: one version is written. BOTH: the former and the next are written, and the workers write the next one into older
 * rows. NEW: the next one is written, and the workers remove the former. Then SINGLE again.
 */
export type PhaseName = 'SINGLE' | 'BOTH' | 'NEW'

export interface CardPhase {
  /** The number of this row's state: each change of the row adds one. */
  turn: number
  phase: PhaseName
  /** The versions of the fingerprints that a token's row keeps. */
  writes: readonly number[]
  /** All versions under which a card may be found; `writes` come first. */
  looks: readonly number[]
  /** Workers of release 0.3 may still run: they look for whole fingerprints. */
  besideOlder: boolean
}

/** The phase has changed since the cards were hashed. The caller reads its keys again and hashes the cards again. */
export class CardPhaseChanged extends LostRace {
  override name = 'CardPhaseChanged'

  constructor() {
    super('the fingerprint key has turned meanwhile')
  }
}

interface Row {
  turn: number
  phase: PhaseName
  writes: number[]
  looks: number[]
  beside_older: boolean
  is_filled: boolean
}

const FIND = `select turn, phase, writes, looks, beside_older, is_filled from tokenmill.card_phase`

/** Throws `ConfigError` while the table of cards isn't filled yet. */
export async function find(db: Db): Promise<CardPhase> {
  const { rows } = await db.query<Row>({ name: 'card-phase', text: FIND })
  const [row] = rows
  if (!row) throw new Error('broken law: there is a card phase')
  if (!row.is_filled)
    throw new ConfigError(
      'DATABASE_URL: `tokenmill schema upgrade` has not written all cards yet; run it again, it goes on where it was',
    )
  const { turn, phase, writes, looks, beside_older: besideOlder } = row
  return { turn, phase, writes, looks, besideOlder }
}

/** Throws `CardPhaseChanged` unless the row's turn is this one. The turn then stays until the end of the transaction. */
export async function assertTurn(db: Db, turn: number): Promise<void> {
  const { rows } = await db.query<{ turn: number }>({
    name: 'card-turn',
    text: 'select turn from tokenmill.card_phase',
  })
  if (rows[0]?.turn !== turn) throw new CardPhaseChanged()
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

const PHASE_ALONE = ['tokenmill.card_phase']
/** Locked in the order in which writers lock these tables. */
const CARDS_ALONE = ['tokenmill.token', 'tokenmill.scheme_token', ...PHASE_ALONE]

export interface AloneOptions {
  /**
   * Called after some seconds of waiting, and again, with up to five sessions that hold the tables, such as `pid 4711
   * (pg_dump)`.
   */
  waits?: ((holders: readonly string[]) => void) | undefined
  /** Also locks the tables of tokens, as `leaveOlder` needs. */
  withTokens?: boolean
}

/** A store whose transactions run while no other transaction writes cards. Each transaction is tried until it gets its locks. */
export function storeAlone(store: Store, options: AloneOptions = {}): Store {
  return { ...store, transaction: work => runAlone(store, work, options) }
}

async function runAlone<T>(
  store: Store,
  work: (db: Db) => Promise<T>,
  { waits, withTokens = false }: AloneOptions,
): Promise<T> {
  const tables = withTokens ? CARDS_ALONE : PHASE_ALONE
  const tellsFrom = Date.now() + TELL_MS
  for (let pauseMs = PAUSE_MS.first; ; pauseMs = Math.min(pauseMs * 2, PAUSE_MS.max)) {
    try {
      return await store.transaction(async db => {
        await db.query({ text: `set local lock_timeout = ${LOCK_MS}` })
        for (const table of tables) await db.query({ text: `lock table ${table} in access exclusive mode` })
        return work(db)
      })
    } catch (error) {
      if (!(error instanceof LostRace) || error.message !== LOCK_NOT_AVAILABLE) throw error
      if (waits && Date.now() >= tellsFrom) waits(await findHolders(store, tables))
      await new Promise(resolve => setTimeout(resolve, pauseMs))
    }
  }
}

/**
 * Up to five sessions that hold these tables, the longest transaction first. Only a superuser sees the names of all
 * sessions.
 */
async function findHolders(db: Db, tables: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ pid: number; name: string | null }>({
    text: `select a.pid, nullif(a.application_name, '') as name from pg_stat_activity as a
where a.datname = current_database() and a.pid <> pg_backend_pid() and exists (
  select from pg_locks as l where l.pid = a.pid and l.granted and l.relation = any($1::text[]::regclass[]::oid[])
) order by a.xact_start limit 5`,
    values: [texts(tables)],
  })
  return rows.map(({ pid, name }) => (name === null ? `pid ${pid}` : `pid ${pid} (${name})`))
}

/** Writes the next phase, in a transaction of `storeAlone`. */
export async function write(
  db: Db,
  { phase, writes, looks }: Pick<CardPhase, 'phase' | 'writes' | 'looks'>,
): Promise<void> {
  await db.query({
    text: `update tokenmill.card_phase set turn = turn + 1, phase = $1, writes = $2::smallint[], looks = $3::smallint[],
  since = now()`,
    values: [phase, plains(writes), plains(looks)],
  })
}

/**
 * Ends the time beside release 0.3, in a transaction of `storeAlone` with `withTokens`. From then on no worker of 0.3 may run:
 * it would look for whole fingerprints, which nobody writes any more, and the database refuses what it writes about cards.
 */
export async function leaveOlder(db: Db): Promise<void> {
  await db.query({ text: 'update tokenmill.card_phase set turn = turn + 1, beside_older = false' })
  await db.query({ text: 'select tokenmill.forget_whole_fingerprints()' })
  // Only the sweep of release 0.3 used this index, and each change of a status would have to write it.
  await db.query({ text: 'drop index if exists tokenmill.token_expires' })
}

/**
 * How many cards are under this version, without those of provisionings whose token has the card, too. It reads whole tables,
 * and changes the limits of the transaction in which it is called.
 */
export async function countUnder(db: Db, version: number): Promise<number> {
  await limitStatements(db, 0)
  await db.query({ text: 'set local enable_seqscan = on' })
  const { rows } = await db.query<{ rows: number }>({
    text: `select (select count(*) from tokenmill.card where version = $1)
  + (select count(*) from tokenmill.scheme_card as c where c.version = $1 and exists (
    select from tokenmill.scheme_token as s where s.provision_id = c.provision_id and s.taken_at is null)) as rows`,
    values: [version],
  })
  return rows[0]?.rows ?? 0
}

/** The place that the first filling of the directory has reached; undefined once it is done. */
export async function findFilling(db: Db): Promise<string | undefined> {
  const { rows } = await db.query<{ filled_to: string; is_filled: boolean }>({
    text: 'select filled_to, is_filled from tokenmill.card_phase',
  })
  return rows[0]?.is_filled === false ? rows[0].filled_to : undefined
}

/** Notes how far the filling is. `to`: the last token that is filled; undefined: the filling is done. */
export async function noteFilled(db: Db, to: string | undefined): Promise<void> {
  await db.query({
    text: 'update tokenmill.card_phase set filled_to = coalesce($1::uuid, filled_to), is_filled = $1::uuid is null',
    values: [to ?? null],
  })
}
