// How many chunks of batches that came over HTTP are in flight: of one batch, of one client, of all.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import * as chunks from '../../../src/store/batch/intake-chunks.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

const PLACES: chunks.InFlight = { ofOneMax: 3, ofClientMax: 8, max: 12 }
const NOW = Date.now()

let database: FreshDatabase
let store: Store
beforeAll(async () => {
  database = await freshDatabase()
  store = openStore(database.url, { log: openLog('silent'), connectionsMax: 2 })
})
afterAll(async () => {
  await store?.close()
  await database?.drop()
})

async function accept(clientId: string, kind: string, waiting: number): Promise<number> {
  const { rows } = await store.query<{ n: number }>({
    text: `insert into tokenmill.intake (client_id, entity_id, batch_id, record_kind, dry_run, state, body_mac, chunks, accepted_at, expires_at)
values ($1, $2::uuid, $2::text, $3, false, 'ACCEPTED', '\\x00', $4, now(), now() + interval '1 day') returning intake_no as n`,
    values: [clientId, randomUUID(), kind, waiting],
  })
  const intakeNo = rows[0]?.n ?? 0
  for (let chunk = 0; chunk < waiting; chunk += 1) {
    const [receiptId, refusalId] = [randomUUID(), randomUUID()]
    const ids = { receiptId, refusalId, jobId: receiptId, jws: 'x', block: 'x', lines: '[]', records: 1 }
    await chunks.insert(store, { intakeNo, chunk, ...ids })
  }
  return intakeNo
}
const take = () => store.transaction(db => chunks.take(db, PLACES, { now: NOW, dueAt: NOW + 60_000 }, 100))

it('one client never takes the places of the others, though its chunks stay in flight', async () => {
  for (let batch = 0; batch < 20; batch += 1) await accept('stuck', 'scheme-token', 2)
  const stuck = await take()
  expect(stuck).toHaveLength(PLACES.ofClientMax)
  expect(new Set(stuck.map(({ intakeNo }) => intakeNo)).size).toBe(PLACES.ofClientMax)
  expect(await take()).toEqual([])
  const large = await accept('other', 'token-create', 9)
  expect((await take()).map(({ intakeNo, chunk }) => [intakeNo, chunk])).toEqual([0, 1, 2].map(n => [large, n]))
  await accept('third', 'token-create', 9)
  // All places together: eight, three, and one that is left.
  expect(await take()).toHaveLength(1)
  expect(await take()).toEqual([])
})
