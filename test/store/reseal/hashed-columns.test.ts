// The catalogue of keyed hashes against the schema: a column that names a version of a data key is in it, among the
// sealed columns, or listed here with a reason. It also tests look-ups of hashes under several versions.
import { randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { openLog } from '../../../src/log.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import * as released from '../../../src/store/reference/released-references.ts'
import { exposedKeys, exposedPlaces } from '../../../src/store/reseal/exposed-rows.ts'
import { HASHED_COLUMNS } from '../../../src/store/reseal/hashed-columns.ts'
import { BEFORE_IMAGE_VERSIONS, SEALED_COLUMNS } from '../../../src/store/reseal/sealed-columns.ts'
import { PURPOSES } from '../../../src/vault/ring/key-ring.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const NO_KEY_NAMED: Record<string, string> = {
  'audit.key_version': 'a row of the audit and its MAC are never destroyed, nor is their key',
  'card.version': 'a version of fingerprint is never destroyed',
  'confirmation.mac_version': 'a confirmation is of no use after 24 h, and a version lasts longer',
  'data_key.version': 'the key itself',
  'reseal.version': 'how far a re-encryption is',
  'scheme_card.version': 'a version of fingerprint is never destroyed',
  'scratch_run.version': 'a version of fingerprint is never destroyed',
  'shared_key.version': 'the key itself, for a gateway',
}

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
})
afterAll(async () => {
  await store.close()
  await database.drop()
})

describe('a column that names a version of a data key', () => {
  it('is known to the destruction of keys, or says why not', async () => {
    const { rows } = await store.query<{ name: string }>({
      text: `select c.relname || '.' || a.attname as name from pg_attribute as a join pg_class as c on c.oid = a.attrelid
where c.relnamespace = 'tokenmill'::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
and a.attnum > 0 and not a.attisdropped and a.atttypid = 'smallint'::regtype and a.attname like '%version' order by 1`,
    })
    const known = [
      ...Object.values(SEALED_COLUMNS).map(({ table, version }) => `${table}.${version}`),
      ...Object.values(HASHED_COLUMNS).flatMap(columns => columns.map(({ table, version }) => `${table}.${version}`)),
      ...Object.values(BEFORE_IMAGE_VERSIONS).map(version => `before_image.${version}`),
      ...Object.keys(NO_KEY_NAMED),
    ]
    expect([...new Set(known)].sort()).toEqual(rows.map(({ name }) => name))
  })

  it('can be searched for what a version exposed, whatever the purpose', async () => {
    for (const purpose of PURPOSES)
      for (const place of exposedPlaces(purpose))
        for await (const keys of exposedKeys(store, place, 1)) expect.fail(`${place.column}: ${keys.join()}`)
  })
})

describe('a release', () => {
  const insert = (ownerHash: Buffer, keyVersion: number, releasedAt: number) =>
    released.insertAll(store, [
      {
        ownerHash,
        cardHash: ownerHash,
        keyVersion,
        cause: 'RELEASED',
        releasedAt,
        referenceNo: releasedAt,
        receiptId: '01890000-0000-7000-8000-000000000000',
      },
    ])

  it('is found under every version, the last one first, and a host that lacks a version asks no further', async () => {
    const [first, second] = [randomBytes(32), randomBytes(32)]
    await insert(first, 1, 1_000)
    await insert(second, 2, 2_000)
    const sought = [{ key: 'owner', hashes: [first, second] }]
    expect((await released.find(store, sought, [1, 2])).get('owner')).toEqual({ cause: 'RELEASED', releasedAt: 2_000 })
    expect((await released.findByCards(store, sought, [1])).get('owner')).toMatchObject({ releasedAt: 2_000 })
    await store.query({
      text: `insert into tokenmill.data_key (purpose, version, kek_id, wrapped, state, activated_at)
values ('owner', 2, 'kek-x', '\\x00', 'PENDING', null)`,
    })
    const unaware = released.find(store, [{ key: 'owner', hashes: [first] }], [1])
    await expect(unaware).rejects.toThrow(new Fault('key_unavailable'))
  })
})
