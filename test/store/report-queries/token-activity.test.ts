// What the report of token activity counts as changed, from receipts of single jobs and of chunks.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { TOKEN_ACTIVITY } from '../../../src/store/report-queries/token-activity.ts'
import { silent } from '../../producers/bundle.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const [ENTITY, OTHER] = [randomUUID(), randomUUID()]
const [SCOPE, SECOND, FOREIGN] = [randomUUID(), randomUUID(), randomUUID()]
const CLIENT = `c${'a'.repeat(25)}`
const UPDATED = 1
const REJECTED = 4

describe('the report of token activity', () => {
  let database: FreshDatabase
  let store: Store
  let today = ''
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: silent, connectionsMax: 1 })
    const { rows } = await store.query<{ today: string }>({ text: 'select current_date as today' })
    today = rows[0]?.today ?? ''
    await store.query({
      text: 'insert into tokenmill.scope (token_scope, entity_id) values ($1, $4), ($2, $4), ($3, $5)',
      values: [SCOPE, SECOND, FOREIGN, ENTITY, OTHER],
    })
    await store.query({
      text: `insert into tokenmill.client (client_id, name, user_id, entities, roles) values ($1, 'a', gen_random_uuid(), $2, '{}')`,
      values: [CLIENT, [ENTITY, OTHER]],
    })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** A token that was made long ago. */
  async function tokenOf(scope: string): Promise<string> {
    const { rows } = await store.query<{ token_id: string }>({
      text: `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, created_at, updated_at, version)
values (gen_random_uuid(), $1, 'ACTIVE', 'REUSE', array[gen_random_uuid()], '2020-01-01', '2020-01-01', 1) returning token_id`,
      values: [scope],
    })
    return rows[0]?.token_id ?? ''
  }

  interface Chunk {
    kind: 'token-create' | 'token-update'
    scope?: string
    entityId: string | null
    records: (readonly [outcome: number, tokenId: string | 0])[]
    /** How many days ago the chunk was answered for the first time, and for the last time. */
    firstDays?: number
    lastDays?: number
  }
  async function add({ kind, scope, entityId, records, firstDays = 0, lastDays = 0 }: Chunk): Promise<void> {
    const updated = records.filter(([outcome]) => outcome === UPDATED).length
    const packed = records.map(([outcome, token], index) => [index + 1, outcome, token])
    await store.query({
      text: `with made as (
  insert into tokenmill.batch (client_id, batch_id, record_kind, token_scope, chunk_records, layout, accepted_at, entity_id)
  values ($1, gen_random_uuid()::text, $2, $3, 500, '{}', now(), $4) returning batch_no
)
insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, outcomes, revision, attempt, accepted_at, completed_at)
select gen_random_uuid(), current_date - $7::int, $1, $1, 'token-batch', 'j', '', '', 'SUCCEEDED', 200, batch_no, 0,
  jsonb_build_object('UPDATED', $5::int), $6, 1, 1, now(), now() - make_interval(days => $8) from made`,
      values: [CLIENT, kind, scope ?? null, entityId, updated, JSON.stringify(packed), firstDays, lastDays],
    })
  }
  async function addSingle(kind: string, tokenId: string): Promise<void> {
    await store.query({
      text: `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code,
  outcome, token_id, revision, attempt, accepted_at, completed_at)
values (gen_random_uuid(), current_date, $1, $1, $2, 'j', '', '', 'SUCCEEDED', 200, 'UPDATED', $3, 1, 1, now(), now())`,
      values: [CLIENT, kind, tokenId],
    })
  }
  async function told(entity: string, from = today, to = from) {
    const read = async (text: string) => {
      const { rows } = await store.query<Record<string, string>>({ text, values: [entity, from, to] })
      return rows.map(({ tokenScope, updated }) => (tokenScope ? [tokenScope, updated] : updated))
    }
    const { lines, groups, totals } = TOKEN_ACTIVITY
    return { lines: await read(lines), groups: await read(groups), totals: await read(totals) }
  }
  const same = (...rows: [scope: string, updated: string][]) => {
    const sorted = rows.toSorted(([a], [b]) => (a < b ? -1 : 1))
    return { lines: sorted, groups: sorted, totals: [`${rows.reduce((sum, [, updated]) => sum + Number(updated), 0)}`] }
  }

  it('counts what batches without a scope changed in the scopes of the tokens, whoever else’s they changed', async () => {
    const [first, second, foreign] = [await tokenOf(SCOPE), await tokenOf(SECOND), await tokenOf(FOREIGN)]
    const records = [
      [UPDATED, first],
      [UPDATED, first],
      [UPDATED, second],
      [REJECTED, 0],
      [UPDATED, foreign],
    ] as const
    await add({ kind: 'token-update', entityId: ENTITY, records: [...records] })
    // Records of a batch that creates tokens may name their scopes themselves.
    await add({ kind: 'token-create', entityId: null, records: [[UPDATED, second]] })
    // A client of both entities claims either.
    await add({ kind: 'token-update', entityId: OTHER, records: [[UPDATED, first]] })
    await add({ kind: 'token-create', scope: SCOPE, entityId: ENTITY, records: [[UPDATED, first]] })
    await addSingle('token-update', second)
    expect(await told(ENTITY)).toEqual(same([SCOPE, '4'], [SECOND, '3']))
    expect(await told(OTHER)).toEqual(same([FOREIGN, '1']))
  })

  it('counts a chunk on the day of its last answer, though its receipt is of the day of its first', async () => {
    const { rows } = await store.query<{ first: string; last: string }>({
      text: 'select current_date - 7 as first, current_date - 2 as last',
    })
    const { first, last } = rows[0] ?? { first: '', last: '' }
    const token = await tokenOf(SCOPE)
    for (const scope of [undefined, SCOPE])
      await add({
        kind: 'token-update',
        entityId: ENTITY,
        records: [[UPDATED, token]],
        firstDays: 7,
        lastDays: 2,
        ...(scope ? { scope } : {}),
      })
    expect(await told(ENTITY, last)).toEqual(same([SCOPE, '2']))
    expect(await told(ENTITY, first)).toEqual({ lines: [], groups: [], totals: [] })
  })
})
