// Indexes that are built outside of the migrations: while transactions write, and again after a build that failed.

import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { TABLES } from '../../src/store/composition.ts'
import { upgradeSchema } from '../../src/store/schema-upgrade.ts'
import { withUpgradeLock } from '../../src/store/upgrade-lock.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { until } from '../support/until.ts'

describe('the index of tokens that are due', () => {
  let database: FreshDatabase
  let client: Client
  beforeAll(async () => {
    database = await freshDatabase()
    client = new Client({ connectionString: database.url })
    await client.connect()
  })
  afterAll(async () => {
    await client?.end()
    await database?.drop()
  })

  async function indexes(): Promise<Record<string, boolean>> {
    const { rows } = await client.query<{ name: string; valid: boolean }>(
      `select relname as name, indisvalid as valid from pg_index join pg_class on pg_class.oid = indexrelid
where indrelid = 'tokenmill.token'::regclass`,
    )
    return Object.fromEntries(rows.map(({ name, valid }) => [name, valid]))
  }

  it('is there beside the primary key', async () => {
    expect(await indexes()).toEqual({ token_pkey: true, token_due: true })
  })

  it('is built again where a build broke off', async () => {
    await client.query(`update pg_index set indisvalid = false where indexrelid = 'tokenmill.token_due'::regclass`)
    expect(await indexes()).toMatchObject({ token_due: false })
    await upgradeSchema(database.url, TABLES)
    expect(await indexes()).toEqual({ token_pkey: true, token_due: true })
  })

  it('leaves the workers their rights where its build breaks off', async () => {
    await client.query('drop index tokenmill.token_due; revoke all on tokenmill.batch from tokenmill_worker')
    const upgraded = upgradeSchema(database.url, TABLES, ({ kind }) => {
      if (kind === 'index') throw new Error('broken off')
    })
    await expect(upgraded).rejects.toThrow('broken off')
    const { rows } = await client.query(
      `select has_table_privilege('tokenmill_worker', 'tokenmill.batch', 'insert') as may`,
    )
    expect(rows).toEqual([{ may: true }])
    await upgradeSchema(database.url, TABLES)
    expect(await indexes()).toEqual({ token_pkey: true, token_due: true })
  })

  it('is built while transactions write tokens, and while another upgrade waits for its turn', async () => {
    await client.query('drop index tokenmill.token_due')
    const writer = new Client({ connectionString: database.url })
    await writer.connect()
    const order: string[] = []
    const upgrade = async (name: string) => {
      await withUpgradeLock(database.url, () => upgradeSchema(database.url, TABLES))
      order.push(name)
    }
    await writer.query('begin')
    const write = () =>
      writer.query(`insert into tokenmill.token (token_id, token_scope, status, token_type, cards, created_at, updated_at, version)
values (gen_random_uuid(), gen_random_uuid(), 'ACTIVE', 'REUSE', array[gen_random_uuid()], now(), now(), 1)`)
    await write()
    const upgrades = [upgrade('one'), upgrade('other')]
    const isBuilding = async () =>
      (await client.query('select from pg_stat_progress_create_index where datname = current_database()')).rowCount ===
      1
    await until(isBuilding, { what: 'the build of the index' })
    await write()
    await writer.query('commit')
    // A transaction that begins meanwhile writes, too.
    await write()
    await Promise.all(upgrades)
    await writer.end()
    expect(order).toHaveLength(2)
    expect(await indexes()).toEqual({ token_pkey: true, token_due: true })
  })
})
