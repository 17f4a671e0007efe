// Which schemas a process of this release works on: its own, and that of a later release of its major.
import { Client } from 'pg'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TABLES } from '../../src/store/composition.ts'
import { MIGRATIONS, schemaState } from '../../src/store/schema.ts'
import { upgradeSchema } from '../../src/store/schema-upgrade.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const LATER = '9999-later'

describe('the schema of a store', () => {
  let database: FreshDatabase
  let client: Client
  const open = async (options: { empty?: boolean } = {}) => {
    database = await freshDatabase(options)
    client = new Client({ connectionString: database.url })
    await client.connect()
  }
  beforeEach(() => open())
  afterEach(async () => {
    await client.end()
    await database.drop()
  })
  const note = (name: string) =>
    client.query(`insert into tokenmill.kysely_migration values ($1, '2027-01-01T00:00:00Z')`, [name])

  it('is the one of this release, and an upgrade then changes nothing', async () => {
    expect(await schemaState(client)).toBe('current')
    expect(await upgradeSchema(database.url, TABLES)).toEqual([])
  })

  it('is absent in an empty database, and behind without the last migration', async () => {
    await client.query('delete from tokenmill.kysely_migration where name = $1', [MIGRATIONS.at(-1)])
    expect(await schemaState(client)).toBe(MIGRATIONS.length > 1 ? 'behind' : 'absent')
    await client.query('drop schema tokenmill cascade')
    expect(await schemaState(client)).toBe('absent')
  })

  it('of a later release is worked on, and left as it is by an upgrade, unless that release has taken something away', async () => {
    await note(LATER)
    expect(await schemaState(client)).toBe('newer')
    expect(await upgradeSchema(database.url, TABLES)).toEqual([])
    await client.query('update tokenmill.schema_range set readable_from = $1', [MIGRATIONS.length + 1])
    for (const work of [() => schemaState(client), () => upgradeSchema(database.url, TABLES)])
      await expect(work()).rejects.toThrow(/newer than this release can use; deploy the release that upgraded it/)
  })

  it('made before release 1.0 is refused', async () => {
    await client.query(`update tokenmill.kysely_migration set name = '0001-vault'`)
    for (const work of [() => schemaState(client), () => upgradeSchema(database.url, TABLES)])
      await expect(work()).rejects.toThrow(/made before release 1\.0.*make a new one/)
  })
})
