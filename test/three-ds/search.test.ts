// Every search by PostgreSQL finds the same records in the same order as a search in memory.
import { randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { Secret } from '../../src/secret.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { count, find, findOne, listStatement } from '../../src/store/three-ds/authentication-search.ts'
import * as authentications from '../../src/store/three-ds/authentications.ts'
import * as contracts from '../../src/store/three-ds/three-ds-contracts.ts'
import { FIELDS, type FieldName, type Operator } from '../../src/three-ds/fields.ts'
import { parseSearch, type Search } from '../../src/three-ds/filter.ts'
import { isProblem } from '../../src/three-ds/problem.ts'
import { type Authentication, type ShownRecord, shownRecord } from '../../src/three-ds/record.ts'
import { keksOf } from '../../src/vault/kek/provider.ts'
import { type KeyRing, makeDataKeys, openKeyRing, PURPOSES } from '../../src/vault/ring/key-ring.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { openKek } from '../vault/bundle.ts'
import { CAVV, ENTITY, makeContract, makeRecord, OTHER_ENTITY } from './samples.ts'

const THIRD_ENTITY = '8c3f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5d'
const START = Date.UTC(2026, 0, 1)

let database: FreshDatabase
let store: Store
let ring: KeyRing
const records: Authentication[] = []

beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 4 })
  const kek = await openKek()
  ring = await openKeyRing(keksOf(kek), await makeDataKeys(kek, PURPOSES))
  const contract = makeContract('https://ds.example')
  await contracts.insert(store, ring, contract)
  for (let n = 0; n < 300; n++) records.push(sample(n, contract.contractId))
  await store.transaction(async db => {
    for (const record of records) await authentications.insert(db, ring, record)
  })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})

const STATES = ['Y', 'N', 'OPEN', 'C', 'A', 'U', 'R'] as const
const pick = <T>(values: readonly T[], n: number): T => values[n % values.length] as T

function sample(n: number, contractId: string): Authentication {
  const state = pick(STATES, n * 5)
  const eci = { Y: '05', A: '06', N: '07', U: '07', R: '07' } as const
  const isOver = state !== 'OPEN' && state !== 'C'
  const secrets = state === 'Y' || state === 'A' ? { cavv: CAVV } : state === 'C' ? { payload: 'creq' } : {}
  return makeRecord({
    contractId,
    entityId: pick([ENTITY, ENTITY, OTHER_ENTITY, THIRD_ENTITY], n),
    amount: (n * 37) % 20,
    currencyCode: pick(['EUR', 'USD', 'JPY'], n * 7),
    tokenId: n % 3 === 0 ? pick([ENTITY, OTHER_ENTITY], n) : null,
    publicKeyAlias: n % 4 === 0 ? 'key.a' : null,
    // Several of the same moment.
    createdAt: START + (n % 40) * 3_600_000,
    state,
    findings: {
      order_id: pick(['order 1%', 'order_2', 'Order\\3', 'ab*c', 'order 10'], n * 3),
      card_brand: pick(['VISA', 'MASTERCARD'], n),
      ...(isOver ? { eci_flag: eci[state], enrolled: 'Y', signature_verification: 'Y' } : {}),
      ...(n % 6 === 0 ? { status_reason: pick(['01', '02'], n / 6) } : {}),
    },
    secrets: new Secret(secrets),
  })
}

const TERMS = [
  ...['amount=5', 'amount!=5', 'amount>=5', 'amount>=11', 'amount<=9', 'amount<=3', 'amount=999'],
  ...['currency_code=EUR', 'currency_code=USD', 'currency_code!=EUR', 'currency_code!=JPY', 'currency_code~=U'],
  ...['created_at>=2026-01-01T10:00:00Z', 'created_at<=2026-01-02', 'created_at=2026-01-01T05:00:00Z'],
  ...[`entity_id=${ENTITY}`, `entity_id=${OTHER_ENTITY}`, `entity_id!=${OTHER_ENTITY}`, `entity_id=${randomUUID()}`],
  ...['card=t3A3XQGWEJJ9GXSMNRC3MQ3YJJV', 'public_key_alias=key.a', 'public_key_alias!=key.a', 'public_key_alias~=.'],
  ...['authentication.pares_status=Y', 'authentication.pares_status=C', 'authentication.pares_status!=N'],
  ...['authentication.pares_status=OPEN', 'authentication.eci_flag=07', 'authentication.eci_flag!=05'],
  ...['authentication.status_reason=01', 'authentication.status_reason!=01', 'authentication.xid=x'],
  ...[
    'authentication.order_id~=order',
    'authentication.order_id~=%25',
    'authentication.order_id~=_',
    'authentication.order_id~=o*1',
  ],
  ...['authentication.order_id~=\\', 'authentication.order_id=ab*c', "authentication.order_id=' or true --"],
  ...['authentication.card_brand=VISA', 'authentication.enrolled=Y', '_limit=7', '_limit=1', '_skip=3', '_skip=500'],
]
const SORTS = [...FIELDS.keys()].flatMap(name => [`_sort=${name}`, `_sort=-${name}`])

function searchOf(query: string): Search {
  const search = parseSearch(new URLSearchParams(query.replaceAll('>=', '%3E=').replaceAll('<=', '%3C=')))
  if (isProblem(search)) throw new Error(`${query}: ${JSON.stringify(search.details)}`)
  return search
}

describe('a search', () => {
  it('finds what looking at each record finds, in that order', async () => {
    await fc.assert(
      fc.asyncProperty(
        fc.uniqueArray(fc.constantFrom(...TERMS), {
          maxLength: 4,
          selector: term => (term.startsWith('_') ? term.slice(0, 3) : term),
        }),
        fc.uniqueArray(fc.constantFrom(...SORTS), {
          maxLength: 3,
          selector: sort => sort.replace('=-', '='),
        }),
        fc.subarray([ENTITY, OTHER_ENTITY, THIRD_ENTITY]),
        async (terms, sorts, entities) => {
          const search = searchOf([...terms, ...sorts].join('&'))
          const expected = inMemory(entities, search)
          const found = await find(store, ring, entities, search)
          expect(found.map(shownRecord)).toEqual(expected.page)
          expect(await count(store, entities, search)).toBe(expected.count)
        },
      ),
      { numRuns: 150 },
    )
  })

  it('never leaves the caller’s entities, even when it names another', async () => {
    const found = await find(store, ring, [ENTITY], searchOf(`entity_id=${OTHER_ENTITY}`))
    expect(found).toEqual([])
    const [other] = records.filter(({ entityId }) => entityId === OTHER_ENTITY)
    expect(await findOne(store, ring, [ENTITY], other?.authenticationId ?? '')).toBeUndefined()
    expect(await findOne(store, ring, [OTHER_ENTITY], other?.authenticationId ?? '')).toMatchObject({
      authenticationId: other?.authenticationId,
    })
    expect(await find(store, ring, [], searchOf(''))).toEqual([])
    expect(await find(store, ring, [ENTITY, ENTITY], searchOf('_limit=10000'))).toHaveLength(150)
  })

  it('with an equality on any field, sorted as by default, reads an index that begins with it', async () => {
    await store.query({ text: 'analyze tokenmill.authentication' })
    for (const [name, { column, kind }] of FIELDS) {
      if (name === 'entity_id' || name === 'created_at') continue
      const value = { uuid: ENTITY, token: 't3A3XQGWEJJ9GXSMNRC3MQ3YJJV', amount: '1', text: 'x', moment: '' }[kind]
      const { text, values } = listStatement([ENTITY], searchOf(`${name}=${value}`))
      const { rows } = await store.query<{ 'QUERY PLAN': string }>({
        text: `explain (costs off) ${text}`,
        values: values ?? [],
      })
      const plan = rows.map(row => row['QUERY PLAN']).join('\n')
      expect(plan, name).toMatch(new RegExp(`Index Cond: .*${column}`))
      expect(plan, name).not.toContain('Seq Scan')
    }
  })
})

/** The same search over the records as callers get them. */
function inMemory(entities: readonly string[], { conditions, sort, limit, skip }: Search) {
  const shown = records.map(shownRecord).filter(({ entity_id }) => entities.includes(entity_id))
  const fitting = shown.filter(record =>
    conditions.every(({ field, operator, values }) => {
      const value = fieldValue(record, field)
      const texts = values.map(one => (field === 'card' ? (cardOf(String(one)) ?? '') : one))
      const isThere = value !== undefined
      const fits: Record<Operator, boolean> = {
        '=': texts.some(one => value === one),
        '!=': texts.every(one => value !== one),
        '>=': isThere && texts.some(one => value >= one),
        '<=': isThere && texts.some(one => value <= one),
        '~=': isThere && texts.some(one => asRegExp(String(one)).test(String(value))),
      }
      return fits[operator]
    }),
  )
  const { descending } = sort[sort.length - 1] ?? { descending: true }
  const keys = [...sort, ...(['created_at', '_id'] as const).map(field => ({ field, descending }))]
  const sorted = fitting.toSorted((a, b) => {
    for (const { field, descending } of keys) {
      const order = compare(sortable(a, field), sortable(b, field))
      if (order !== 0) return descending ? -order : order
    }
    return 0
  })
  return { page: sorted.slice(skip, skip + limit), count: fitting.length }
}

function fieldValue(record: ShownRecord, field: FieldName): string | number | undefined {
  if (field.startsWith('authentication.')) return record.authentication[field.slice('authentication.'.length)]
  const value = record[field as keyof ShownRecord] as string | number | undefined
  return field === 'created_at' ? Date.parse(String(value)) : value
}

/** A card sorts by its id, whose letters are in the same order. */
const sortable = fieldValue
const cardOf = (tokenId: string) => shownRecord(makeRecord({ tokenId })).card

/** An absent value sorts last. */
function compare(a: string | number | undefined, b: string | number | undefined): number {
  if (a === b) return 0
  if (a === undefined) return 1
  if (b === undefined) return -1
  return a < b ? -1 : 1
}

function asRegExp(pattern: string): RegExp {
  return new RegExp(
    pattern
      .split('*')
      .map(part => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^]*'),
  )
}
