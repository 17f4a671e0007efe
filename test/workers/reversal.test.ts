// CONTRACT 5: a reversal undoes an operation once, only if every envelope that asked for it was given up, and only while no
// other job has built on it.
import { randomUUID } from 'node:crypto'
import * as fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import { receiptId } from '../../src/job/envelope/ids.ts'
import * as operations from '../../src/store/job/operations.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { parseReuseToken } from '../../src/token/token.ts'
import { openDesk, send } from '../security/forge.ts'
import { describeOnRedis } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { openSystemDesk, type Sent, type SystemDesk } from '../support/system-requests.ts'
import { testPan } from '../support/test-pan.ts'
import { until } from '../support/until.ts'
import { writeBatch } from '../support/write-batch.ts'
import { openWorld } from './provider/bundle.ts'
import { type Asked, Play, play } from './reversal-model.ts'

describeOnRedis('a reversal', engine => {
  let installation: Installation
  let client: Client
  let desk: SystemDesk
  let card = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    client = await installation.connect()
    desk = await openSystemDesk(installation, 'gateway')
  })
  afterAll(async () => {
    await desk?.close()
    await installation?.close()
  })

  const cardOf = async (index: number, more = {}) => ({
    token_scope: installation.scope,
    ...(await client.encryptCard({
      cardNumber: testPan(index),
      expiryMonth: 12,
      expiryYear: 2030,
      cardholderName: 'ANNA MEYER',
      ...more,
    })),
  })
  const nextCard = () => {
    card += 1
    return card
  }
  async function made(): Promise<{ sent: Sent; id: string; index: number }> {
    const index = nextCard()
    const sent = await desk.send('token-create', await cardOf(index))
    const { record } = await desk.answer(sent)
    return { sent, id: String(record?.['reuse_token']), index }
  }
  const rowOf = async (id: string) => {
    const [row] = await tokens.findByIds(installation.vault.store, [parseReuseToken(id) ?? ''])
    return row
  }

  it('of a creation deletes the token, and the receipt says so in a higher revision', async () => {
    const { sent, id, index } = await made()
    expect(await desk.reverse(sent)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'DELETED', cards: [], sealed: null })
    expect(await desk.answer(sent, 1)).toMatchObject({
      revision: 2,
      status: 'FAILED',
      code: 500,
      error: { code: 500, reversal_status: 'COMPLETED' },
    })
    // The jti is used up: the same request under it has no effect and gets the reversed answer.
    const receipt = await receipts.find(installation.vault.store, sent.receiptId)
    expect(receipt).toMatchObject({ status: 'CANCELLED', revision: 2 })
    const again = await desk.ask('token-create', await cardOf(index))
    expect(again.record?.['reuse_token']).not.toBe(id)
  })

  it('of an update puts the row back as it was', async () => {
    const { id, index } = await made()
    const before = await rowOf(id)
    const patched = await desk.send('token-update', { id, card_holder_name: 'BEN', expiry_year: 2033 })
    await desk.answer(patched)
    expect(await desk.reverse(patched)).toBe('COMPLETED')
    const put = await desk.send('token-create', await cardOf(index, { expiryYear: 2034 }))
    await desk.answer(put)
    expect(await desk.reverse(put)).toBe('COMPLETED')
    const { version: _, lastReceipt: __, ...rest } = before ?? { version: 0, lastReceipt: '' }
    expect(await rowOf(id)).toMatchObject(rest)
  })

  it('of a new card gives the token its former card back, unless that has a token by now', async () => {
    const { id, index } = await made()
    const before = await rowOf(id)
    const relink = async () => {
      const { token_scope: _, ...other } = await cardOf(nextCard())
      const sent = await desk.send('token-update', { id, ...other })
      expect(await desk.answer(sent)).toMatchObject({ code: 200 })
      return sent
    }
    expect(await desk.reverse(await relink())).toBe('COMPLETED')
    expect((await rowOf(id))?.cards).toEqual(before?.cards)
    const sent = await relink()
    const other = await desk.ask('token-create', await cardOf(index))
    expect(other.record?.['reuse_token']).not.toBe(id)
    expect(await desk.reverse(sent)).toBe('COMPLETED')
    expect((await rowOf(id))?.cards).not.toEqual(before?.cards)
  })

  it('of a suspension activates, and of an activation suspends', async () => {
    const { id } = await made()
    const suspended = await desk.send('token-lifecycle', { id, action: 'SUSPEND' })
    await desk.answer(suspended)
    expect(await desk.reverse(suspended)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE', suspendedReason: null })
    await desk.ask('token-lifecycle', { id, action: 'SUSPEND' })
    const activated = await desk.send('token-lifecycle', { id, action: 'ACTIVATE' })
    await desk.answer(activated)
    expect(await desk.reverse(activated)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'SUSPENDED', suspendedReason: 'REQUEST' })
  })

  it('of a deletion that took effect undoes nothing, and nothing of the card is left to put back', async () => {
    const { id } = await made()
    await desk.ask('token-update', { id, card_holder_name: 'BEN' })
    const deleted = await desk.send('token-lifecycle', { id, action: 'DELETE' })
    await desk.answer(deleted)
    const tokenId = parseReuseToken(id)
    const { count } = await installation.vault.store.query({
      text: 'select from tokenmill.before_image where token_id = $1',
      values: [tokenId],
    })
    expect(count).toBe(0)
    expect(await desk.reverse(deleted)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'DELETED' })
    // The receipt still says that the token was deleted.
    expect(await receipts.find(installation.vault.store, deleted.receiptId)).toMatchObject({ status: 'SUCCEEDED' })
  })

  it('undoes nothing that somebody has built on: a change, or an answer that changed nothing', async () => {
    for (const later of [{ card_holder_name: 'CARA' }, {}]) {
      const { sent, id } = await made()
      await desk.ask('token-update', { id, ...later })
      expect(await desk.reverse(sent)).toBe('COMPLETED')
      expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
      expect(await desk.answer(sent, 1)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    }
  })

  it('undoes nothing that a batch has confirmed', async () => {
    const { sent, id, index } = await made()
    const outcomes = await writeBatch(client, installation, [
      { cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2030, cardholderName: 'ANNA MEYER' },
    ])
    expect(outcomes).toEqual(['UNCHANGED'])
    expect(await desk.reverse(sent)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('that comes before its job takes the job’s place: it is never started, and told so', async () => {
    const index = nextCard()
    const now = Date.now()
    const signed = desk.sign('token-create', await cardOf(index), { now })
    expect(await desk.reverse(signed)).toBe('COMPLETED')
    // The gateway names the entity of the request that it gave up.
    const { rows } = await installation.vault.store.query({
      text: `select status, entity_id as entity from tokenmill.receipt where receipt_id = $1`,
      values: [receiptId(client.clientId, signed.jti)],
    })
    expect(rows).toEqual([{ status: 'CANCELLED', entity: ENTITY }])
    await signed.post()
    expect(await desk.answer(signed)).toMatchObject({
      kind: 'token-create',
      jti: signed.jti,
      code: 500,
      error: { reversal_status: 'COMPLETED' },
    })
    // Another envelope under that jti gets the same answer.
    await desk.send('token-create', await cardOf(index), { jti: signed.jti, now: now - 5_000 })
    expect(await desk.answer(signed, 1)).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    expect((await desk.ask('token-create', await cardOf(index))).record?.['created_at']).toBeDefined()
  })

  it('that names another envelope than the one that took effect undoes nothing', async () => {
    const { sent, id } = await made()
    expect(await desk.reverse({ ...sent, envelope: 'A'.repeat(43) })).toBe('NONE')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
    expect(await receipts.find(installation.vault.store, sent.receiptId)).toMatchObject({ status: 'SUCCEEDED' })
  })

  /** Sends one request in several envelopes, one after the other; each is answered with the token. */
  async function askedBy(count: number) {
    const request = await cardOf(nextCard())
    const jti = randomUUID()
    const asked: Sent[] = []
    const began = Date.now()
    const ask = async () => {
      // The queue ignores a repeat of a job that hasn't left it yet.
      await until(async () => Object.values(await installation.queues.depth('token-create')).every(n => n === 0))
      // The times go to and fro: it makes no difference whether an envelope is older than the one that took effect. Two that
      // are signed at one time are the same envelope.
      const now = began + (asked.length % 2 === 0 ? -1_000 : 2_000) * asked.length
      const sent = await desk.send('token-create', request, { jti, now })
      const answer = await desk.answer(sent, asked.push(sent) - 1)
      return { sent, answer }
    }
    let id = ''
    for (let n = 0; n < count; n += 1) id = String((await ask()).answer.record?.['reuse_token'])
    return { asked, id, ask, began }
  }
  const receiptOf = (sent: Sent | undefined) => receipts.find(installation.vault.store, sent?.receiptId ?? '')

  it('undoes nothing as long as one envelope that asked was not given up, whichever that is', async () => {
    for (const order of [
      [0, 1, 2],
      [2, 0, 1],
      [1, 2, 0],
    ]) {
      const { asked, id, ask } = await askedBy(3)
      const ends: unknown[] = []
      for (const n of order) {
        ends.push(await desk.reverse(asked[n] as Sent))
        if (ends.length === 3) break
        expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
        // The answer stays the same.
        expect(await receiptOf(asked[0])).toMatchObject({ status: 'SUCCEEDED', revision: 1 })
      }
      expect(ends).toEqual(['NONE', 'NONE', 'COMPLETED'])
      expect(await rowOf(id)).toMatchObject({ status: 'DELETED' })
      expect((await ask()).answer).toMatchObject({ code: 500, error: { reversal_status: 'COMPLETED' } })
    }
  })

  it('that undid nothing leaves the key usable: the next repeat is told success, and holds the effect', async () => {
    const { asked, id, ask } = await askedBy(2)
    expect(await desk.reverse(asked[1] as Sent)).toBe('NONE')
    const { sent, answer } = await ask()
    expect(answer).toMatchObject({ code: 200, record: { reuse_token: id }, envelope: sent.envelope })
    expect(await desk.reverse(asked[0] as Sent)).toBe('NONE')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('of an envelope that hasn’t come doesn’t make the effect stay', async () => {
    const { asked, id, ask, began } = await askedBy(1)
    const request = { jti: asked[0]?.jti ?? '' }
    const late = desk.sign('token-create', await cardOf(card), { ...request, now: began - 3_000 })
    expect(await desk.reverse(late)).toBe('NONE')
    expect(await desk.reverse(late)).toBe('NONE')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
    const { sent } = await ask()
    expect(await desk.reverse(asked[0] as Sent)).toBe('NONE')
    expect(await desk.reverse(sent)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'DELETED' })
  })

  it('names all envelopes of its sender, which may have signed a request twice', async () => {
    const { asked, id } = await askedBy(3)
    const [first, second, third] = asked as [Sent, Sent, Sent]
    const earlier = [first.envelope]
    const { receiptId: receipt_id, envelope } = second
    const both = await desk.ask('reversal', { receipt_id, envelope, earlier })
    expect(both.record).toEqual({ reversal_status: 'NONE' })
    expect(await desk.reverse(third)).toBe('COMPLETED')
    expect(await rowOf(id)).toMatchObject({ status: 'DELETED' })
  })

  it('undoes nothing for which a client itself has asked on the queue', async () => {
    const request = await cardOf(nextCard())
    const sent = await desk.send('token-create', request)
    const id = String((await desk.answer(sent)).record?.['reuse_token'])
    await until(async () => Object.values(await installation.queues.depth('token-create')).every(n => n === 0))
    expect(await client.call('token-create', request, { jti: sent.jti })).toMatchObject({ record: { reuse_token: id } })
    expect(await desk.reverse(sent)).toBe('NONE')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('undoes nothing for which a request was answered 202, though its envelope has not come', async () => {
    const { sent, id } = await made()
    const { clientId } = client
    const operation = {
      receiptId: sent.receiptId,
      clientId,
      entityId: ENTITY,
      kind: 'token-create' as const,
      jobId: 'j',
      requestDigest: Buffer.alloc(32),
      refusalId: randomUUID(),
      jws: 'the second envelope',
      acceptedAt: Date.now(),
      expiresAt: Date.now() + 600_000,
      dueAt: Date.now() + 600_000,
    }
    expect(await operations.accept(installation.vault.store, operation)).toBe(true)
    expect(await desk.reverse(sent)).toBe('NONE')
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
    // Another envelope was answered, not this one.
    expect(await operations.findSigns(installation.vault.store, [sent.receiptId])).toEqual([])
  })

  it('leaves what any caller was told as done, and undoes what any was told as undone, whoever asks and gives up when', async () => {
    const { store } = installation.vault
    const world = await openWorld(installation)
    const ends = new Set<string>()
    await fc.assert(
      fc.asyncProperty(Play, fc.boolean(), async (plan, isUpdate) => {
        const card = { token_scope: installation.scope, ...(await world.cardOf(testPan(nextCard()))) }
        const id = isUpdate ? String((await world.ask('token-create', card)).record?.['reuse_token']) : ''
        const asked: Asked = isUpdate
          ? { kind: 'token-update', request: { id, card_holder_name: 'BEN' } }
          : { kind: 'token-create', request: card }
        const { askings, receipt } = await play(world, store, plan, asked)
        const [row] = receipt?.tokenId ? await tokens.findByIds(store, [receipt.tokenId]) : []
        const isStanding = row?.lastReceipt === receipt?.receiptId
        const told = askings.flatMap(asking => [...asking.told])
        for (const one of told) ends.add(one)
        if (told.includes('success')) expect([isStanding, receipt?.status]).toEqual([true, 'SUCCEEDED'])
        if (told.includes('undone')) expect([isStanding, receipt?.status]).toEqual([false, 'CANCELLED'])
      }),
      { numRuns: 60 },
    )
    // The plays reach every end.
    expect([...ends].sort()).toEqual(['standing', 'success', 'undone'])
  })

  it('of a refusal finds nothing to undo', async () => {
    const refused = await desk.send('token-lifecycle', { id: `t${'0'.repeat(26)}`, action: 'SUSPEND' })
    expect(await desk.answer(refused)).toMatchObject({ code: 404 })
    expect(await desk.reverse(refused)).toBe('NONE')
  })

  it('isn’t an ordinary client’s to ask for', async () => {
    const { sent, id } = await made()
    const { receiptId: receipt_id, envelope } = sent
    const answers = openDesk(client)
    const jti = await send(installation.queues, installation.credentials, {
      claims: { kind: 'reversal', request: { receipt_id, envelope } },
    })
    expect(await answers.answer(jti)).toMatchObject({
      code: 403,
      error: { details: { 'body.kind': { code: 'role_missing' } } },
    })
    expect(await rowOf(id)).toMatchObject({ status: 'ACTIVE' })
  })

  it('that races its job ends with no token, whoever is first', async () => {
    const ends = await Promise.all(
      Array.from({ length: 40 }, async (_, n) => {
        const index = nextCard()
        const signed = desk.sign('token-create', await cardOf(index))
        const job = signed.post()
        if (n % 3 === 0) await job
        const status = await desk.reverse(signed)
        await job
        return { index, signed, status }
      }),
    )
    expect(ends.map(end => end.status)).toEqual(ends.map(() => 'COMPLETED'))
    await until(async () => (await Promise.all(ends.map(({ signed }) => desk.answer(signed)))).length === ends.length)
    const { rows } = await installation.vault.store.query<{ live: number }>({
      text: `select count(*) as live from tokenmill.token where status <> 'DELETED' and last_receipt = any($1::uuid[])`,
      values: [ends.map(({ signed }) => signed.receiptId)],
    })
    expect(rows[0]?.live).toBe(0)
  })
})
