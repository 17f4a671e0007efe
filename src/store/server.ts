// Asks the store's server about itself: whether it answers, whether it takes writes, its clock and its settings. No
// table is read.
import type { Clock } from '../clock.ts'
import { assert, Fault } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { every } from '../recurring.ts'
import type { ConnectionLimits } from './connection/plan.ts'
import type { Db, Store } from './pool.ts'

/** Resolves once the server has answered; throws what the pool throws. */
export async function ping(db: Db): Promise<void> {
  await db.query({ text: 'select 1' })
}

/** Resolves if the server answers and takes writes; else throws a fault that says why it doesn't. */
export async function tryWrites(store: Pick<Store, 'query' | 'troubles'>): Promise<void> {
  const state = await readWritable(store)
  if (state.writable) return store.troubles.worked()
  const error = new ReadOnly(state.standby ? 'it is a standby' : 'transaction_read_only is on')
  store.troubles.note(error)
  throw new Fault('store_away', error)
}

/** A server that answers and takes no writes, as if it had refused one. */
class ReadOnly extends Error {
  override name = 'ReadOnly'
  readonly code = '25006'
}

/** The functions of the store that health checks and metrics use. */
export function watched(store: Store) {
  const { connections, writableServers, troubles } = store
  return { ping: () => tryWrites(store), trouble: troubles.now, connections, writableServers }
}

/** The server's clock, ms since the epoch. */
export async function readClock(db: Db): Promise<number> {
  const { rows } = await db.query<{ now: number }>({ text: 'select clock_timestamp() as now' })
  const [row] = rows
  assert(row, 'a server has a clock')
  return row.now
}

/** An answer that took longer, in ms, says little of a clock: the network, the server or this process stood still. */
const TOOK_MS_MAX = 2_000

/**
 * How far a clock is ahead of the server's, in ms; half the round trip is subtracted. Undefined if the answer took so long
 * that it may as well be right.
 */
export async function measureSkew(db: Db, clock: Clock): Promise<number | undefined> {
  const [before, asked] = [clock(), performance.now()]
  const now = await readClock(db)
  const tookMs = performance.now() - asked
  const skewMs = Math.round((before + clock()) / 2 - now)
  return tookMs > TOOK_MS_MAX && Math.abs(skewMs) <= tookMs / 2 + TOOK_MS_MAX ? undefined : skewMs
}

const COMPARE_MS = 30_000

interface StoreClock {
  /** The own clock, set right. */
  clock: Clock
  /** How far the own clock is ahead, in ms, as the last comparison says. */
  aheadMs(): number
  /** Compares at once, because something showed that the clock may be off. Doesn't throw. */
  compare(): Promise<void>
  stop: () => Promise<void>
}

/**
 * This host's clock, set right by the server's: it is compared now and every 30 s. While the server is away, or answers
 * too slowly, the last comparison counts.
 */
export async function openStoreClock(db: Db, own: Clock, { log }: { log: Logger }): Promise<StoreClock> {
  let aheadMs = 0
  const compare = async () => {
    aheadMs = (await measureSkew(db, own)) ?? aheadMs
  }
  const compareNow = () => compare().catch(() => {})
  await compareNow()
  return {
    clock: () => own() - aheadMs,
    aheadMs: () => aheadMs,
    compare: compareNow,
    stop: every(COMPARE_MS, compare, { log }),
  }
}

async function readWritable(db: Pick<Db, 'query'>): Promise<{ writable: boolean; standby: boolean }> {
  const { rows } = await db.query<{ readonly: string; standby: boolean }>({
    text: `select current_setting('transaction_read_only') as readonly, pg_is_in_recovery() as standby`,
  })
  const [row] = rows
  assert(row, 'a server says whether it takes writes')
  return { writable: row.readonly === 'off', standby: row.standby }
}

/** The user as whom this process logs in. */
export async function readLogin(db: Db): Promise<string> {
  const { rows } = await db.query<{ login: string }>({ text: 'select session_user::text as login' })
  const [row] = rows
  assert(row, 'a session has a user')
  return row.login
}

/** How many connections the server, this database and these users are permitted. A superuser has no limit of its own. */
export async function readConnectionLimits(db: Db, users: Iterable<string>): Promise<ConnectionLimits> {
  const names = ['max_connections', 'superuser_reserved_connections', 'reserved_connections']
  const settings = await readSettings(db, names)
  const [most = 0, ...reserved] = names.map(name => Number(settings.get(name)?.value ?? 0))
  const { rows: databases } = await db.query<{ most: number }>({
    text: `select datconnlimit as most
from pg_database
where datname = current_database()`,
  })
  const { rows: limited } = await db.query<{ name: string; most: number }>({
    text: `select rolname::text as name, rolconnlimit as most
from pg_roles
where rolname = any($1::text[]) and rolconnlimit >= 0 and not rolsuper
order by 1`,
    values: [[...users]],
  })
  const [ofDatabase = -1] = databases.map(row => row.most)
  return {
    most,
    ofServer: most - reserved.reduce((sum, value) => sum + value, 0),
    ofDatabase: ofDatabase < 0 ? undefined : ofDatabase,
    ofUsers: new Map(limited.map(({ name, most }) => [name, most])),
  }
}

export interface Setting {
  value: string
  /** The base unit in which the value is given. */
  unit: string | null
  /** The values that this server has for it, where these are words. */
  choices: string[] | null
}

/** The server's settings by name. Settings that this server doesn't have are left out. */
export async function readSettings(db: Db, names: readonly string[]): Promise<Map<string, Setting>> {
  const { rows } = await db.query<Setting & { name: string }>({
    text: `select
  name,
  setting as value,
  unit,
  enumvals as choices
from pg_settings
where name = any($1::text[])`,
    values: [names],
  })
  return new Map(rows.map(({ name, ...setting }) => [name, setting]))
}
