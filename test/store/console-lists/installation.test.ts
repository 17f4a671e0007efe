// What the page Installation lists is read by an index, page by page, with thousands of clients, scopes and capture keys.
import { afterAll, beforeAll, expect, it } from 'vitest'
import * as captureKeys from '../../../src/store/console/installation/capture-key-list.ts'
import * as clients from '../../../src/store/console/installation/client-list.ts'
import * as scopes from '../../../src/store/console/installation/scope-list.ts'
import type { Db, Statement, Store } from '../../../src/store/pool.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import { type Lists, openLists, within } from './plan.ts'

const OURS = '0b5a4f6e-6f0c-4a53-8d43-3f0d8a2d0001'
const MANY = 5_000
const CLIENT = `c${String(MANY / 2).padStart(25, '0')}`
let lists: Lists | undefined
let owner: Store
let store: Store
let scope: string
let key: string
beforeAll(async () => {
  lists = await openLists()
  ;({ owner, store } = lists)
  const ask = async (text: string, values: unknown[] = []) => (await owner.query<{ id: string }>({ text, values })).rows
  await ask(
    `insert into tokenmill.client (client_id, name, user_id, entities, roles, created_at)
select 'c' || lpad(n::text, 25, '0'), 'client ' || n % 100, gen_random_uuid(), array[$1::uuid], '{}', now() - make_interval(mins => n / 3)
from generate_series(1, $2::int) as n`,
    [OURS, MANY],
  )
  await ask(
    `insert into tokenmill.client_key (client_id, kid, alg, public_jwk) select client_id, 'k' || n, 'EdDSA', '{}'
from tokenmill.client, generate_series(1, 3) as n`,
  )
  await ask(
    `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at)
select 'c' || lpad((n % 50)::text, 25, '0'), 'b' || n, 'token-create', 1000, '{}', now() from generate_series(1, 20000) as n`,
  )
  const made = await ask(
    `insert into tokenmill.scope (token_scope, entity_id, created_at)
select gen_random_uuid(), gen_random_uuid(), now() - make_interval(mins => n / 3) from generate_series(1, $1::int) as n returning token_scope as id`,
    [MANY],
  )
  scope = made[MANY / 2]?.id ?? ''
  const keys = await ask(
    `insert into tokenmill.capture_key (alias, entity_id, type, public_key, wrapped_private, private_version, created_at)
select 'a' || n, $1, 'jwe-ec', '', 'x', 1, now() - make_interval(mins => n / 3) from generate_series(1, $2::int) as n returning key_id as id`,
    [OURS, MANY],
  )
  key = keys[MANY / 2]?.id ?? ''
  await owner.query({
    text: 'vacuum analyze tokenmill.client, tokenmill.client_key, tokenmill.batch, tokenmill.scope, tokenmill.capture_key',
  })
})
afterAll(() => lists?.close())

const limit = 51
type List = (sight: Sight, db: Db, after: string | undefined) => Promise<unknown[]>
const LISTS: [string, List, () => string, RegExp][] = [
  ...clients.CLIENT_ORDERS.map((order): [string, List, () => string, RegExp] => [
    `clients, ${order}`,
    (sight, db, after) => clients.list(sight, db, { order, after, limit }),
    () => CLIENT,
    order === 'newest' ? /client_by_age/ : /client_by_name/,
  ]),
  ...scopes.SCOPE_ORDERS.map((order): [string, List, () => string, RegExp] => [
    `scopes, ${order}`,
    (sight, db, after) => scopes.list(sight, db, { order, after, limit }),
    () => scope,
    order === 'newest' ? /scope_by_age/ : /scope_by_entity/,
  ]),
  [
    'capture keys',
    (sight, db, after) => captureKeys.list(sight, db, { after, limit }),
    () => key,
    /capture_key_by_age/,
  ],
]

it.each(LISTS)(
  '%s are read by their index, from the beginning and from the middle',
  async (_name, list, middle, index) => {
    for (const after of [undefined, middle()]) {
      let plan = ''
      const explaining: Db = {
        async query<R>({ text, values }: Statement) {
          const { rows } = await store.query<{ 'QUERY PLAN': string }>({
            text: `explain ${text}`,
            values: values ?? [],
          })
          plan = rows.map(row => row['QUERY PLAN']).join('\n')
          return { rows: [] as R[], count: 0 }
        },
      }
      await list(sightOf(null), explaining, after)
      expect(plan).toMatch(index)
      expect(plan).not.toContain('Seq Scan')
      await within(200, async () => {
        expect(await list(sightOf(null), store, after)).toHaveLength(limit)
      })
      expect(await list(sightOf([OURS]), store, after)).toEqual([])
    }
  },
)
