// The lines of the report of a batch, which SQL reads from the packed outcomes of chunks.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { BATCH, isOfSeveral } from '../../../src/store/report-queries/batch.ts'
import { silent } from '../../producers/bundle.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { openOnFile, owner, record } from '../../workers/on-file-bundle.ts'

describeStore('the report of a batch', engine => {
  it('tells no reason for records that took effect, with owners and without', async () => {
    const installation = await openInstallation(engine)
    try {
      const world = await openOnFile(installation)
      const batchId = randomUUID()
      await world.chunk([record(1, owner('anna')), record(2), { card: { cardNumber: '1' } }], { batchId })
      const { rows } = await installation.vault.store.query({ text: BATCH.lines, values: [ENTITY, batchId, null] })
      expect(rows).toEqual([
        { outcome: 'CREATED', reason: '', chunks: '1', records: '2' },
        { outcome: 'REJECTED', reason: 'pan_format', chunks: '1', records: '1' },
      ])
    } finally {
      await installation.close()
    }
  })
})

describe('of batches with one id', () => {
  const OTHER = randomUUID()
  const SCOPE = randomUUID()
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: silent, connectionsMax: 1 })
    await store.query({
      text: 'insert into tokenmill.scope (token_scope, entity_id) values ($1, $2)',
      values: [SCOPE, ENTITY],
    })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** A batch of one chunk, whose records were all updated. */
  async function add(batch: {
    clientId: string
    batchId: string
    records: number
    scope?: string
    entityId?: string | null
  }) {
    const { clientId, batchId, records, scope = null, entityId = null } = batch
    await store.query({
      text: `with made as (
  insert into tokenmill.batch (client_id, batch_id, record_kind, token_scope, chunk_records, layout, accepted_at, entity_id)
  values ($1, $2, 'token-update', $3, 500, '{}', now(), $4) returning batch_no
)
insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, outcomes, revision, attempt, accepted_at, completed_at)
select gen_random_uuid(), current_date, $1, $1, 'token-batch', $2 || '-0', '', '', 'SUCCEEDED', 200, batch_no, 0,
  jsonb_build_object('UPDATED', $5::int), (select jsonb_agg(jsonb_build_array(n, 1, 0))::text from generate_series(1, $5::int) as n),
  1, 1, now(), now() from made`,
      values: [clientId, batchId, scope, entityId, records],
    })
  }
  const clientOf = (letter: string) => `c${letter.repeat(25)}`
  const [A, B] = [clientOf('a'), clientOf('b')]
  async function told(entity: string, batchId: string, client: string | null = null) {
    const { values, ...query } = BATCH
    expect(values).toEqual(['batchId', 'clientId'])
    const read = async (text: string) => (await store.query({ text, values: [entity, batchId, client] })).rows
    return { lines: await read(query.lines), groups: await read(query.groups), totals: await read(query.totals) }
  }
  const updated = (records: number) => ({
    lines: [{ outcome: 'UPDATED', reason: '', chunks: '1', records: `${records}` }],
    groups: [{ outcome: 'UPDATED', lines: '1', records: `${records}` }],
    totals: [{ lines: '1', records: `${records}` }],
  })
  const NOTHING = { lines: [], groups: [], totals: [] }

  it('a report is of one client, and adds up no two', async () => {
    await add({ clientId: A, batchId: 'm-same', records: 3, scope: SCOPE, entityId: ENTITY })
    expect(await isOfSeveral(store, ENTITY, 'm-same')).toBe(false)
    await add({ clientId: B, batchId: 'm-same', records: 4, scope: SCOPE, entityId: ENTITY })
    expect(await told(ENTITY, 'm-same', A)).toEqual(updated(3))
    expect(await told(ENTITY, 'm-same', B)).toEqual(updated(4))
    expect(await told(ENTITY, 'm-same')).toEqual(updated(3))
    expect(await isOfSeveral(store, ENTITY, 'm-same')).toBe(true)
    expect(await isOfSeveral(store, OTHER, 'm-same')).toBe(false)
  })

  it('one without a scope stays its entity’s, whatever entities its client gets or loses later', async () => {
    await add({ clientId: A, batchId: 'moved', records: 2, entityId: ENTITY })
    for (const entities of [[OTHER], []]) {
      await store.query({
        text: `insert into tokenmill.client (client_id, name, user_id, entities, roles, alg) values ($1, 'a', gen_random_uuid(), $2, '{}', 'EdDSA')
on conflict (client_id) do update set entities = excluded.entities`,
        values: [A, entities],
      })
      expect(await told(ENTITY, 'moved')).toEqual(updated(2))
      expect(await told(OTHER, 'moved')).toEqual(NOTHING)
    }
  })

  it('one of several entities is nobody’s', async () => {
    await add({ clientId: B, batchId: 'mixed', records: 2 })
    expect(await told(ENTITY, 'mixed')).toEqual(NOTHING)
    expect(await told(OTHER, 'mixed')).toEqual(NOTHING)
  })
})
