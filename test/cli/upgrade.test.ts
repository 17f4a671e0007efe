import { mkdtemp, readdir, readFile, rm, stat, unlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import pg from 'pg'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { run } from '../../cli/main.ts'
import { readSystemKey } from '../../cli/open/system-clients.ts'
import { MIGRATIONS } from '../../src/store/schema.ts'
import { PURPOSES } from '../../src/vault/ring/key-ring.ts'
import { until } from '../support/until.ts'
import { type Bench, openBench, openSaid } from './command-bench.ts'

const SNAPSHOT = `select (select json_agg(i) from tokenmill.installation i) as installation,
  (select json_agg(k order by purpose) from tokenmill.data_key k) as data_keys,
  (select json_agg(s) from tokenmill.signing_key s) as signing_keys,
  (select json_agg(c order by client_id) from tokenmill.client c) as clients,
  (select json_agg(k order by client_id, kid) from tokenmill.client_key k) as client_keys,
  (select count(*)::int from tokenmill.audit) as audits,
  (select count(*)::int from bullmq.migration) as queue_migrations`

interface Snapshot {
  installation: unknown[]
  data_keys: unknown[]
  signing_keys: unknown[]
  clients: unknown[]
  client_keys: unknown[]
  audits: number
}

describe('schema upgrade of an empty database', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench({ empty: true })
  })
  afterAll(() => bench.close())

  it('without a key-encryption key stops with 78 and makes nothing', async () => {
    const { status, stderr } = await bench.cli(['schema', 'upgrade'], { env: { TOKENMILL_KEK_FILE: undefined } })
    expect(status).toBe(78)
    expect(stderr).toMatch(/^tokenmill: TOKENMILL_KEK_FILE: .*--make-kek FILE.*\n$/)
    expect(await bench.rows(`select to_regnamespace('tokenmill')::text as found`)).toEqual([{ found: null }])
  })

  it('stops other commands with 78 and says what to do first', async () => {
    const { status, stderr } = await bench.cli(['client', 'list'])
    expect(status).toBe(78)
    expect(stderr).toContain('run `tokenmill schema upgrade` first')
  })

  it('run twice at once makes everything once', async () => {
    const kek = join(bench.dataDir, 'kek')
    const both = await Promise.all([1, 2].map(() => bench.cli(['schema', 'upgrade', '--make-kek', kek, '--json'])))
    expect(both.map(({ status, stderr }) => (status === 0 ? 0 : stderr))).toEqual([0, 0])
    const [one, two] = both.map(said => said.json<{ migrations: string[]; installation_id: string; files: string[] }>())
    expect(one?.installation_id).toBe(two?.installation_id)
    expect([...(one?.migrations ?? []), ...(two?.migrations ?? [])]).toEqual(MIGRATIONS)
    expect([...(one?.files ?? []), ...(two?.files ?? [])]).toHaveLength(7)
    const [made] = await bench.rows<Snapshot & { [key: string]: unknown }>(SNAPSHOT)
    expect(made?.installation).toHaveLength(1)
    expect(made?.data_keys).toHaveLength(PURPOSES.length)
    expect(made?.signing_keys).toHaveLength(1)
    expect(made?.clients).toHaveLength(4)
    expect(made?.client_keys).toHaveLength(4)
  })

  it('run again changes nothing', async () => {
    const before = await bench.rows(SNAPSHOT)
    // A slow machine is told what is being done.
    expect(await bench.cli(['schema', 'upgrade'])).toMatchObject({ status: 0, stdout: 'up to date\n' })
    expect(await bench.rows(SNAPSHOT)).toEqual(before)
  })

  it('writes the key of each system client to a file that only its owner reads', async () => {
    const dir = join(bench.dataDir, 'system')
    expect((await readdir(dir)).sort()).toEqual([
      'console.jwk',
      'gateway-keys.jwk',
      'gateway.jwk',
      'installation-keys.json',
      'scheduler.jwk',
      'worker.jwk',
    ])
    for (const name of ['console', 'gateway', 'scheduler', 'worker'] as const) {
      expect((await stat(join(dir, `${name}.jwk`))).mode & 0o777).toBe(0o600)
      const { kid, alg } = await readSystemKey(bench.dataDir, name)
      const known = await bench.rows(`select kid, alg from tokenmill.client_key where client_id = $1`, {
        values: [name],
      })
      expect(known).toEqual([{ kid, alg }])
    }
  })

  it('on a further machine adds a key of its own, and never more than two active ones', async () => {
    for (let machine = 0; machine < 2; machine++) {
      const dataDir = await mkdtemp(join(tmpdir(), 'tokenmill-machine-'))
      expect((await bench.cli(['schema', 'upgrade'], { env: { TOKENMILL_DATA_DIR: dataDir } })).status).toBe(0)
      await rm(dataDir, { recursive: true })
    }
    const states = await bench.rows(
      `select state, valid_until > now() + interval '6 days' as days from tokenmill.client_key where client_id = 'worker' order by created_at`,
    )
    expect(states).toEqual([
      { state: 'RETIRED', days: true },
      { state: 'ACTIVE', days: null },
      { state: 'ACTIVE', days: null },
    ])
  })

  it('keeps no private half and no key in clear', async () => {
    const file = JSON.parse(await readFile(join(bench.dataDir, 'system', 'worker.jwk'), 'utf8')) as { d: string }
    const [dump] = await bench.rows<{ text: string }>(
      `select (select json_agg(k)::text from tokenmill.client_key k) || (select json_agg(a)::text from tokenmill.audit a)
        || (select json_agg(s)::text from tokenmill.signing_key s) as text`,
    )
    expect(dump?.text).not.toContain(file.d)
    expect(dump?.text).not.toContain('"d"')
  })

  it('stores no key, and says to run it again, if the key-encryption key is replaced meanwhile', async () => {
    const other = await openBench()
    await other.rows(`create function public.turn() returns trigger language plpgsql
as $$begin update tokenmill.installation set kek_id = 'kek-ffffffffffffffff'; return null; end$$`)
    await other.rows('create trigger turn after insert on tokenmill.kek execute function public.turn()')
    const { status, stderr } = await other.cli(['schema', 'upgrade', '--make-kek', join(other.dataDir, 'kek')])
    expect({ status, stderr }).toEqual({ status: 1, stderr: expect.stringContaining('run this command again') })
    expect(await other.rows('select purpose from tokenmill.data_key')).toEqual([])
    await other.rows('drop trigger turn on tokenmill.kek')
    await other.rows('update tokenmill.installation set kek_id = (select kek_id from tokenmill.kek)')
    expect((await other.cli(['schema', 'upgrade'])).status).toBe(0)
    await other.close()
  })

  it('refuses a key-encryption key that is not the one its keys are wrapped by', async () => {
    const other = join(bench.dataDir, 'other-kek')
    const made = await bench.cli(['schema', 'upgrade', '--make-kek', other], { env: { TOKENMILL_KEK_FILE: undefined } })
    expect(made.status).toBe(78)
    expect(made.stderr).toContain('a new key would open none')
    const { makeKekFile } = await import('../../src/vault/kek/file.ts')
    await makeKekFile(other)
    for (const words of [
      ['schema', 'upgrade'],
      ['client', 'add', 'x', '--entity', '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b', '--roles', 'TOKEN_READ'],
    ]) {
      const { status, stderr } = await bench.cli(words, { env: { TOKENMILL_KEK_FILE: other } })
      expect(status).toBe(78)
      expect(stderr).toMatch(/^tokenmill: TOKENMILL_KEK_FILE: .* holds kek-[0-9a-f]+, but .* wrapped by kek-[0-9a-f]+/)
    }
    await unlink(other)
  })
})

describe('a schema upgrade that takes long', () => {
  let bench: Bench
  let holder: pg.Client
  beforeEach(async () => {
    bench = await openBench({ empty: true })
    holder = new pg.Client({ connectionString: bench.url })
    await holder.connect()
  })
  afterEach(async () => {
    await holder.end()
    await bench.close()
  })

  /** Begins the upgrade. `lines`: what it has printed so far on standard error. */
  function begin() {
    const { said, keep } = openSaid()
    const words = ['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek'), '--json']
    const terminal = { env: bench.env, stdin: Readable.from([]), stdout: keep('stdout'), stderr: keep('stderr') }
    const lines = () => said.stderr.split('\n').slice(0, -1)
    const ended = run(words, terminal)
    const migrations = () => (JSON.parse(said.stdout) as { migrations: string[] }).migrations
    return { lines, ended, migrations, first: () => until(() => lines()[0], { what: 'a line' }) }
  }

  it('says that it waits for another one', async () => {
    await holder.query(`select pg_advisory_lock(hashtextextended('tokenmill upgrade', 0))`)
    const { first, ended, migrations } = begin()
    expect(await first()).toBe('Waiting for another upgrade of this database to end.')
    await holder.query('select pg_advisory_unlock_all()')
    expect(await ended).toBe(0)
    expect(migrations()).toEqual(MIGRATIONS)
  })

  it('names the migration that it runs, once, and prints its result as always', async () => {
    await holder.query('create schema tokenmill')
    await holder.query('begin; create table tokenmill.token ()')
    const { first, lines, ended, migrations } = begin()
    expect(await first()).toBe('Running migration 0001-baseline. A run that is stopped here changes nothing.')
    await holder.query('rollback')
    expect(await ended).toBe(0)
    // On a busy machine later steps may be printed, too.
    expect(new Set(lines()).size).toBe(lines().length)
    expect(migrations()).toEqual(MIGRATIONS)
  })
})

describe('roles of the database', () => {
  let bench: Bench
  beforeAll(async () => {
    bench = await openBench({ empty: true })
    await bench.cli(['schema', 'upgrade', '--make-kek', join(bench.dataDir, 'kek')])
  })
  afterAll(() => bench.close())

  const denied = (text: string, role: string) =>
    expect(bench.rows(text, { role }), text).rejects.toMatchObject({ code: '42501' })

  it('the reader never selects sealed cards, fingerprints, wrapped keys or hashes of API keys', async () => {
    for (const text of [
      'select sealed from tokenmill.token',
      'select cards from tokenmill.token',
      'select * from tokenmill.token',
      'select wrapped from tokenmill.data_key',
      'select wrapped_private from tokenmill.capture_key',
      'select wrapped_private from tokenmill.signing_key',
      'select api_key_hash from tokenmill.client',
      'select fingerprint from tokenmill.scratch',
      'select digits from tokenmill.guess',
      'select 1 from tokenmill.audit',
    ])
      await denied(text, 'tokenmill_reader')
  })

  it('the reader writes nothing', async () => {
    await denied(`update tokenmill.client set revoked_at = null`, 'tokenmill_reader')
    await denied(`delete from tokenmill.token`, 'tokenmill_reader')
    await denied(`insert into tokenmill.audit (actor, action, subject) values ('', '', '')`, 'tokenmill_reader')
  })

  it('the reader sees what is shown of a token, and receipts in whatever week they lie', async () => {
    const options = { role: 'tokenmill_reader' }
    expect(await bench.rows('select token_id, bin, last_four, status from tokenmill.token', options)).toEqual([])
    expect(await bench.rows('select receipt_id from tokenmill.receipt', options)).toEqual([])
    expect(await bench.rows('select kid, public_jwk from tokenmill.signing_key', options)).toHaveLength(1)
  })

  it('the queue role reads and writes nothing of ours, and owns its own schema', async () => {
    for (const table of ['token', 'receipt', 'client', 'data_key', 'audit', 'outbox'])
      await denied(`select 1 from tokenmill.${table}`, 'tokenmill_queue')
    const owners = await bench.rows(
      `select distinct tableowner from pg_tables where schemaname = 'bullmq'
        union select nspowner::regrole::text from pg_namespace where nspname = 'bullmq'`,
      { role: 'tokenmill_queue' },
    )
    expect(owners).toEqual([{ tableowner: 'tokenmill_queue' }])
  })
})
