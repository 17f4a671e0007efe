// What the owner of the database, who has no key of the vault, changes in rows that say who may do something, where something
// goes, or how far a key's life is: every row and every column of these classes, one at a time. Each change is without
// effect, or `doctor` names the row.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { readClasses } from '../../cli/docs/owner.ts'
import { GRANT_LISTS } from '../../cli/open/grant-lists.ts'
import { storedLives } from '../../cli/open/known-lives.ts'
import type { Grant } from '../../src/acts/grant-rows.ts'
import { listGrants, listUngranted } from '../../src/acts/grants.ts'
import { grantIdentity, grantPasskey, grantPerson } from '../../src/acts/person-grants.ts'
import * as keyLives from '../../src/store/access/key-lives.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import * as identities from '../../src/store/person/identities.ts'
import * as persons from '../../src/store/person/persons.ts'
import type { Db } from '../../src/store/pool.ts'
import { openKnownLives } from '../../src/vault/ring/known-lives.ts'
import { cli } from '../cli/command-bench.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { freshDatabase } from '../support/postgres.ts'

/** The columns of a table that a code or the proof of the key-encryption key protects. */
const PROTECTED = [...readClasses().values()].flatMap(tables =>
  Object.entries(tables).flatMap(([table, groups]) => {
    const columns = groups.filter(({ by }) => by === 'code').flatMap(group => group.columns.split(' '))
    // A confirmation is used once, and is no row that lasts (test/cli/key/two-operators.ts).
    return columns.length === 0 || table === 'confirmation' ? [] : [{ table, columns }]
  }),
)

class Undone extends Error {}

let database: Awaited<ReturnType<typeof freshDatabase>>
let installation: Installation
beforeAll(async () => {
  database = await freshDatabase()
  installation = await openInstallation({
    name: 'postgres',
    prefix: 'owner',
    redisUrls: undefined,
    databaseUrl: database.url,
  })
  const run = async (...words: string[]) => {
    const ended = await cli(words, { env: { ...installation.env, TOKENMILL_PRIVATE_HOSTS: '10.0.0.1:8080' } })
    expect({ words, status: ended.status, stderr: ended.stderr }).toEqual({
      words,
      status: 0,
      stderr: expect.any(String),
    })
  }
  const { clientId } = installation.credentials.signingKey
  await run('events', 'add', clientId, '--to', 'http://10.0.0.1:8080/', '--events', 'batch.finished')
  await run(
    ...['threeds-contract', 'add', 'shop', '--entity', ENTITY, '--directory-server', 'https://ds.example/'],
    ...['--acquirer-bin', '400000', '--acquirer-merchant-id', 'm-1', '--mcc', '5999', '--country', 'gb'],
    ...['--requestor-url', 'https://shop.example', '--notification-url', 'https://shop.example/return'],
  )
  await run('person', 'invite', 'Alice', '--roles', 'VIEWER')
  await addSigns()
})
afterAll(async () => {
  await installation?.close()
  await database?.drop()
})

/** A person with a passkey and an account at a provider. */
async function addSigns(): Promise<void> {
  const { store, ring } = installation.vault
  const personId = randomUUID()
  const person = { personId, name: 'Bob', roles: ['VIEWER' as const], entities: null, isLocal: false }
  const passkey = {
    credentialId: 'passkey',
    personId,
    publicJwk: { kty: 'EC' },
    alg: 'ES256' as const,
    rpId: 'shop.example',
  }
  const identity = { identityId: randomUUID(), personId, issuer: 'https://id.example', subject: 'bob' }
  await store.transaction(async db => {
    await persons.insert(db, person)
    await grantPerson(db, ring, person)
    await credentials.insert(db, { ...passkey, signCount: 0 })
    await grantPasskey(db, ring, passkey)
    await identities.insert(db, identity)
    await grantIdentity(db, ring, identity)
  })
}

async function rowsOf<Row>(db: Db, text: string, values: readonly unknown[] = []): Promise<Row[]> {
  return (await db.query<Row>({ text, values: [...values] })).rows
}

interface Column {
  name: string
  type: string
}

function columnsOf(table: string): Promise<Column[]> {
  return rowsOf<Column>(
    installation.vault.store,
    `select column_name as name, case when data_type = 'ARRAY' then udt_name else data_type end as type
from information_schema.columns where table_schema = 'tokenmill' and table_name = $1 and is_generated = 'NEVER'`,
    [table],
  )
}

/** Expressions of SQL that may make another value of a column; some are refused by constraints. */
function othersOf({ name, type }: Column): string[] {
  const column = `"${name}"`
  switch (type) {
    case 'uuid':
      return ['gen_random_uuid()', 'null']
    case 'boolean':
      return [`not coalesce(${column}, false)`]
    case 'smallint':
    case 'integer':
    case 'bigint':
      return [`coalesce(${column}, 0) + 1`, `coalesce(${column}, 0) - 2`, 'null']
    case 'bytea':
      return [`decode('${randomBytes(32).toString('hex')}', 'hex')`, 'null']
    case 'jsonb':
      return [`'{"kty":"OKP","crv":"Ed25519","x":"${randomBytes(32).toString('base64url')}"}'::jsonb`]
    case 'timestamp with time zone':
      return [`coalesce(${column}, now()) + interval '3 days'`, 'null']
    case '_text':
      return [`array['TOKEN_WRITE', 'ADMIN']`, `array['ADMIN']`, 'null']
    case '_uuid':
      return ['array[gen_random_uuid()]', 'null']
    default:
      return [
        `${column} || 'x'`,
        ...['ACTIVE', 'RETIRED', 'REVOKED', 'VAULT', 'numeric', 'ES256', 'pgp'].map(word => `'${word}'`),
        'null',
      ]
  }
}

/** Takes what keeps an owner from changing the table: its constraints but the unique ones, and its triggers. */
async function unbind(db: Db, table: string): Promise<void> {
  const found = await rowsOf<{ name: string; of: string }>(
    db,
    `select conname as name, conrelid::regclass::text as of from pg_constraint
where contype in ('c', 'f') and (conrelid = $1::regclass or confrelid = $1::regclass)`,
    [`tokenmill.${table}`],
  )
  for (const { name, of } of found) await rowsOf(db, `alter table ${of} drop constraint "${name}"`)
  await rowsOf(db, `alter table tokenmill.${table} disable trigger user`)
}

/** Runs `work` after the change, and undoes it. Undefined if the database refuses the change. */
async function undone<T>(
  table: string,
  { change, values = [] }: { change: string; values?: readonly unknown[] },
  work: (db: Db) => Promise<T>,
) {
  let found: { is: T } | undefined
  await installation.vault.store
    .transaction(async db => {
      await unbind(db, table)
      const { count } = await db.query({ text: change, values: [...values] })
      if (count > 0) found = { is: await work(db) }
      throw new Undone()
    })
    .catch(() => {})
  return found
}

const keyOf = ({ kind, id }: Grant) => `${kind} ${id}`

/** What rows grant: their texts, without those that are revoked or unproved. */
async function granted(db: Db): Promise<Map<string, string>> {
  const { ring } = installation.vault
  const unproved = await listUngranted(db, ring, GRANT_LISTS)
  const grants = await listGrants(db, GRANT_LISTS)
  return new Map(
    grants.filter(row => !row.isRevoked && !unproved.includes(keyOf(row))).map(row => [keyOf(row), row.text]),
  )
}

describe.each(PROTECTED)('the owner of the database who changes $table', ({ table, columns }) => {
  it('by an UPDATE of one column grants nothing that was not granted before', async () => {
    const { store } = installation.vault
    const before = await granted(store)
    const rows = await rowsOf<{ ctid: string }>(store, `select ctid::text from tokenmill.${table}`)
    expect(rows.length).toBeGreaterThan(0)
    const all = await columnsOf(table)
    const tried = new Map<string, number>()
    for (const { ctid } of rows)
      for (const column of all.filter(({ name }) => columns.includes(name)))
        for (const other of othersOf(column)) {
          const change = `update tokenmill.${table} set "${column.name}" = ${other}
where ctid = $1::tid and "${column.name}" is distinct from ${other}`
          const now = await undone(table, { change, values: [ctid] }, granted)
          if (!now) continue
          tried.set(column.name, (tried.get(column.name) ?? 0) + 1)
          const more = [...now.is].filter(([key, text]) => before.get(key) !== text)
          expect({ column: column.name, other, more }).toEqual({ column: column.name, other, more: [] })
        }
    expect({ table, untried: columns.filter(name => !tried.has(name)) }).toEqual({ table, untried: [] })
  })

  it('by an INSERT of a copy under another key grants nothing', async () => {
    const { store } = installation.vault
    const before = await granted(store)
    const all = await columnsOf(table)
    const keys = await rowsOf<{ name: string }>(
      store,
      `select a.attname as name from pg_index as i
join pg_attribute as a on a.attrelid = i.indrelid and a.attnum = any(i.indkey)
where i.indrelid = $1::regclass and i.indisunique`,
      [`tokenmill.${table}`],
    )
    const unique = new Set(keys.map(({ name }) => name))
    const values = all.map(column => {
      if (!unique.has(column.name)) return `"${column.name}"`
      return column.type === 'uuid' ? 'gen_random_uuid()' : (othersOf(column)[0] ?? '')
    })
    const names = all.map(({ name }) => `"${name}"`).join(', ')
    const change = `insert into tokenmill.${table} (${names}) select ${values.join(', ')} from tokenmill.${table} limit 1`
    const now = await undone(table, { change }, granted)
    if (now) expect([...now.is].filter(([key, text]) => before.get(key) !== text)).toEqual([])
  })

  it('by a DELETE grants nothing', async () => {
    const before = await granted(installation.vault.store)
    const change = `delete from tokenmill.${table} where ctid = (select min(ctid) from tokenmill.${table})`
    const now = await undone(table, { change }, granted)
    if (now) expect([...now.is].filter(([key, text]) => before.get(key) !== text)).toEqual([])
  })
})

it('the owner of the database who changes the lives of keys changes nothing for a process that has seen them', async () => {
  const { vault } = installation
  const known = await storedLives(vault).read()
  const columns = (await columnsOf('key_lives')).filter(({ name }) =>
    ['epoch', 'keys', 'phase', 'kek_id', 'proof'].includes(name),
  )
  const stored = await keyLives.find(vault.store)
  const seen = async (change: string) => {
    const now = await undone('key_lives', { change }, async db => {
      let row = stored
      const lives = openKnownLives({ ...vault, load: async () => row })
      await lives.read()
      row = await keyLives.find(db)
      return { lives: await lives.read(), trouble: lives.trouble() }
    })
    return now?.is
  }
  for (const column of columns)
    expect({
      column: column.name,
      now: await seen(`update tokenmill.key_lives set "${column.name}" = ${othersOf(column)[0]}`),
    }).toEqual({ column: column.name, now: { lives: known, trouble: 'unproved' } })
  expect(await seen('delete from tokenmill.key_lives')).toEqual({ lives: known, trouble: 'missing' })
})
