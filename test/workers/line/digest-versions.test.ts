// Repeats of jobs while the key of request digests is replaced: each is answered from its receipt, whatever version its
// worker knows, and is never taken for another request.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { requestText } from '../../../src/job/envelope/digest.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import type { Result } from '../../../src/job/result.ts'
import { pageOf } from '../../../src/metrics.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
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
      ...{ revision: 1, record: { reuse_token: first.record?.['reuse_token'] } },
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
