// A set of a re-encryption changes only rows that no other transaction locks and whose bytes are still the ones that
// were read.
import { randomBytes, randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import * as sealedRows from '../../../src/store/reseal/sealed-rows.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 3 })
})
afterAll(async () => {
  await store.close()
  await database.drop()
})
beforeEach(() => store.query({ text: 'delete from tokenmill.token' }))

const idOf = (n: number) => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`

async function insertTokens(count: number, version = 1): Promise<void> {
  await store.query({
    text: `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, sealed, seal_version, created_at,
  updated_at, version)
select ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $2, 'ACTIVE', 'REUSE', array[gen_random_uuid()], int4send(n), $3, now(),
  now(), 1 from generate_series(1, $1::integer) as n`,
    values: [count, randomUUID(), version],
  })
}

const freshOf = ({ key, sealed }: sealedRows.SealedRow) => ({ key, former: sealed, fresh: randomBytes(8) })
const find = (after = '') => sealedRows.findSet(store, 'token.sealed', { after, version: 2 })
const replace = (rows: readonly sealedRows.Resealed[]) =>
  sealedRows.replaceSet(store, 'token.sealed', { rows, version: 2 })
const versions = async () => {
  const { rows } = await store.query<{ version: number; seal_version: number; rows: number }>({
    text: 'select version, seal_version, count(*) as rows from tokenmill.token group by 1, 2 order by 1, 2',
  })
  return rows
}

describe('a set', () => {
  it('holds 500 rows at most, in the order of their keys, and the next one follows it', async () => {
    await insertTokens(700)
    const first = await find()
    expect(first).toMatchObject({ scanned: 500, last: idOf(500), isEnd: false })
    expect(first.rows.map(({ key }) => key)).toEqual(Array.from({ length: 500 }, (_, n) => idOf(n + 1)))
    expect(await find(first.last ?? '')).toMatchObject({ scanned: 200, last: idOf(700), isEnd: true })
    expect(await find(idOf(700))).toMatchObject({ rows: [], scanned: 0, last: null, isEnd: true })
  })

  it('passes over rows under the key in use, and over rows without a number', async () => {
    await insertTokens(600, 2)
    await store.query({
      text: 'update tokenmill.token set seal_version = null, sealed = null where token_id = $1',
      values: [idOf(3)],
    })
    await store.query({ text: 'update tokenmill.token set seal_version = 1 where token_id = $1', values: [idOf(599)] })
    const found = await find()
    expect(found).toMatchObject({ scanned: 600, last: idOf(600), isEnd: true })
    expect(found.rows.map(({ key, version }) => ({ key, version }))).toEqual([{ key: idOf(599), version: 1 }])
  })
})

describe('replacing a set', () => {
  it('counts the version of a token up, so that a job that read the row before begins again', async () => {
    await insertTokens(3)
    expect(await replace((await find()).rows.map(freshOf))).toBe(3)
    expect(await versions()).toEqual([{ version: 2, seal_version: 2, rows: 3 }])
  })

  it('leaves a number alone that was replaced or erased since it was read', async () => {
    await insertTokens(3)
    const { rows } = await find()
    const other = Buffer.from('another number')
    await store.query({ text: 'update tokenmill.token set sealed = $2 where token_id = $1', values: [idOf(1), other] })
    await store.query({
      text: 'update tokenmill.token set sealed = null, seal_version = null where token_id = $1',
      values: [idOf(2)],
    })
    expect(await replace(rows.map(freshOf))).toBe(1)
    const { rows: left } = await store.query({
      text: 'select sealed, seal_version from tokenmill.token where token_id <= $1 order by token_id',
      values: [idOf(2)],
    })
    expect(left).toEqual([
      { sealed: other, seal_version: 1 },
      { sealed: null, seal_version: null },
    ])
  })

  it('takes the number although another column of the row has changed', async () => {
    await insertTokens(1)
    const { rows } = await find()
    await store.query({ text: `update tokenmill.token set version = 7, card_holder_name = 'ANNA'` })
    expect(await replace(rows.map(freshOf))).toBe(1)
    expect(await versions()).toEqual([{ version: 8, seal_version: 2, rows: 1 }])
  })

  it('does not wait for a row that somebody holds', async () => {
    await insertTokens(3)
    const { rows } = await find()
    await store.transaction(async db => {
      await db.query({ text: 'select from tokenmill.token where token_id = $1 for update', values: [idOf(2)] })
      expect(await replace(rows.map(freshOf))).toBe(2)
    })
    expect((await find()).rows.map(({ key }) => key)).toEqual([idOf(2)])
  })

  it('leaves a scheme token alone whose lease somebody renews', async () => {
    const [free, leased, dead] = [1, 2, 3].map(idOf)
    await store.query({
      text: `insert into tokenmill.scheme_token (
  provision_id,
  token_id,
  token_scope,
  client_id,
  provider,
  current,
  background,
  state,
  reference,
  reference_sealed,
  reference_version,
  sealed,
  seal_version,
  lease,
  due_at,
  version,
  created_at,
  updated_at
)
select
  v.id,
  v.id,
  v.id,
  'c',
  'mdes',
  false,
  false,
  'ACTIVE',
  v.id::text,
  uuid_send(v.id),
  1,
  uuid_send(v.id),
  1,
  v.lease,
  v.due_at,
  1,
  now(),
  now()
from (
  values
    ($1::uuid, null::uuid, null::timestamptz),
    ($2::uuid, $2::uuid, now() + interval '9 seconds'),
    ($3::uuid, $3::uuid, now() - interval '1 hour')
) as v(id, lease, due_at)`,
      values: [free, leased, dead],
    })
    const { rows } = await sealedRows.findSet(store, 'scheme_token.sealed', { after: '', version: 2 })
    expect(rows.length).toBe(3)
    const replaced = { rows: rows.map(freshOf), version: 2 }
    expect(await sealedRows.replaceSet(store, 'scheme_token.sealed', replaced)).toBe(2)
    const { rows: left } = await store.query({
      text: 'select provision_id from tokenmill.scheme_token where seal_version = 1',
    })
    expect(left).toEqual([{ provision_id: leased }])
  })
})
