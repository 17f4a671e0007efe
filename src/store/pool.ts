// The store's statements and transactions on PostgreSQL, and its errors as Faults. connection.ts opens the connections.
import pg from 'pg'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import type { Logger } from '../logger.ts'
import { openTroubles, type Troubles } from '../server-error.ts'
import { plains } from './columns.ts'
import { openPool } from './connection/connection.ts'
import type { Finder } from './connection/finder.ts'
import type { PlacedClient } from './connection/placed-client.ts'

/** Either the pool or one transaction: both run statements. */
export interface Db {
  query<R>(statement: Statement): Promise<{ rows: R[]; count: number }>
}

/** With a `name` the statement is prepared once per connection. */
export interface Statement {
  name?: string
  text: string
  values?: unknown[]
}

export interface Store extends Db {
  /**
   * Runs `work` between begin and commit. `lock` is taken first: if two transactions have the same lock, the second
   * waits for the end of the first. `meanwhile` runs while the commit is under way, which may still fail.
   */
  transaction<T>(work: (db: Db) => Promise<T>, options?: { lock?: string; meanwhile?: (result: T) => void }): Promise<T>
  pool: pg.Pool
  connections(): { total: number; idle: number; waiting: number }
  /** What the server refused lately. */
  troubles: Troubles
  /** How many servers of DATABASE_URL took writes when they were last asked. More than one raises an alarm. */
  writableServers(): number
  close(): Promise<void>
}

/** Another transaction has changed the rows that were read. The caller starts again from reading. */
export class LostRace extends Error {
  override name = 'LostRace'
}

interface StoreOptions {
  log: Logger
  connectionsMax: number
  /** The database role with whose rights all statements run. */
  role?: 'tokenmill_reader' | 'tokenmill_gateway' | 'tokenmill_console'
  /** The time limit of each statement, in ms (60,000). */
  statementMsMax?: number
  application?: string
}

const { types } = pg
// Dates stay texts (a JavaScript Date would shift them by the time zone), times become milliseconds, counts become
// numbers.
const parsers: Record<number, (text: string) => unknown> = {
  [types.builtins.DATE]: text => text,
  [types.builtins.TIMESTAMPTZ]: text => new Date(text).getTime(),
  [types.builtins.INT8]: Number,
}
const ourTypes = {
  getTypeParser: (oid: number, format?: 'text' | 'binary') =>
    parsers[oid] ?? types.getTypeParser(oid, format as 'text'),
} as unknown as pg.CustomTypesConfig

// The frequent statements of workers look rows up by key. PostgreSQL must not keep a plan from the time when the tables
// were empty and then scan millions of rows, so the other kinds of plan are switched off.
const LOOKUPS_ONLY = {
  enable_seqscan: 'off',
  enable_hashjoin: 'off',
  enable_mergejoin: 'off',
  enable_bitmapscan: 'off',
  jit: 'off',
}

export function openStore(url: string, options: StoreOptions): Store {
  const { log, connectionsMax, role, statementMsMax = 60_000, application = 'tokenmill' } = options
  const { pool, finder } = openPool(url, {
    max: connectionsMax,
    application,
    settings: {
      search_path: 'tokenmill',
      timezone: 'UTC',
      statement_timeout: `${statementMsMax}`,
      ...(role ? { role } : LOOKUPS_ONLY),
    },
    log,
    // Statements of one transaction that don't depend on each other's results are sent without waiting.
    driver: { pipeline: true, types: ourTypes },
  })
  pool.on('error', error => log.warn({ err: error }, 'an idle store connection was lost'))
  return storeOf(pool, finder, openTroubles(log))
}

function storeOf(pool: pg.Pool, finder: Finder, troubles: Troubles): Store {
  /** Tells the finder that a server is away or has become read-only, so that it isn't used any more. */
  const noticed = (meaning: unknown) => {
    troubles.note(meaning)
    if (meaning instanceof Fault && meaning.code === 'store_away') finder.forget()
    return meaning
  }
  return {
    pool,
    troubles,
    writableServers: finder.writable,
    query: <R>(statement: Statement) =>
      run<R>(pool, statement).catch(error => {
        throw noticed(error)
      }),
    connections: () => ({ total: pool.totalCount, idle: pool.idleCount, waiting: pool.waitingCount }),
    close: () => pool.end(),
    async transaction(work, { lock, meanwhile } = {}) {
      const client = (await pool.connect().catch(error => {
        throw noticed(toStoreFault(error))
      })) as pg.PoolClient & PlacedClient
      let broken: Error | undefined
      let ended = false
      let failure: unknown
      // Not awaited, so that the next statement is sent right behind it. If `begin` fails, all that follows fails too,
      // and the error of `begin` is the one that is thrown.
      client.sendTogether()
      const begun = client.query(
        lock === undefined ? 'begin' : `begin; select pg_advisory_xact_lock(${lockNumber(lock)})`,
      )
      begun.catch(() => {})
      try {
        const result = await work({
          // After a failure `work` may still be sending statements that it began side by side. They must not run
          // outside the transaction.
          query: statement => {
            if (ended) return Promise.reject(new LostRace('the transaction has ended'))
            client.sendTogether()
            return run(client, statement, error => {
              failure ??= error
            })
          },
        })
        await begun
        ended = true
        const committing = client.query('commit')
        committing.catch(() => {})
        meanwhile?.(result)
        // A transaction in which a statement failed is rolled back, and the server doesn't call that an error.
        if ((await committing).command === 'ROLLBACK')
          throw failure ?? new Error('broken law: only a failed statement aborts a transaction')
        return result
      } catch (error) {
        ended = true
        const meaning = noticed(
          toStoreFault(
            await begun.then(
              () => (isAborted(error) ? (failure ?? error) : error),
              (first: unknown) => first,
            ),
          ),
        )
        // A connection whose server became read-only, or whose rollback fails, is closed instead of being used again.
        if (meaning instanceof Fault && meaning.code === 'store_away') broken = meaning
        await client.query('rollback').catch((failure: Error) => {
          broken = failure
        })
        throw meaning
      } finally {
        client.release(broken)
      }
    },
  }
}

/**
 * Takes another lock within a transaction: if two transactions have the same lock, the second waits for the end of the
 * first.
 */
export async function hold(db: Db, lock: string): Promise<void> {
  await db.query({ name: 'hold', text: 'select pg_advisory_xact_lock($1)', values: [lockNumber(lock)] })
}

/** Takes those of these locks (UUIDs) that no other transaction has, and returns them. It waits for none. */
export async function tryHoldAll(db: Db, locks: readonly string[]): Promise<ReadonlySet<string>> {
  const { rows } = await db.query<{ id: string }>({
    name: 'try-hold',
    text: `select v.id
from unnest($1::uuid[], $2::bigint[]) as v(id, number)
where pg_try_advisory_xact_lock(v.number)`,
    values: [plains(locks), plains(locks.map(lockNumber))],
  })
  return new Set(rows.map(({ id }) => id))
}

/** Sets how long each later statement of this transaction may wait for a lock; after that it fails as a lost race. */
export async function limitLockWaits(db: Db, ms: number): Promise<void> {
  await db.query({ name: `lock-timeout-${ms}`, text: `set local lock_timeout = ${ms}` })
}

/** Sets how long, in ms, each later statement of this transaction may take; the server ends it after that. 0: any time. */
export async function limitStatements(db: Db, ms: number): Promise<void> {
  await db.query({ name: `statement-timeout-${ms}`, text: `set local statement_timeout = ${ms}` })
}

/** The number of an advisory lock: the first 63 bits of its UUID. */
function lockNumber(uuid: string): string {
  return (BigInt(`0x${uuid.replaceAll('-', '').slice(0, 16)}`) >> 1n).toString()
}

/** `failed` is called with the meaning of a failure before the caller gets it. */
async function run<R>(
  on: pg.Pool | pg.PoolClient,
  statement: Statement,
  failed?: (meaning: unknown) => void,
): Promise<{ rows: R[]; count: number }> {
  try {
    const result = await on.query(statement as pg.QueryConfig)
    return { rows: result.rows as R[], count: result.rowCount ?? 0 }
  } catch (error) {
    const meaning = toStoreFault(error)
    failed?.(meaning)
    throw meaning
  }
}

/**
 * Whether a statement was refused because one before it, sent without waiting, had failed. The earlier error says why.
 */
function isAborted(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === '25P02'
}

const AWAY = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ENOTFOUND',
  'ETIMEDOUT',
  'EPIPE',
  'EHOSTUNREACH',
  'EAI_AGAIN',
  'ECONNABORTED',
  'EHOSTDOWN',
  'ENETDOWN',
  'ENETUNREACH',
  '57P01',
  '57P02',
  '57P03',
  '57P05',
  // The connection was cut in the middle of a transaction.
  '25P03',
  // The server is read-only: it was demoted, or is a standby.
  '25006',
  // It doesn't admit this user any more, or the database is gone. A process that starts says so by itself (cli/ending.ts).
  '28000',
  '28P01',
  '3D000',
  '57P04',
  // No server may be used (`Unfit`).
  'UNFIT',
])

/** Constraints that two transactions can violate together, because neither sees the other's rows. */
const RACES = new Set([
  // Two jobs that take up one token of a third party give it the same id.
  'token_pkey',
  'one_current_scheme_token_per_token',
  'network_reference_stands_once',
  'one_token_per_source_reference',
  'transaction_uid_stands_once',
])

/** Turns an error of the driver or the server into a Fault or LostRace; any other error stays as it is. */
export function toStoreFault(error: unknown): unknown {
  if (error instanceof Fault || error instanceof LostRace || error instanceof ConfigError) return error
  if (!(error instanceof Error)) return error
  const { code, constraint, severity } = error as Error & { code?: string; constraint?: string; severity?: string }
  if (code === undefined) {
    return /terminated|timeout exceeded|Connection ended|not queryable|closed/i.test(error.message)
      ? new Fault('store_away', error)
      : error
  }
  // A pooler ends a connection with 08P01 for any reason. The same code as the answer to a statement is a defect.
  const isBrokenStatement = code === '08P01' && severity === 'ERROR'
  // The database takes no connections now. The same code as the answer to a statement is a defect.
  const isClosed = code === '55000' && severity === 'FATAL'
  if (AWAY.has(code) || isClosed || (code.startsWith('08') && !isBrokenStatement)) return new Fault('store_away', error)
  if (code === '40001' || code === '40P01' || code === '55P03') return new LostRace(code)
  if (code === '23505' && constraint !== undefined && RACES.has(constraint)) return new LostRace(constraint)
  if (code.startsWith('53') || code.startsWith('58')) return new Fault('store_busy', error)
  if (code === '57014') return new Fault('deadline', error)
  if (code.startsWith('22') || code.startsWith('23')) return new Fault('data', error)
  return error
}
