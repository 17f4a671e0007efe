// What a database role may read and write, column by column, as PostgreSQL says. A new table or secret must be added
// here before a role may use it. DESIGN 4.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { upgradePostgres } from '../../src/queue/postgres.ts'
import { withQueueOwner } from '../../src/store/queue-pool.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const SECRETS = [
  'token.sealed',
  'token.cards',
  'token.seal_version',
  'data_key.wrapped',
  'signing_key.wrapped_private',
  'capture_key.wrapped_private',
  'client.api_key_hash',
  'endpoint.sealed',
  'endpoint.former_sealed',
  'endpoint.url',
]

describe('a role of the database', () => {
  let database: FreshDatabase
  let client: pg.Client
  beforeAll(async () => {
    database = await freshDatabase()
    await withQueueOwner(database.url, upgradePostgres)
    client = new pg.Client({ connectionString: database.url })
    await client.connect()
  })
  afterAll(async () => {
    await client?.end()
    await database?.drop()
  })

  const as = async (role: string, text: string): Promise<string> => {
    await client.query(`set role ${role}`)
    try {
      await client.query(text)
      return 'permitted'
    } catch (error) {
      return (error as { code?: string }).code ?? 'unknown'
    } finally {
      await client.query('reset role')
    }
  }
  const columns = async (role: string, privilege: string): Promise<string[]> => {
    const { rows } = await client.query<{ name: string }>(
      `select format('%s.%s', rel.relname, att.attname) as name from pg_class as rel
       join pg_attribute as att on att.attrelid = rel.oid and att.attnum > 0 and not att.attisdropped
       where rel.relnamespace = 'tokenmill'::regnamespace and rel.relkind in ('r', 'p', 'v', 'm')
       and has_column_privilege($1, rel.oid, att.attnum, $2) order by 1`,
      [role, privilege],
    )
    return rows.map(({ name }) => name)
  }

  it('that only reads sees no sealed card, no fingerprint and no key, and writes nothing', async () => {
    const seen = await columns('tokenmill_reader', 'select')
    expect(seen).toContain('token.last_four')
    expect(seen.filter(name => SECRETS.includes(name))).toEqual([])
    expect(
      seen.filter(name =>
        /sealed|fingerprint|wrapped|hash|private|digest|^(scratch|guess|data_key|audit)\./.test(name),
      ),
    ).toEqual([
      'outbox.envelope_digest',
      // A hash by a key that this role can't read.
      'receipt.content_digest',
      'receipt.digest_version',
      'receipt.envelope_digest',
      'receipt.request_digest',
    ])
    for (const privilege of ['insert', 'update', 'references'])
      expect(await columns('tokenmill_reader', privilege)).toEqual([])
    for (const secret of SECRETS) {
      const [table, column] = secret.split('.')
      expect(await as('tokenmill_reader', `select ${column} from tokenmill.${table}`)).toBe('42501')
    }
    expect(await as('tokenmill_reader', 'select t::text from tokenmill.token as t')).toBe('42501')
    expect(await as('tokenmill_reader', 'select count(*) from tokenmill.token where cards is not null')).toBe('42501')
    expect(await as('tokenmill_reader', 'delete from tokenmill.token')).toBe('42501')
    expect(await as('tokenmill_reader', 'truncate tokenmill.token')).toBe('42501')
    expect(await as('tokenmill_reader', 'create table tokenmill.mine (x int)')).toBe('42501')
    expect(await as('tokenmill_reader', 'select token_id, bin, last_four from tokenmill.token')).toBe('permitted')
  })

  it('of the queues reads and writes nothing of the vault', async () => {
    for (const privilege of ['select', 'insert', 'update', 'references'])
      expect(await columns('tokenmill_queue', privilege)).toEqual([])
    expect(await as('tokenmill_queue', 'select 1 from tokenmill.token')).toBe('42501')
    expect(await as('tokenmill_queue', 'create table tokenmill.mine (x int)')).toBe('42501')
    expect(await as('tokenmill_queue', 'select 1 from bullmq.job')).toBe('permitted')
    expect(await as('tokenmill_reader', 'select 1 from bullmq.job')).toBe('42501')
  })

  it('that everybody has may do nothing', async () => {
    await client.query('create role security_nobody nologin').catch((error: { code?: string }) => {
      if (error.code !== '42710') throw error
    })
    expect(await columns('security_nobody', 'select')).toEqual([])
    const { rows } = await client.query<{ name: string }>(
      `select proname as name from pg_proc where pronamespace = 'tokenmill'::regnamespace and has_function_privilege('security_nobody', oid, 'execute')`,
    )
    expect(rows).toEqual([])
    expect(await as('security_nobody', 'select 1 from bullmq.job')).toBe('42501')
  })
})
