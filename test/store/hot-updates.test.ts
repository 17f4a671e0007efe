// A change of status writes no index: PostgreSQL counts these updates as HOT. And the sweep for tokens whose date has passed
// still finds each token that is due, without passing for ever those that aren't any more.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { findExpired, type Place } from '../../src/store/token/token-expiry.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { lifecycle } from '../../src/token/decide.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const ENTITY = randomUUID()
const SCOPE = randomUUID()
const TOKENS = 400
const YESTERDAY = '2020-01-01'
const TODAY = '2020-01-02'

describe('a token', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
    await store.query({
      text: 'insert into tokenmill.scope (token_scope, entity_id) values ($1, $2)',
      values: [SCOPE, ENTITY],
    })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  const idOf = (n: number) => `01890000-0000-7000-8000-${n.toString(16).padStart(12, '0')}`
  const insert = (from: number, count: number, date: string | null) =>
    store.query({
      text: `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, bin, last_four, token_expiry_date,
  created_at, updated_at, version)
select ('01890000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid, $3, 'ACTIVE', 'REUSE', array[gen_random_uuid()],
  '41111111', '1111', $4, now(), now(), 1 from generate_series($1::integer, $1 + $2 - 1) as n`,
      values: [from, count, SCOPE, date],
    })

  async function change(id: string, event: 'SUSPEND' | 'ACTIVATE' | 'EXPIRE' | 'DELETE'): Promise<void> {
    const [row] = await tokens.findByIds(store, [id])
    if (!row) throw new Error('no such token')
    const verdict = lifecycle(row, event, { now: Date.parse(TODAY), receiptId: randomUUID() }, 'body.id')
    if (!('row' in verdict)) throw new Error(JSON.stringify(verdict))
    await store.transaction(db => tokens.updateAll(db, [verdict.row as tokens.StoredToken]))
  }

  it('is vacuumed, like all that grows beside it, before a fiftieth of its table is dead', async () => {
    const { rows } = await store.query<{ name: string; options: string[] | null }>({
      text: `select relname as name, reloptions as options from pg_class where relnamespace = 'tokenmill'::regnamespace
and relkind = 'r' and relname ~ '^(token|card|sequence_mark|source_reference|scheme_token|before_image|outbox_.*|receipt_key_.*)$'`,
    })
    expect(rows.length).toBeGreaterThan(10)
    expect(rows.filter(({ options }) => !options?.includes('autovacuum_vacuum_scale_factor=0.02'))).toEqual([])
    const room = (name: string) => rows.find(row => row.name === name)?.options
    for (const name of ['token', 'sequence_mark']) expect(room(name)).toContain('fillfactor=90')
  })

  // One token of each page: its new versions fit into the room that fillfactor leaves. Where several of a page are changed,
  // the room must be won back, and PostgreSQL can't do that while another session, say autovacuum, still sees the old versions.
  async function oneOfEachPage(): Promise<string[]> {
    const { rows } = await store.query<{ id: string }>({
      text: `select distinct on ((ctid::text::point)[0]) token_id as id from tokenmill.token order by (ctid::text::point)[0], token_id`,
    })
    return rows.map(({ id }) => id)
  }

  async function countUpdates(): Promise<{ updates: number; hot: number }> {
    await store.query({ text: 'select pg_stat_force_next_flush()' })
    const { rows } = await store.query<{ updates: number; hot: number }>({
      text: `select n_tup_upd as updates, n_tup_hot_upd as hot from pg_stat_user_tables where relid = 'tokenmill.token'::regclass`,
    })
    return rows[0] ?? { updates: 0, hot: 0 }
  }

  async function due(limit: number): Promise<string[]> {
    const found: string[] = []
    for (let after: Place | undefined, pages = 0; pages < TOKENS; pages++) {
      const { tokens: page, last } = await findExpired(store, YESTERDAY, after, limit)
      expect(page.length).toBeLessThanOrEqual(limit)
      found.push(...page.map(({ tokenId }) => tokenId))
      if (!last) return found
      after = last
    }
    throw new Error('the sweep does not end')
  }

  it('is suspended and activated without a write to any index, with a date or without', async () => {
    await insert(0, TOKENS / 2, null)
    await insert(TOKENS / 2, TOKENS / 2, '2099-01-01')
    const ids = await oneOfEachPage()
    expect(ids.length).toBeGreaterThan(5)
    for (const id of ids) {
      await change(id, 'SUSPEND')
      await change(id, 'ACTIVATE')
    }
    expect(await countUpdates()).toEqual({ updates: 2 * ids.length, hot: 2 * ids.length })
  })

  it('that is suspended when its date passes is due once it is active again', async () => {
    const [suspended, active, other] = [idOf(1000), idOf(1001), idOf(1002)]
    await insert(1000, 3, YESTERDAY)
    await change(suspended, 'SUSPEND')
    expect(await due(1)).toEqual([active, other])
    await change(suspended, 'ACTIVATE')
    expect(await due(2)).toEqual([suspended, active, other])
  })

  it('that was suspended by its date or deleted is passed by no sweep, until somebody activates it', async () => {
    const [first, active, deleted] = [idOf(1000), idOf(1001), idOf(1002)]
    const passed = async () => {
      const { rows } = await store.query<{ rows: number }>({
        text: `select count(*) as rows from tokenmill.token
where token_expiry_date is not null and expiry_is_done is null and token_expiry_date <= $1`,
        values: [YESTERDAY],
      })
      return rows[0]?.rows
    }
    await change(first, 'EXPIRE')
    await change(deleted, 'DELETE')
    expect(await due(10)).toEqual([active])
    expect(await passed()).toBe(1)
    // Changed as by a worker of release 0.3, which doesn't know the column.
    await store.query({
      text: `update tokenmill.token set status = 'ACTIVE', suspended_reason = null where token_id = $1`,
      values: [first],
    })
    expect(await due(10)).toEqual([first, active])
  })
})
