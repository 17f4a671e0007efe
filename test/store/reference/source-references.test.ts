// Source references that two transactions write at once.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../../src/log.ts'
import { LostRace, openStore, type Store } from '../../../src/store/pool.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import { ownerKey } from '../../../src/token/on-file.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'

describe('references of the same owner', () => {
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

  const scope = randomUUID()
  const owner = (cardId: string) => ({ tokenScope: scope, provider: 'p', providerAccount: '', customerId: 'c', cardId })
  const row = (cardId: string): references.StoredReference => ({
    ...owner(cardId),
    tokenId: randomUUID(),
    onFile: { is_default: true },
    version: 1,
    createdAt: 1,
    updatedAt: 1,
    lastReceipt: randomUUID(),
    mark: null,
    givenAt: null,
    before: null,
    referenceNo: undefined,
  })

  it('are added by one of two transactions; the other loses the race, with all that it wrote', async () => {
    const first = [row('b'), row('a')]
    const second = [row('z'), row('b')]
    let loser: Promise<void> | undefined
    await store.transaction(async db => {
      await references.insertAll(db, first)
      loser = store.transaction(other => references.insertAll(other, second))
      loser.catch(() => {})
    })
    await expect(loser).rejects.toThrow(LostRace)
    const found = await references.findByOwners(store, ['a', 'b', 'z'].map(owner))
    expect([...found].map(([key, { tokenId }]) => [key, tokenId]).sort()).toEqual(
      first.map(one => [ownerKey(one), one.tokenId]).sort(),
    )
  })

  it('are added by the second transaction where the first is rolled back', async () => {
    const kept = row('r')
    let second: Promise<void> | undefined
    const first = store.transaction(async db => {
      await references.insertAll(db, [row('r')])
      second = store.transaction(other => references.insertAll(other, [kept]))
      second.catch(() => {})
      throw new Error('no')
    })
    await expect(first).rejects.toThrow('no')
    await second
    expect((await references.findByOwners(store, [owner('r')])).get(ownerKey(owner('r')))?.tokenId).toBe(kept.tokenId)
  })
})
