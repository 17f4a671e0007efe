// Configures every new connection and checks that its settings took effect. They are set by statements, not as start-up
// parameters: a pooler may refuse or drop those, and then a gateway would work with the rights of the database's owner.
import { ConfigError } from '../../config.ts'
import type { Finder } from './finder.ts'
import type { Host } from './hosts.ts'
import { PlacedClient } from './placed-client.ts'

/** PostgreSQL's settings by name; `role` is one of them. */
export type Settings = Readonly<Record<string, string>>

/**
 * What statements and driver take for granted, and a database, a role or a pooler may have set otherwise: the forms of
 * values, the meaning of texts and of null, isolation, no limits of time but our own, plans that look rows up. The caller's
 * settings come after these. A name that the server's version doesn't know is passed over.
 */
const GRANTED: Settings = {
  array_nulls: 'on',
  bytea_output: 'hex',
  client_encoding: 'UTF8',
  datestyle: 'ISO, MDY',
  default_transaction_deferrable: 'off',
  default_transaction_isolation: 'read committed',
  enable_indexonlyscan: 'on',
  enable_indexscan: 'on',
  enable_nestloop: 'on',
  enable_partition_pruning: 'on',
  exit_on_error: 'off',
  extra_float_digits: '1',
  idle_in_transaction_session_timeout: '0',
  idle_session_timeout: '0',
  intervalstyle: 'postgres',
  lock_timeout: '0',
  password_encryption: 'scram-sha-256',
  plan_cache_mode: 'auto',
  quote_all_identifiers: 'off',
  row_security: 'on',
  standard_conforming_strings: 'on',
  statement_timeout: '0',
  // Only if it is off: which of the waiting levels is right, the operator decides.
  synchronous_commit: 'on',
  timezone: 'UTC',
  transaction_timeout: '0',
  transform_null_equals: 'off',
}
/** What only a superuser may set, and what it has to be. */
const CHECKED: Settings = { session_replication_role: 'origin' }

const ROUNDS = 3
const SECOND_MS_MAX = 5_000
const STAY_MS = 60_000
/** The SQLSTATE invalid_parameter_value, which PostgreSQL answers for a role that doesn't exist. */
const UNKNOWN_VALUE = '22023'
const NO_ROLE = 'DATABASE_URL: this server lacks a role or setting of tokenmill; run `tokenmill schema upgrade` first'
const TRANSACTION_MODE =
  'DATABASE_URL: a connection pooler gives a session to others after each transaction or statement; tokenmill needs sessions of its own (pgbouncer: pool_mode = session)'

const SET = `select session_user as login, array_agg(case
    when current_setting(name, true) is null then null
    when name = 'synchronous_commit' and current_setting(name) <> 'off' then current_setting(name)
    else set_config(name, value, false) end
      order by n) as
  values
  from unnest($1::text[], $2::text[]) with ordinality as given(name, value, n)`
const READ = `select
    current_user as "user",
    session_user as login,
    pg_backend_pid() as pid,
    array(select current_setting(name, true) from unnest($1::text[]) with ordinality as given(name, n) order by n) as
  values,
  array(select current_setting(name) from unnest($2::text[]) with ordinality as given(name, n) order by n) as checked`
const PID = 'select pg_backend_pid() as pid'
/** In one message, because the limit that the database or the pooler imposes may be shorter than the way there and back. */
const BEGIN = `begin; select set_config(name, '0', true)
  from unnest('{idle_in_transaction_session_timeout,lock_timeout,statement_timeout,transaction_timeout}'::text[]) as given(name)
  where current_setting(name, true) is not null`

interface Told {
  user: string
  login: string
  pid: number
  values: (string | null)[]
  /** Only of what is read back. */
  checked: string[]
}

/** Sets what is taken for granted and the caller's own settings, and reads them back. Throws `ConfigError` if one has another value. */
export async function configureSession(client: PlacedClient, own: Settings, finder: Finder): Promise<void> {
  const settings = { ...GRANTED, ...own }
  const names = Object.keys(settings)
  const set = await client.query<Told>(SET, [names, Object.values(settings)]).catch(error => {
    throw (error as { code?: string }).code === UNKNOWN_VALUE ? new ConfigError(NO_ROLE) : error
  })
  const read = await client.query<Told>(READ, [names, Object.keys(CHECKED)])
  const before = set.rows[0]
  const after = read.rows[0]
  const { processID } = client as unknown as { processID: number | null }
  // When a connection starts, PostgreSQL reports the id of its server process; a pooler reports another number.
  if (after?.pid !== processID) await assertSessionsStay(client, finder)
  // PostgreSQL may write a value in another form (`1min` for 60000), but the same value always in the same form.
  const lost = names.filter((_, index) => after?.values[index] !== before?.values[index])
  if (settings['role'] !== undefined && after?.user !== settings['role']) lost.push('current_user')
  if (after?.login !== before?.login) lost.push('session_user')
  if (lost.length > 0)
    throw new ConfigError(
      `DATABASE_URL: the server, or a connection pooler before it, does not keep ${lost.join(', ')}`,
    )
  const wrong = Object.entries(CHECKED).find(([, value], index) => after?.checked[index] !== value)
  if (wrong)
    throw new ConfigError(
      `DATABASE_URL: the server, this database or its user sets ${wrong[0]} to another value than ${wrong[1]}, and then triggers don't run; reset it`,
    )
}

/**
 * Throws if the pooler shares sessions. Checked once a minute, because it needs another connection, and again after a
 * lost connection.
 */
async function assertSessionsStay(client: PlacedClient, finder: Finder): Promise<void> {
  if (performance.now() < finder.sessionsStayUntil) return
  if (!(await sessionsStay(client, finder))) throw new ConfigError(TRANSACTION_MODE)
  finder.sessionsStayUntil = performance.now() + STAY_MS
}

/**
 * Whether a client keeps its session. While `first` is idle, a second connection begins a transaction: a pooler that
 * shares sessions gives it the session of `first`.
 */
async function sessionsStay(first: PlacedClient, { address }: Finder): Promise<boolean> {
  const host: Host | undefined = address.hosts.length > 0 ? { host: first.host, port: first.port } : undefined
  const second = new PlacedClient({ connectionString: address.url, keepAlive: true }, host)
  const late = setTimeout(() => second.cut(), SECOND_MS_MAX)
  try {
    await second.connect()
    const own = await pidOf(first)
    for (let round = 0; round < ROUNDS; round += 1) {
      await second.query(BEGIN)
      const other = await pidOf(second)
      const during = await pidOf(first)
      await second.query('rollback')
      if (other === own || during !== own || (await pidOf(first)) !== own) return false
    }
    return true
  } catch (error) {
    // A pooler that shares sessions by statement refuses every transaction.
    if (/statement pooling/i.test((error as Error).message)) return false
    throw error
  } finally {
    second
      .end()
      .catch(() => undefined)
      .finally(() => clearTimeout(late))
  }
}

async function pidOf(client: PlacedClient): Promise<number | undefined> {
  return (await client.query<{ pid: number }>(PID)).rows[0]?.pid
}

/**
 * The text for an error 08P01, which poolers use for everything. Only for an error that lasts until the configuration
 * is changed; undefined for an error that may pass.
 */
export function refusalOf(error: unknown): string | undefined {
  const { code, message } = error as { code?: unknown; message?: unknown }
  if (code !== '08P01' || typeof message !== 'string') return undefined
  const parameter = /unsupported startup parameter(?: in options)?:\s*"?(\w+)/i.exec(message)?.[1]
  if (parameter)
    return `DATABASE_URL: a pooler stands before PostgreSQL and refuses the start-up parameter ${parameter}`
  if (/no such database/i.test(message)) return 'DATABASE_URL: the pooler before PostgreSQL has no such database'
  if (/no such user|auth(entication)? failed/i.test(message))
    return 'DATABASE_URL: the pooler before PostgreSQL does not accept this user and password'
  return undefined
}
