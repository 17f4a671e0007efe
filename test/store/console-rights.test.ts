// What the console's database role may do: it reads what pages show, and writes its own tables and its heartbeat. The tests of
// the console show that these rights suffice, because it sets this role.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const OWN = ['challenge', 'openid_flow', 'pending_act', 'session']
/** Columns that hold something of a card, of a key, of a secret or of a cardholder. */
const SECRET =
  /sealed|fingerprint|wrapped|api_key|private|secret|holder|email|^bin$|last_four|reuse_token|jws|outcomes|body/

describe('the database role of the console', () => {
  let database: FreshDatabase
  let owner: Store
  beforeAll(async () => {
    database = await freshDatabase()
    owner = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
  })
  afterAll(async () => {
    await owner?.close()
    await database?.drop()
  })

  const columnsFor = async (right: string) => {
    const { rows } = await owner.query<{ table: string; column: string }>({
      text: `select c.relname as "table", a.attname as "column" from pg_class as c join pg_attribute as a on a.attrelid = c.oid
where c.relnamespace = 'tokenmill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition and a.attnum > 0
  and not a.attisdropped and has_column_privilege('tokenmill_console', c.oid, a.attnum, $1) order by 1, 2`,
      values: [right],
    })
    return rows
  }

  it('writes its own tables and its heartbeat, and no other', async () => {
    const { rows } = await owner.query<{ table: string }>({
      text: `select relname as "table" from pg_class where relnamespace = 'tokenmill'::regnamespace and relkind in ('r', 'p')
and has_table_privilege('tokenmill_console', oid, 'DELETE, TRUNCATE') order by 1`,
    })
    expect(rows.map(row => row.table)).toEqual(OWN)
    const written = [...(await columnsFor('INSERT')), ...(await columnsFor('UPDATE'))].filter(
      ({ table }) => !OWN.includes(table),
    )
    // Its heartbeat is written by a function.
    expect(written).toEqual([])
  })

  it('reads nothing of cards, keys, secrets or cardholders', async () => {
    const read = await columnsFor('SELECT')
    const tables = [
      'audit',
      'audit_chain',
      'batch',
      'batch_sample',
      'client',
      'cluster',
      'failed_act',
      'installation',
      'invite',
      'kysely_migration',
      'person',
    ]
    const others = ['person_credential', 'person_identity', 'process', 'receipt', 'signing_key']
    const now = ['schema_range', 'watch_check', 'watch_minute', 'watch_queue', 'work_minute']
    const ofReports = ['report', 'schedule', 'schedule_run']
    const ofOneJob = ['operation', 'outbox', 'receipt_key', 'scheme_intent', 'scope', 'token']
    const keys = ['capture_key', 'client_key', 'data_key', 'kek', 'reseal', 'role_key', 'scheme_rate', 'shared_key']
    expect([...new Set(read.map(({ table }) => table))]).toEqual(
      [...tables, ...others, ...now, ...ofReports, ...ofOneJob, ...keys, 'display', ...OWN].sort(),
    )
    expect(read.filter(({ column }) => SECRET.test(column))).toEqual([])
  })

  it('is no member of another role of tokenmill', async () => {
    const { rows } = await owner.query<{ role: string }>({
      text: `select rolname::text as role from pg_roles where starts_with(rolname, 'tokenmill_') and rolname <> 'tokenmill_console'
and pg_has_role('tokenmill_console', oid, 'MEMBER')`,
    })
    expect(rows).toEqual([])
  })
})
