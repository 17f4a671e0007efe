// The list of what a version of a data key exposed, page by page, against rows that share the column by which they are listed.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { type Db, openStore, type Store } from '../../../src/store/pool.ts'
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

interface Node {
  'Actual Rows': number
  'Rows Removed by Filter'?: number
  Plans?: Node[]
}

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]

/** Lists what version 1 exposed, in pages of 5 rows. `looked`: the most rows that a step of any statement read. */
async function listInPages(purpose: string): Promise<{ listed: string[]; looked: number }> {
  let looked = 0
  const explaining: Db = {
    async query(statement) {
      const { rows } = await store.query<{ 'QUERY PLAN': [{ Plan: Node }] }>({
        ...statement,
        text: `explain (analyze, format json) ${statement.text}`,
      })
      for (const node of rows.flatMap(row => nodesOf(row['QUERY PLAN'][0].Plan)))
        looked = Math.max(looked, node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0))
      return store.query(statement)
    },
  }
  const listed: string[] = []
  for (const place of exposedPlaces(purpose))
    for await (const keys of exposedKeys(explaining, place, 1, 5)) listed.push(...keys)
  return { listed, looked }
}

it('looks at no more than a page of rows in one statement, also where few of them are exposed', async () => {
  await store.query({ text: 'truncate tokenmill.before_image' })
  await store.query({
    text: `insert into tokenmill.before_image (receipt_id, token_id, sealed, key_version)
select lpad(n::text, 32, '0')::uuid, lpad(n::text, 32, '0')::uuid, '', case when n in (3, 44) then 1 else 2 end
from generate_series(1, 50) as n`,
  })
  const { listed, looked } = await listInPages('before-image')
  expect(listed.map(key => Number(key.replaceAll('-', '')))).toEqual([3, 44])
  expect(looked).toBeLessThanOrEqual(5)
})

it('reads released owners in the order of an index, also several releases of one owner', async () => {
  await store.query({
    text: `insert into tokenmill.released_reference (owner_hash, card_hash, released_at, cause, receipt_id, reference_no)
select sha256((n / 7)::text::bytea), sha256(''), now(), 'RELEASED', gen_random_uuid(), n from generate_series(1, 23) as n`,
  })
  const { listed, looked } = await listInPages('owner')
  expect(listed.map(Number).toSorted((a, b) => a - b)).toEqual(Array.from({ length: 23 }, (_, at) => at + 1))
  expect(looked).toBeLessThanOrEqual(5)
})
