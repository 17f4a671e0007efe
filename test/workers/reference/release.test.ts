// The owners of a token, and how an owner's claim ends: by a release, or with the token. No owner loses a card because
// of another.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import type { Db, Statement } from '../../../src/store/pool.ts'
import * as released from '../../../src/store/reference/released-references.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { ownerKey } from '../../../src/token/on-file.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { releaseOwnersOf } from '../../../workers/effect/note-releases.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { openSystemDesk } from '../../support/system-requests.ts'
import { testPan } from '../../support/test-pan.ts'
import { keyOf, leaveAt, type Owners, openOwners, subscribe } from './owners.ts'

const ANNA = { provider: 'acme', provider_account: 'acct-1', customer_id: 'anna' }
const BEN = { provider: 'acme', provider_account: 'acct-1', customer_id: 'ben' }

describeStore('an owner', engine => {
  let installation: Installation
  let client: Client
  let owners: Owners
  let endpointId: string
  let last = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    client = await installation.connect()
    owners = openOwners(installation, client)
    endpointId = await subscribe(installation)
  })
  afterAll(() => installation?.close())

  /** Makes a token of a new card, with the owners Anna and Ben. */
  async function shared() {
    last += 1
    const [anna, ben] = [
      { ...ANNA, card_id: `card-${last}-a` },
      { ...BEN, card_id: `card-${last}-b` },
    ]
    return { card: last, anna, ben, id: await owners.own(last, anna, ben) }
  }
  const recording = (db: Db, sent: Statement[]): Db => ({
    query: statement => {
      sent.push(statement)
      return db.query(statement)
    },
  })
  const hashOf = (owner: typeof ANNA & { card_id: string }) =>
    installation.vault.ring.ownerHash(ownerKey(keyOf(installation, owner))).hash

  describe('whose token is deleted', () => {
    it('is released with all others, told so, and leaves a hash of the ids', async () => {
      const { id, card, anna, ben } = await shared()
      const third = { provider: 'other', card_id: `third-${card}` }
      await owners.add(card, third)
      expect(await client.call('token-lifecycle', { id, action: 'DELETE' })).toMatchObject({ code: 204 })
      expect(await owners.ownersOf(id)).toEqual([])
      const cause = 'TOKEN_DELETED'
      const scope = { token_scope: installation.scope, reuse_token: id, cause }
      expect(await owners.told(id)).toEqual([anna, ben, third].map(owner => ({ ...owner, ...scope })))
      const sought = [anna, ben].map(one => ({ key: one.card_id, hashes: [hashOf(one)] }))
      const found = await released.find(installation.vault.store, sought, [1])
      expect([...found.values()].map(one => one.cause)).toEqual([cause, cause])
      const list = await deliveries.list(installation.vault.store, { endpointId, limit: 100 })
      expect(list.filter(({ type }) => type === 'reference.released').length).toBeGreaterThanOrEqual(3)
    })

    it('is released in slices with the others, however many they are', async () => {
      const { id, card } = await shared()
      const many = Array.from({ length: 2_100 }, (_, n) => ({ ...ANNA, card_id: `many-${card}-${n}` }))
      await leaveAt(installation, id, ...many)
      const { store } = installation.vault
      const [token] = await tokens.findByIds(store, [parseReuseToken(id) ?? ''])
      if (!token) throw new Error('it was made')
      const sent: Statement[] = []
      await store.transaction(db =>
        releaseOwnersOf(recording(db, sent), [token], { clock: Date.now, ring: installation.vault.ring }),
      )
      expect(await owners.ownersOf(id)).toEqual([])
      expect(await owners.told(id)).toHaveLength(2_102)
      expect(sent.filter(({ name }) => name === 'released-references-insert')).toHaveLength(3)
      const removal = sent.find(({ name }) => name === 'references-remove-of')
      expect(removal?.text.split('returning')[1]).not.toMatch(/on_file|before/)
    })

    it('is told twice where one job releases it, and once more after it was added again', async () => {
      const { id, card } = await shared()
      const { store, ring } = installation.vault
      const [token] = await tokens.findByIds(store, [parseReuseToken(id) ?? ''])
      if (!token) throw new Error('it was made')
      const again = { ...ANNA, card_id: `again-${card}` }
      const release = async () => {
        await leaveAt(installation, id, again)
        await store.transaction(db => releaseOwnersOf(db, [token], { clock: Date.now, ring }))
      }
      await release()
      await release()
      expect((await owners.told(id)).filter(({ card_id }) => card_id === again.card_id)).toHaveLength(2)
      const { rows } = await store.query<{ n: number }>({
        text: 'select count(*)::integer as n from tokenmill.released_reference where owner_hash = $1',
        values: [hashOf(again)],
      })
      expect(rows).toEqual([{ n: 2 }])
    })

    it('by a chunk is released by the chunk', async () => {
      const [one, other] = [await shared(), await shared()]
      const records = await owners.batch('token-lifecycle', [
        { id: one.id, action: 'DELETE' },
        { id: other.id, action: 'DELETE' },
      ])
      expect(records.map(({ outcome }) => outcome)).toEqual(['UPDATED', 'UPDATED'])
      for (const { id } of [one, other]) {
        expect(await owners.ownersOf(id)).toEqual([])
        expect(await owners.told(id)).toHaveLength(2)
      }
    })

    it('because its creation was reversed was never one', async () => {
      last += 1
      const desk = await openSystemDesk(installation, 'gateway')
      try {
        const anna = { ...ANNA, card_id: `reversed-${last}` }
        const card = await client.encryptCard({ cardNumber: testPan(last), expiryMonth: 12, expiryYear: 2031 })
        const sent = await desk.send('token-create', { token_scope: installation.scope, ...card, on_file: anna })
        const id = String((await desk.answer(sent)).record?.['reuse_token'])
        expect(await owners.ownersOf(id)).toEqual([anna.card_id])
        expect(await desk.reverse(sent)).toBe('COMPLETED')
        expect(await owners.ownersOf(id)).toEqual([])
        expect(await owners.told(id)).toEqual([])
        expect(await owners.release(anna)).toMatchObject({ code: 404 })
      } finally {
        await desk.close()
      }
    })
  })

  describe('that is released', () => {
    it('leaves the card to the others', async () => {
      const { id, anna, ben } = await shared()
      expect(await owners.release(anna, { on_orphan: 'delete' })).toMatchObject({
        code: 200,
        record: { outcome: 'UPDATED', reuse_token: id, token_status: 'ACTIVE' },
      })
      expect(await owners.ownersOf(id)).toEqual([ben.card_id])
      expect(await owners.told(id)).toEqual([
        { ...anna, token_scope: installation.scope, reuse_token: id, cause: 'RELEASED' },
      ])
    })

    it('twice is answered as unchanged, and one that never was is refused', async () => {
      const { anna } = await shared()
      await owners.release(anna)
      expect(await owners.release(anna)).toMatchObject({ code: 200, record: { outcome: 'UNCHANGED' } })
      expect(await owners.release({ ...anna, customer_id: 'carol' })).toMatchObject({
        code: 404,
        error: { details: { 'body.card_id': { code: 'reference_unknown' } } },
      })
    })

    it('twice by one chunk leaves its token to the first release', async () => {
      const { id, anna, ben } = await shared()
      await owners.release(ben)
      const release = (on_orphan: string) => ({ ...anna, action: 'RELEASE', on_orphan })
      const ended = await owners.batch('reference', [release('keep'), release('delete')])
      expect(ended.map(({ outcome }) => outcome)).toEqual(['UPDATED', 'UNCHANGED'])
      expect(await owners.statusOf(id)).toBe('ACTIVE')
    })

    it('may be added again', async () => {
      const { id, card, anna } = await shared()
      await owners.release(anna)
      expect((await owners.add(card, anna)).record).toMatchObject({ reuse_token: id, reference_outcome: 'ADDED' })
      expect((await owners.release(anna)).record).toMatchObject({ outcome: 'UPDATED' })
    })

    it('is told the same again under the same name', async () => {
      const { anna } = await shared()
      const request = { token_scope: installation.scope, ...anna, action: 'RELEASE' }
      const first = await client.call('reference', request, { jti: `release-${anna.card_id}` })
      const again = await client.call('reference', request, { jti: `release-${anna.card_id}` })
      expect(again.record).toEqual(first.record)
      expect(again.record).toMatchObject({ outcome: 'UPDATED' })
    })

    it.each([
      ['keep', 'ACTIVE'],
      ['suspend', 'SUSPENDED'],
      ['delete', 'DELETED'],
    ])('as the last one makes the token what on_orphan says: %s', async (on_orphan, status) => {
      const { id, card, anna, ben } = await shared()
      await owners.release(anna, { on_orphan })
      expect(await owners.statusOf(id)).toBe('ACTIVE')
      expect((await owners.release(ben, { on_orphan })).record).toMatchObject({ token_status: status })
      expect(await owners.statusOf(id)).toBe(status)
      expect((await owners.told(id)).map(({ cause }) => cause)).toEqual(['RELEASED', 'RELEASED'])
      const again = await owners.add(card, anna)
      expect(again.record?.['reuse_token'] === id).toBe(status !== 'DELETED')
    })

    it('as the last one leaves the token to an owner whom a reversal may bring back', async () => {
      const { id, anna, ben } = await shared()
      last += 1
      expect((await owners.add(last, ben)).record).toMatchObject({ reference_outcome: 'MOVED', previous_token: id })
      expect((await owners.release(anna, { on_orphan: 'delete' })).record).toMatchObject({ token_status: 'ACTIVE' })
      expect(await owners.ownersOf(id)).toEqual([])
    })

    it('is counted no further than asked', async () => {
      const { id, card } = await shared()
      await owners.add(card, { provider: 'other', card_id: `counted-${card}` })
      const tokenId = parseReuseToken(id) ?? ''
      const counted = (max?: number) => references.countClaims(installation.vault.store, [tokenId], Date.now(), max)
      expect(await counted(1)).toEqual(new Map([[tokenId, 1]]))
      expect(await counted()).toEqual(new Map([[tokenId, 3]]))
    })

    it('is known in its own scope only, and to its own entity', async () => {
      const { id, anna } = await shared()
      const other = await installation.addClient(`other-${last}`, { entity: 'b3f0c1d2-0000-4000-8000-00000000000b' })
      const stranger = await installation.connect({ credentials: other.credentials })
      const release = { ...anna, action: 'RELEASE' }
      expect(await stranger.call('reference', { token_scope: installation.scope, ...release })).toMatchObject({
        code: 403,
        error: { details: { 'body.token_scope': { code: 'scope_forbidden' } } },
      })
      expect(await stranger.call('reference', { token_scope: other.scope, ...release })).toMatchObject({ code: 404 })
      expect(await owners.ownersOf(id)).toContain(anna.card_id)
    })

    it('leaves nothing by which the ids could be read', async () => {
      const { anna } = await shared()
      await owners.release(anna)
      const { rows } = await installation.vault.store.query<{ all: string }>({
        text: `select string_agg(r::text, ' ') as all from tokenmill.released_reference as r`,
      })
      expect(rows[0]?.all).toMatch(/RELEASED/)
      expect(rows[0]?.all).not.toMatch(/card-|anna|acme/)
    })

    it('is told of without a card number', async () => {
      const { id, anna } = await shared()
      await owners.release(anna)
      await client.call('token-lifecycle', { id, action: 'DELETE' })
      expect(await owners.told(id)).toHaveLength(2)
      const { rows } = await installation.vault.store.query<{ all: string }>({
        text: `select string_agg(data::text, ' ') as all from tokenmill.event where type = 'reference.released'`,
      })
      expect(rows[0]?.all).toContain(anna.card_id)
      expect(rows[0]?.all).not.toMatch(/411111/)
    })
  })

  describe('in a batch', () => {
    it('is released in file order, and what becomes of the token says the last of it', async () => {
      const { id, anna, ben } = await shared()
      const action = 'RELEASE'
      const requests = [
        { ...anna, action, on_orphan: 'delete' },
        { ...anna, action },
        { ...anna, action, customer_id: 'carol' },
        { ...ben, action, on_orphan: 'suspend' },
      ]
      const predicted = await owners.batch('reference', requests, { dryRun: true })
      expect(await owners.ownersOf(id)).toHaveLength(2)
      const records = await owners.batch('reference', requests)
      expect(records).toMatchObject([
        { line: 2, outcome: 'UPDATED', reuse_token: id, token_status: 'SUSPENDED' },
        { line: 3, outcome: 'UNCHANGED', code: 200 },
        { line: 4, outcome: 'REJECTED', code: 404, reason: 'reference_unknown' },
        { line: 5, outcome: 'UPDATED', reuse_token: id },
      ])
      expect(records[1]).not.toHaveProperty('reuse_token')
      expect(predicted.map(({ outcome }) => outcome)).toEqual(records.map(({ outcome }) => outcome))
      expect(predicted.some(record => 'reuse_token' in record)).toBe(false)
      expect(await owners.statusOf(id)).toBe('SUSPENDED')
    })

    it('whose records name no scope, or a foreign one, is not', async () => {
      const { anna } = await shared()
      const foreign = { ...anna, action: 'RELEASE', token_scope: 'b3f0c1d2-0000-4000-8000-00000000000c' }
      expect(await owners.batch('reference', [foreign])).toMatchObject([
        { outcome: 'REJECTED', code: 403, reason: 'scope_forbidden' },
      ])
    })
  })

  it('that is added while the last other one is released with its token either has the card or is told that it has not', async () => {
    const rounds = await Promise.all(
      Array.from({ length: 24 }, async () => {
        last += 1
        const card = last
        const [anna, ben] = [
          { ...ANNA, card_id: `race-${card}-a` },
          { ...BEN, card_id: `race-${card}-b` },
        ]
        const id = await owners.own(card, anna)
        const [released, added] = await Promise.all([
          owners.release(anna, { on_orphan: 'delete' }),
          client.call('token-update', { id, on_file: ben }),
        ])
        return { id, ben, released, added }
      }),
    )
    const ends = await Promise.all(
      rounds.map(async ({ id, ben, released, added }) => {
        expect(released.record).toMatchObject({ outcome: 'UPDATED' })
        const [status, ids] = [await owners.statusOf(id), await owners.ownersOf(id)]
        if (added.code === 200) expect({ status, ids }).toEqual({ status: 'ACTIVE', ids: [ben.card_id] })
        else expect({ code: added.code, status, ids }).toEqual({ code: 404, status: 'DELETED', ids: [] })
        return added.code
      }),
    )
    expect(ends).toHaveLength(24)
  })
})
