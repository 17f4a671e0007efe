// The list of what a version of a data key exposed, page by page, against rows that share the column by which they are listed.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { exposedKeys, exposedPlaces } from '../../../src/store/reseal/exposed-rows.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})

it('lists every copy of a token, also if a page ends between two of them', async () => {
  // The token with the highest id has two copies: in the order of tokens they are the 10,000th row and the next one.
  await store.query({
    text: `insert into tokenmill.before_image (receipt_id, token_id, sealed, key_version)
select gen_random_uuid(), lpad(least(n, 10000)::text, 32, '0')::uuid, '', 1 from generate_series(1, 10001) as n`,
  })
  const listed: string[] = []
  for (const place of exposedPlaces('before-image'))
    for await (const keys of exposedKeys(store, place, 1)) listed.push(...keys)
  expect({ rows: listed.length, tokens: new Set(listed).size }).toEqual({ rows: 10_001, tokens: 10_000 })
})
