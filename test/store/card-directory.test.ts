// The directory of cards refuses what a process writes that doesn't know the present turn of the key.
import { randomUUID } from 'node:crypto'
import { Client } from 'pg'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { CardPhaseChanged } from '../../src/store/token/card-phases.ts'
import { renewCards } from '../../src/store/token/tokens.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

const OTHER_TURN = '{"turn":0}'

describe('the directory of cards', () => {
  let database: FreshDatabase
  let client: Client
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    client = new Client({ connectionString: database.url })
    await client.connect()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
  })
  afterAll(async () => {
    await store?.close()
    await client?.end()
    await database?.drop()
  })

  it('lets no process of a former turn write a row with a card, whatever becomes of its fingerprints', async () => {
    const tokenId = randomUUID()
    const [former, next] = [randomUUID(), randomUUID()]
    await client.query(
      `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, created_at, updated_at, version)
values ($1, gen_random_uuid(), 'ACTIVE', 'REUSE', $2, now(), now(), 1)`,
      [tokenId, [former, next]],
    )
    await client.query('insert into tokenmill.card (fp, version, token_id) values ($2, 1, $1), ($3, 2, $1)', [
      ...[tokenId, former, next],
    ])
    const turn = '{"turn":1}'
    await client.query(
      `insert into tokenmill.key_lives (epoch, keys, phase, kek_id, proof) values (1, '[]', $1, 'kek-1', '')`,
      [turn],
    )
    const losing = (at: string) => {
      const link = { kept: [former], versions: [1], known: [former], turn: at }
      const row = { tokenId, version: 1, storedCards: [former, next], cards: [former], link }
      return store.transaction(db => renewCards(db, [row]))
    }
    const keeping = (at: string) => {
      const link = { kept: [former], versions: [1], known: [former], turn: at }
      const cards = [former, next]
      return store.transaction(db => renewCards(db, [{ tokenId, version: 1, storedCards: cards, cards, link }]))
    }
    // As for a row that gets a number and keeps its fingerprints.
    await expect(keeping(OTHER_TURN)).rejects.toBeInstanceOf(CardPhaseChanged)
    await expect(losing(OTHER_TURN)).rejects.toBeInstanceOf(CardPhaseChanged)
    const count = async () => (await client.query('select from tokenmill.card')).rowCount
    expect(await count()).toBe(2)
    expect(await losing(turn)).toBe(1)
    expect(await count()).toBe(1)
  })
})
