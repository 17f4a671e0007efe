// What the database user of workers may do: its rights on each table are listed, and it can't rewrite the audit or rows
// that grant rights. Other tests show that these rights suffice, because their workers have no others
// (support/workers.ts).
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import * as auditChain from '../../src/store/access/audit-chain.ts'
import * as audits from '../../src/store/access/audits.ts'
import { statementsFor } from '../../src/store/access/logins.ts'
import { TABLES } from '../../src/store/composition.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import * as retention from '../../src/store/retention.ts'
import { grant } from '../../src/store/worker-rights.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const RIGHTS = new Map(TABLES.flatMap(({ rights }) => Object.entries(rights)))

const DENIED = '42501'
const DAY_MS = 86_400_000

describe('the database user of workers', () => {
  let database: FreshDatabase
  let owner: Store
  let worker: Store
  let login: string
  let name: string
  beforeAll(async () => {
    database = await freshDatabase()
    const log = openLog('silent')
    owner = openStore(database.url, { log, connectionsMax: 2 })
    name = new URL(database.url).pathname.slice(1)
    // A separate user, because the rights of a session that may act as the owner aren't limited.
    login = `tokenmill_worker_${name}`
    const made = { name: login, database: name, exists: false }
    for (const text of statementsFor(made, 'worker', { verifier: 'a-password', more: [] })) await owner.query({ text })
    const url = new URL(database.url)
    url.username = login
    url.password = 'a-password'
    worker = openStore(url.href, { log, connectionsMax: 2 })
  })
  afterAll(async () => {
    await worker?.close()
    await owner?.query({
      text: `revoke all on database ${pg.escapeIdentifier(name)} from ${login}; drop role ${login}`,
    })
    await owner?.close()
    await database?.drop()
  })

  const codeOf = (text: string, values: unknown[] = []) =>
    worker.query({ text, values }).then(
      () => 'done',
      error => (error as { code?: string }).code ?? String(error),
    )

  it('is said for every table of the schema, and for none that is not there', async () => {
    const { rows } = await owner.query<{ name: string }>({
      text: `select relname as name from pg_class where relnamespace = 'tokenmill'::regnamespace
and relkind in ('r', 'p') and not relispartition order by relname collate "C"`,
    })
    expect([...RIGHTS.keys()].sort()).toEqual(rows.map(row => row.name))
  })

  it('is granted what is said and nothing else, also where a right was given before', async () => {
    await owner.query({ text: 'grant delete on tokenmill.audit to tokenmill_worker' })
    await grant(owner.pool, TABLES)
    expect(await codeOf('delete from tokenmill.audit')).toBe(DENIED)
    const written = async () => (await owner.query({ text: `select xmin from pg_class where relname = 'audit'` })).rows
    const before = await written()
    await grant(owner.pool, TABLES)
    expect(await written()).toEqual(before)
    await owner.query({ text: 'grant update (actor) on tokenmill.audit to tokenmill_worker' })
    await grant(owner.pool, TABLES)
    expect(await codeOf(`update tokenmill.audit set actor = 'nobody'`)).toBe(DENIED)
    const { rows } = await owner.query<{ name: string; rights: string[] }>({
      text: `select relname as name, array(select lower(privilege_type) from aclexplode(relacl)
  where grantee = 'tokenmill_worker'::regrole order by 1) as rights
from pg_class where relnamespace = 'tokenmill'::regnamespace and relkind in ('r', 'p') and not relispartition`,
    })
    const said = (table: string) =>
      (RIGHTS.get(table) ?? '')
        .replace(/\w+ \([^)]*\)/g, '')
        .split(/,\s*/)
        .filter(right => right !== '')
        .sort()
    for (const row of rows) expect([row.name, row.rights]).toEqual([row.name, said(row.name)])
  })

  it('may be a reader, which sees less than it, and gets no table by a partition', async () => {
    const { rows } = await worker.query<{ roles: string[]; parts: number }>({
      text: `select array(select rolname::text from pg_roles where pg_has_role(session_user, oid, 'MEMBER') order by 1) as roles,
(select count(*) from pg_class where relnamespace = 'tokenmill'::regnamespace and relispartition
  and has_table_privilege(oid, 'SELECT, INSERT, UPDATE, DELETE, TRUNCATE')) as parts`,
    })
    expect(rows).toEqual([{ roles: ['tokenmill_reader', 'tokenmill_worker', login].sort(), parts: 0 }])
  })

  it('adds to the audit and numbers rows once, and changes or removes none', async () => {
    const id = await audits.insert(worker, { actor: 'test', action: 'test.act', subject: 's' })
    const sequenced = { seq: 1, hash: Buffer.alloc(32, 1), mac: Buffer.alloc(32, 2), keyVersion: 1 }
    expect(await audits.number(worker, [{ auditId: id, ...sequenced }])).toBe(1)
    expect(await audits.number(worker, [{ auditId: id, ...sequenced, seq: 2 }])).toBe(0)
    await auditChain.advance(worker, { seq: 1, hash: sequenced.hash })
    for (const text of [
      `update tokenmill.audit set actor = 'nobody'`,
      'update tokenmill.audit set seq = null, hash = null, mac = null, key_version = null',
      'delete from tokenmill.audit',
      'truncate tokenmill.audit',
      'drop table tokenmill.audit',
      'alter table tokenmill.audit disable trigger all',
      `insert into tokenmill.audit (actor, action, subject, at) values ('a', 'b', 'c', '2020-01-01')`,
      `insert into tokenmill.audit (actor, action, subject, seq, hash, mac, key_version)
values ('a', 'b', 'c', 9, decode(repeat('00', 32), 'hex'), decode(repeat('00', 32), 'hex'), 1)`,
      'truncate tokenmill.audit_chain',
      'delete from tokenmill.audit_chain',
    ])
      expect([text, await codeOf(text)]).toEqual([text, DENIED])
    // Retention may remove what is older than a year, and nothing else.
    expect(await audits.prune(worker, 1)).toBe(0)
    await owner.query({ text: `update tokenmill.audit set at = now() - interval '401 days' where seq = 1` })
    expect(await audits.prune(worker, 1)).toBe(1)
  })

  it('adds nobody and nothing that grants rights, and confirms no act', async () => {
    for (const text of [
      `update tokenmill.client set roles = '{ADMIN}'`,
      `insert into tokenmill.client (client_id, name, user_id, entities, roles) values ('c', 'c', gen_random_uuid(), '{}', '{}')`,
      `insert into tokenmill.client_key (client_id, kid, alg, public_jwk) values ('c', 'k', 'EdDSA', '{}')`,
      `update tokenmill.client_key set public_jwk = '{}'`,
      `update tokenmill.capture_key set public_key = ''`,
      'update tokenmill.scope set bin_digits = 6',
      `update tokenmill.installation set kek_id = 'kek-0'`,
      'update tokenmill.data_key set wrapped = null',
      'delete from tokenmill.data_key',
      'delete from tokenmill.kek',
      'update tokenmill.confirmation set confirmed_at = now()',
      'create table tokenmill.mine (a int)',
      'create function tokenmill.f() returns int language sql as $$ select 1 $$',
      `set role ${new URL(database.url).username}`,
      'select tokenmill.is_owner()',
    ])
      expect([text, await codeOf(text)]).toEqual([text, DENIED])
  })

  it('makes and drops partitions by functions, which drop no week that lasts and look nowhere else', async () => {
    await retention.ensurePartitions(worker, Date.now() + 150 * DAY_MS)
    const partitions = async () => (await retention.findEnded(owner, Date.now() + 400 * DAY_MS)).length
    const before = await partitions()
    const thisMonday = new Date(Math.floor((Date.now() / DAY_MS - 4) / 7) * 7 * DAY_MS + 4 * DAY_MS)
    const monday = (weeks: number) => new Date(thisMonday.getTime() + weeks * 7 * DAY_MS).toISOString().slice(0, 10)
    const dropWeek = (table: string, day: string) => codeOf('select tokenmill.drop_week($1, $2)', [table, day])
    expect(await dropWeek('receipt', monday(0))).toBe(DENIED)
    expect(await dropWeek('receipt', monday(-1))).toMatch(/42501|done/)
    expect(await dropWeek('token', monday(-9))).toBe('data')
    expect(await dropWeek('receipt; drop table tokenmill.token', monday(-9))).toBe('data')
    await owner.query({ text: 'select tokenmill.make_week($1, $2)', values: ['outbox', monday(-9)] })
    expect(await partitions()).toBeGreaterThanOrEqual(before)
    expect(await dropWeek('outbox', monday(-9))).toBe('done')
    expect(await codeOf(`select tokenmill.make_month('2019-02-01')`)).toBe('done')
    expect(await codeOf(`select tokenmill.make_month('2019-02-01')`)).toBe('done')
    expect(await codeOf(`select tokenmill.make_month('2019-02-02')`)).toBe('data')
    const { rows } = await owner.query<{ settings: string | null; rights: string }>({
      text: `select array_to_string(proconfig, ',') as settings, coalesce(array_to_string(proacl, ','), 'everybody') as rights
from pg_proc where pronamespace = 'tokenmill'::regnamespace and (prosecdef or proname = 'is_owner')`,
    })
    expect(rows).toHaveLength(12)
    for (const { settings, rights } of rows) {
      expect(settings).toBe('search_path=pg_catalog, pg_temp')
      // Rights that everybody has are shown without a name before the sign.
      expect(rights).not.toMatch(/(^|,)=|everybody/)
    }
  })
})
