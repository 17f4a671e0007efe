// Settings that a database or its user imposes on every session: none changes what tokenmill does, and what it can't set
// itself it refuses in words.
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import { openLog } from '../../../src/log.ts'
import { TABLES } from '../../../src/store/composition.ts'
import { openStore } from '../../../src/store/pool.ts'
import { upgradeSchema } from '../../../src/store/schema-upgrade.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startPgbouncer } from '../../support/pgbouncer.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { findPgbouncer } from '../../support/postgres-tools.ts'
import { testPan } from '../../support/test-pan.ts'
import { writeBatch } from '../../support/write-batch.ts'

/** Each with a value that breaks something, and what a session of ours has instead. */
const HOSTILE = [
  ['array_nulls', 'off', 'on'],
  ['bytea_output', 'escape', 'hex'],
  ['client_encoding', 'LATIN1', 'UTF8'],
  ['datestyle', 'German, DMY', 'ISO, MDY'],
  ['default_transaction_isolation', 'serializable', 'read committed'],
  ['enable_indexscan', 'off', 'on'],
  ['enable_nestloop', 'off', 'on'],
  ['exit_on_error', 'on', 'off'],
  ['extra_float_digits', '-15', '1'],
  ['idle_in_transaction_session_timeout', '1', '0'],
  ['intervalstyle', 'iso_8601', 'postgres'],
  ['lock_timeout', '1', '0'],
  ['password_encryption', 'md5', 'scram-sha-256'],
  ['plan_cache_mode', 'force_custom_plan', 'auto'],
  ['quote_all_identifiers', 'on', 'off'],
  ['row_security', 'off', 'on'],
  ['search_path', 'nowhere', 'tokenmill'],
  ['standard_conforming_strings', 'off', 'on'],
  ['statement_timeout', '2s', '1min'],
  ['synchronous_commit', 'off', 'on'],
  ['idle_session_timeout', '2s', '0'],
  ['transaction_timeout', '2s', '0'],
  ['timezone', 'Pacific/Chatham', 'UTC'],
  ['transform_null_equals', 'on', 'off'],
] as const

type Whose = 'database' | 'user'

async function onDatabase(url: string, work: (client: Client) => Promise<unknown>): Promise<void> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    await work(client)
  } finally {
    await client.end()
  }
}

function alter(url: string, whose: Whose, changes: (client: Client) => readonly string[]): Promise<void> {
  return onDatabase(url, async client => {
    const { pathname, username } = new URL(url)
    const database = `database ${client.escapeIdentifier(pathname.slice(1))}`
    const of = whose === 'database' ? database : `role ${client.escapeIdentifier(username)} in ${database}`
    for (const change of changes(client)) await client.query(`alter ${of} ${change}`)
  })
}

/** Also PostgreSQL's own form of a list: `search_path` takes names, the others a text. */
const impose = (
  url: string,
  settings: readonly (readonly [string, string, ...string[]])[],
  whose: Whose = 'database',
): Promise<void> =>
  alter(url, whose, client => settings.map(([name, value]) => `set ${name} to ${client.escapeLiteral(value)}`))

async function release(url: string): Promise<void> {
  for (const whose of ['database', 'user'] as const) await alter(url, whose, () => ['reset all'])
}

const open = (url: string) =>
  openStore(url, { log: openLog('silent'), connectionsMax: 1, application: 'tokenmill test' })

describe('a setting that the database imposes', () => {
  let database: FreshDatabase
  beforeAll(async () => {
    database = await freshDatabase()
  })
  afterAll(() => database?.drop())

  it('is what it has to be in each session, whatever the database says', async () => {
    await impose(database.url, HOSTILE)
    const store = open(database.url)
    const names = HOSTILE.map(([name]) => name)
    const { rows } = await store.query<{ values: string[] }>({
      text: 'select array(select current_setting(name) from unnest($1::text[]) with ordinality as given(name, n) order by n) as values',
      values: [names],
    })
    await store.close()
    expect(Object.fromEntries(names.map((name, at) => [name, rows[0]?.values[at]]))).toEqual(
      Object.fromEntries(HOSTILE.map(([name, , ours]) => [name, ours])),
    )
  })

  it.each(['local', 'remote_write', 'remote_apply'])('leaves the operator’s synchronous_commit %s', async level => {
    await impose(database.url, [['synchronous_commit', level]])
    const store = open(database.url)
    const { rows } = await store.query<{ value: string }>({
      text: `select current_setting('synchronous_commit') as value`,
    })
    await store.close()
    expect(rows).toEqual([{ value: level }])
  })

  it('is refused in words where only a superuser may set it back', async () => {
    // A process that has worked on a store takes such a change for one that may pass.
    const other = await freshDatabase()
    await impose(other.url, [['session_replication_role', 'replica']])
    const store = open(other.url)
    const failure = await store.query({ text: 'select 1' }).catch(error => error)
    await store.close()
    await other.drop()
    expect(failure).toBeInstanceOf(ConfigError)
    expect((failure as Error).message).toContain('session_replication_role')
  })
})

describe('a database in another encoding', () => {
  it.each(['LATIN1', 'SQL_ASCII'])('%s is refused by the upgrade of the schema, with what to do', async encoding => {
    const { url, drop } = await freshDatabase({ empty: true })
    const client = new Client({ connectionString: url })
    await client.connect()
    const name = `${new URL(url).pathname.slice(1)}_encoded`
    await client.query(`create database ${name} encoding '${encoding}' locale 'C' template template0`)
    const own = new URL(url)
    own.pathname = `/${name}`
    try {
      await expect(upgradeSchema(own.href, TABLES)).rejects.toThrow(
        `this database stores texts in ${encoding}, which lacks letters that names have; make one with createdb --encoding=UTF8`,
      )
    } finally {
      await client.query(`drop database ${name} with (force)`)
      await client.end()
      await drop()
    }
  })
})

/** How the settings reach a session: each way, and all together. */
const WAYS: readonly Way[] = [
  { name: 'the database', database: true },
  { name: 'the database, through pgbouncer in session mode,', database: true, pooler: true },
  { name: 'the user, through pgbouncer in session mode,', user: true, pooler: true },
  { name: 'the connect_query of pgbouncer', connectQuery: true, pooler: true },
  { name: 'each of these', database: true, user: true, connectQuery: true, pooler: true },
]

interface Way {
  name: string
  database?: true
  user?: true
  pooler?: true
  connectQuery?: true
}

describeOnRedis('an installation', engine => {
  let dataDir: string
  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'tokenmill-hostile-'))
    // pgbouncer takes no long text. A name that the server doesn't know is passed over.
    const values = HOSTILE.map(([name, value]) => `('${name}', '${value}')`).join(', ')
    await onDatabase(engine.databaseUrl, client =>
      client.query(`create function public.hostile() returns bigint language sql as $$
select count(set_config(v.name, v.value, false)) from (values ${values}) as v(name, value)
where current_setting(v.name, true) is not null $$`),
    )
  })
  afterAll(() => rm(dataDir, { recursive: true, force: true }))

  it.each(WAYS.map((way, at) => ({ ...way, at })))(
    'on which $name imposes all of them creates, changes, reads and repeats tokens, one by one and as a batch',
    async ({ at, database, user, connectQuery, ...way }) => {
      if (way.pooler && !findPgbouncer()) return
      await release(engine.databaseUrl)
      if (database) await impose(engine.databaseUrl, HOSTILE)
      if (user) await impose(engine.databaseUrl, HOSTILE, 'user')
      const settings = {
        pool_mode: 'session',
        default_pool_size: '200',
        // It knows no `options`: workers log in as the owner then.
        ignore_startup_parameters: 'options,extra_float_digits',
      }
      const first = connectQuery ? { connectQuery: 'select public.hostile()' } : {}
      const pooler = way.pooler ? await startPgbouncer(engine.databaseUrl, settings, first) : undefined
      let installation: Installation | undefined
      try {
        const { name, prefix, redisUrls } = engine
        const reached = { name, prefix, redisUrls, databaseUrl: pooler?.url ?? engine.databaseUrl }
        installation = await openInstallation(reached, {}, dataDir)
        await work(installation, at)
      } finally {
        await installation?.close()
        await pooler?.stop()
      }
    },
  )

  async function work(installation: Installation, at: number): Promise<void> {
    await installation.openWorkers({ roles: ['interactive', 'bulk'] })
    const client = await installation.connect()
    const card = {
      cardNumber: testPan(10 * at + 1),
      expiryMonth: '12',
      expiryYear: '2031',
      cardholderName: 'ZOË MÜLLER',
    }
    const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
    const jti = `hostile-${at}`
    const made = await client.call('token-create', request, { jti })
    expect(made).toMatchObject({ status: 'SUCCEEDED' })
    const id = (made.record as { reuse_token: string }).reuse_token
    const named = { card_holder_name: 'ØRSTED', token_expiry_date: '2031-02-03' }
    expect(await client.call('token-update', { id, ...named })).toMatchObject({ status: 'SUCCEEDED', record: named })
    expect(await client.call('token-create', request, { jti })).toMatchObject({ status: 'SUCCEEDED' })
    const cards = [1, 2, 3, 4].map(number => ({
      cardNumber: testPan(10 * at + number),
      expiryMonth: 12,
      expiryYear: 2031,
      cardholderName: 'ZOË MÜLLER',
    }))
    const outcomes = await writeBatch(client, installation, cards)
    expect(outcomes).toEqual([expect.stringMatching(/^(UPDATED|UNCHANGED)$/), 'CREATED', 'CREATED', 'CREATED'])
    expect(await writeBatch(client, installation, cards.slice(1))).toEqual(Array(3).fill('UNCHANGED'))
  }
})
