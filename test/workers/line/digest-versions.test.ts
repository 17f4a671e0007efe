// Repeats of jobs while the key of request digests is replaced: each is answered from its receipt, whatever version its
// worker knows, and is never taken for another request.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Result } from '../../../src/job/answer/result.ts'
import { requestText } from '../../../src/job/envelope/digest.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import type { RecordResult } from '../../../src/job/outcome.ts'
import { pageOf } from '../../../src/metrics.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import { encryptCard } from '../../../src/vault/capture/encrypt.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { type ChunkOptions, type OnFileWorld, openOnFile } from '../on-file-bundle.ts'
import { openWorld } from '../provider/bundle.ts'
import { turnKey } from '../reseal/turn-key.ts'

const REQUEST = { id: 't01jd3x8z7q2m4n6p8r0s2t4v6w', action: 'SUSPEND' } as const

describeOnRedis('a repeat', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  const clientId = () => installation.credentials.signingKey.clientId
  const stored = (jti: string) => receipts.find(installation.vault.store, receiptId(clientId(), jti))

  /** Signs and sends the job. Returns the code and the revision of its answer. */
  async function send(jti: string, body: Record<string, unknown> = REQUEST): Promise<string> {
    const client = await installation.connect({ replyTo: `r${randomUUID().slice(0, 8)}` })
    const { code, revision } = await client.call('token-lifecycle', body, { jti })
    await client.close()
    return `${code} revision ${revision}`
  }

  it('is compared under the version that its receipt names, by workers that came before and after the turn', async () => {
    const old = await installation.openWorkers({ roles: ['interactive'] })
    expect(await send('before')).toBe('404 revision 1')
    expect(await stored('before')).toMatchObject({ digestVersion: 1 })
    const turned = await turnKey(installation.vault, 'digest')

    // Another host, which knows the version already, has worked a job.
    expect(await send('by-another')).toBe('404 revision 1')
    const { hash } = turned.ring.requestDigest(requestText('token-lifecycle', REQUEST))
    await installation.vault.store.query({
      text: 'update tokenmill.receipt set request_digest = $2, digest_version = $3 where receipt_id = $1',
      values: [receiptId(clientId(), 'by-another'), hash, turned.version],
    })
    await receipts.codeAnew(
      installation.vault.store,
      turned.ring,
      (await stored('by-another')) ?? expect.fail('it is there'),
    )
    // The older worker reads its keys again during this attempt.
    expect(await send('by-another')).toBe('404 revision 1')
    const page = await pageOf(await old.snapshots())
    expect(page.split('\n').filter(line => line.includes('_retries_total{') && !line.endsWith(' 0'))).toEqual([])
    expect(await send('by-another', { ...REQUEST, action: 'ACTIVATE' })).toBe('400 revision 0')
    await old.close()

    const late = await installation.openWorkers({ roles: ['interactive'] })
    expect(await send('before')).toBe('404 revision 1')
    expect(await send('before', { ...REQUEST, action: 'ACTIVATE' })).toBe('400 revision 0')
    expect(await send('after')).toBe('404 revision 1')
    expect(await stored('before')).toMatchObject({ digestVersion: 1 })
    expect(await stored('after')).toMatchObject({ digestVersion: turned.version })
    expect(await send('after')).toBe('404 revision 1')
    await late.close()
  })

  it('of a card that was encrypted again is compared by what the card says, also under another version of the key', async () => {
    const world = await openWorld(installation)
    const PAN = testPan(71)
    const create = async (jti: string, more = {}, pan = PAN) =>
      world.ask('token-create', { token_scope: installation.scope, ...(await world.cardOf(pan, more)) }, { jti })
    const first = await create('card')
    expect(await create('card', { captureTime: new Date(world.deps.clock() - 60_000).toISOString() })).toMatchObject({
      revision: 1,
      record: { reuse_token: first.record?.['reuse_token'] },
    })
    await turnKey(installation.vault, 'digest')
    await world.deps.ring.refresh()
    expect(await create('card', { cvv: '123' })).toMatchObject({ revision: 1, code: 200 })
    // The capture key is gone.
    const gone = { token_scope: installation.scope, ...(await world.cardOf(PAN)), public_key_alias: 'gone' }
    const told = world.told.length
    await world.run(world.job('token-create', gone, { jti: 'card' }))
    expect(world.told.slice(told)).toMatchObject([{ error: { details: { 'body.jti': { code: 'jti_reused' } } } }])
  })

  it('of a card in another form is the same: OpenPGP and JWE, another key, numbers as texts', async () => {
    const world = await openWorld(installation)
    const first = await world.ask(
      'token-create',
      { token_scope: installation.scope, ...(await world.cardOf(testPan(75))) },
      { jti: 'form' },
    )
    const again = await world.ask(
      'token-create',
      { token_scope: installation.scope, ...(await inPgp(testPan(75), { expiryMonth: '12', expiryYear: '31' })) },
      { jti: 'form' },
    )
    expect(again).toMatchObject({ code: 200, revision: 1, record: { reuse_token: first.record?.['reuse_token'] } })
    const other = { token_scope: installation.scope, ...(await inPgp(testPan(75), { expiryYear: 2032 })) }
    const told = world.told.length
    await world.run(world.job('token-create', other, { jti: 'form' }))
    expect(world.told.slice(told)).toMatchObject([{ error: { details: { 'body.jti': { code: 'jti_reused' } } } }])
  })

  /** A card in OpenPGP. */
  async function inPgp(cardNumber: string, more: Record<string, unknown> = {}): Promise<Record<string, unknown>> {
    const key = installation.credentials.captureKeys.pgp
    if (!key) throw new Error('these credentials hold no OpenPGP key')
    const card = { cardNumber, expiryMonth: 12, expiryYear: 2031, captureTime: new Date().toISOString(), ...more }
    return { encrypted_card: await encryptCard(card, key), public_key_alias: key.alias }
  }

  describe('of a chunk', () => {
    let onFile: OnFileWorld
    beforeAll(async () => {
      onFile = await openOnFile(installation)
    })
    const toldOf = async (requests: readonly Record<string, unknown>[], options: ChunkOptions) => {
      const { world } = onFile
      const told = world.told.length
      await world.run(await onFile.chunkJob(requests, options))
      const [answer] = world.told.slice(told) as Result[]
      const reason = Object.values(answer?.error?.details ?? {})[0]?.code
      // A repeat also says the present status.
      const records = (answer?.records as RecordResult[] | undefined)?.map(record => ({
        ...record,
        token_status: undefined,
      }))
      return { reason, revision: answer?.revision, records }
    }
    const inClear = (index: number) => ({ card: { cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2031 } })

    it('is the same if its cards were encrypted again, and another one if one of them says something else', async () => {
      const { world } = onFile
      const batchId = 'sealed-again'
      const cardOf = (index: number, more = {}) => world.cardOf(testPan(index), more)
      const unopened = { encrypted_card: 'a.b.c.d.e', public_key_alias: 'unknown' }
      const names = ['one', 'two', 'three', 'four']
      const send = (requests: Record<string, unknown>[], references = names) =>
        toldOf(requests, { batchId, references })
      const first = await send([await cardOf(81), await inPgp(testPan(82)), inClear(83), unopened])
      expect(first.records?.map(({ outcome }) => outcome)).toEqual(['CREATED', 'CREATED', 'CREATED', 'REJECTED'])
      const again = await send([await inPgp(testPan(81)), await cardOf(82, { cvv: '123' }), inClear(83), unopened])
      expect(again).toEqual(first)
      await turnKey(installation.vault, 'digest')
      await world.deps.ring.refresh()
      expect(await send([await cardOf(81), await cardOf(82), inClear(83), unopened])).toEqual(first)

      const others = [
        [await cardOf(84), await cardOf(82), inClear(83), unopened],
        [await cardOf(81), await cardOf(82, { cardholderName: 'ANNA' }), inClear(83), unopened],
        [await cardOf(81), { ...(await cardOf(82)), card_brand: 'VISA' }, inClear(83), unopened],
        [await cardOf(81), await cardOf(82), inClear(84), unopened],
        [await cardOf(82), await cardOf(81), inClear(83), unopened],
        [await cardOf(81), await cardOf(82), inClear(83), { ...unopened, encrypted_card: 'a.b.c.d.f' }],
        [inClear(81), await cardOf(82), inClear(83), unopened],
      ]
      for (const requests of others) expect(await send(requests)).toMatchObject({ reason: 'jti_reused', revision: 0 })
      const renamed = await send(
        [await cardOf(81), await cardOf(82), inClear(83), unopened],
        [...names.slice(1), 'one'],
      )
      expect(renamed).toMatchObject({ reason: 'jti_reused' })
      expect(await send([await cardOf(81), await cardOf(82), inClear(83), unopened])).toEqual(first)
    })

    it('decides its failed records again, though all cards were encrypted again', async () => {
      const { world } = onFile
      const options = { batchId: 'failed-again', references: ['good', 'bad'] }
      const requests = async () => [await world.cardOf(testPan(88)), await world.cardOf(testPan(89))]
      world.deps.inspect = ({ reference }) => {
        if (reference === 'bad') throw new Error('broken law: a test')
      }
      const first = await toldOf(await requests(), options)
      expect(first.records).toMatchObject([{ outcome: 'CREATED' }, { outcome: 'FAILED' }])
      delete world.deps.inspect
      const again = await toldOf(await requests(), options)
      expect(again).toMatchObject({ revision: 2, records: [first.records?.[0] ?? {}, { outcome: 'CREATED' }] })
      expect(await toldOf(await requests(), options)).toEqual(again)
    })

    it('of changes is compared by the cards of its tokens', async () => {
      const { world } = onFile
      const made = await world.ask('token-create', { token_scope: onFile.scope, ...(await world.cardOf(testPan(85))) })
      const id = made.record?.['reuse_token']
      const change = async (expiryYear: number) => ({ id, ...(await world.cardOf(testPan(85), { expiryYear })) })
      const options = { batchId: 'changed-again', recordKind: 'token-update' } as const
      const first = await toldOf([await change(2033)], options)
      expect(first.records).toMatchObject([{ outcome: 'UPDATED' }])
      expect(await toldOf([await change(2033)], options)).toEqual(first)
      expect(await toldOf([await change(2034)], options)).toMatchObject({ reason: 'jti_reused' })
    })

    it('counts other cards as guesses, and beyond the limit says nothing, right or wrong', async () => {
      const world = await openOnFile(installation)
      Object.assign(world.world.deps.settings, { guessesMax: 2 })
      onFile = world
      const options = { batchId: 'guessed-chunk' }
      const send = async (cardholderName: string) =>
        toldOf([await world.world.cardOf(testPan(86), { cardholderName }), inClear(87)], options)
      expect((await send('A')).reason).toBeUndefined()
      const reasons = []
      for (const name of ['A', 'B', 'C', 'D', 'A']) reasons.push((await send(name)).reason)
      expect(reasons).toEqual([undefined, 'jti_reused', 'jti_reused', 'guesses', 'guesses'])
    })
  })

  it('of a job with a card counts each other card as a guess, and beyond the limit says nothing, right or wrong', async () => {
    const world = await openWorld(installation)
    Object.assign(world.deps.settings, { guessesMax: 3 })
    const own = { token_scope: installation.scope, ...(await world.cardOf(testPan(72))) }
    await world.ask('token-create', own, { jti: 'guessed' })
    const reasonOf = async (cardholderName?: string) => {
      const more = cardholderName === undefined ? {} : { cardholderName }
      const request = { token_scope: installation.scope, ...(await world.cardOf(testPan(72), more)) }
      const told = world.told.length
      await world.run(world.job('token-create', request, { jti: 'guessed' }))
      const [answer] = world.told.slice(told) as Result[]
      return Object.values(answer?.error?.details ?? {})[0]?.code ?? answer?.status
    }
    // The creation was the first miss.
    expect([await reasonOf(), await reasonOf('A'), await reasonOf(), await reasonOf('B'), await reasonOf('C')]).toEqual(
      [...['SUCCEEDED', 'jti_reused', 'SUCCEEDED', 'jti_reused', 'guesses']],
    )
    expect(await reasonOf()).toBe('guesses')
    // Equal bytes are the same without a look at the card.
    const told = world.told.length
    await world.run(world.job('token-create', own, { jti: 'guessed' }))
    expect(world.told.slice(told)).toMatchObject([{ status: 'SUCCEEDED' }])
  })

  it('that a client sends while the first is unanswered gets the answer to its own card, never the other one’s', async () => {
    await installation.openWorkers({ roles: ['interactive'] })
    const client = await installation.connect({ replyTo: 'own' })
    const requestOf = async (index: number) => ({
      token_scope: installation.scope,
      ...(await client.encryptCard({ cardNumber: testPan(index), expiryMonth: 12, expiryYear: 2031 })),
    })
    const call = async (index: number) => client.call('token-create', await requestOf(index), { jti: 'at-once' })
    const [first, again, other] = await Promise.all([call(73), call(73), call(74)])
    const codes = [first, again, other].map(({ code }) => code)
    // Either card may be first.
    expect(codes).toEqual(codes[0] === 200 ? [200, 200, 400] : [400, 400, 200])
    const [won, lost] = codes[0] === 200 ? [73, 74] : [74, 73]
    const handle = await client.submit('token-create', await requestOf(lost), { jti: 'at-once' })
    const later = await client.submit('token-create', await requestOf(won), { jti: 'at-once' })
    expect(handle.envelope).not.toBe(later.envelope)
    expect(await client.result(later)).toMatchObject({ code: 200, envelope: later.envelope })
    await client.close()
  })
})
