// Scheme tokens end to end: a caller of the gateway on one side, the simulated network on the other, both over HTTP.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { makeScope } from '../../../cli/open/make-scope.ts'
import { openInbox } from '../../../producers/results.ts'
import type { ResultEvent } from '../../../src/job/answer/result.ts'
import { openLog } from '../../../src/log.ts'
import { CONTRACT } from '../../../src/simulate/scheme/keys.ts'
import { CARD, type Caller, encrypted, openGatewayFor } from '../../producers/gateway/bundle.ts'
import { numberedPan, outcomePan } from '../../scheme/bundle.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { type Networked, openNetworked } from './bundle-network.ts'

describeStore('scheme tokens over HTTP', engine => {
  let networked: Networked
  let gateway: Caller
  let cards = 0
  const events: ResultEvent[] = []
  let stop: () => Promise<void>
  beforeAll(async () => {
    networked = await openNetworked(engine, { timeoutMs: 1_000 })
    const { installation } = networked
    await installation.openWorkers({ roles: ['interactive'] })
    gateway = await openGatewayFor(installation)
    await networked.simulator.notify(`${gateway.url}/oidc/scheme-notifications/mdes`)
    const mailbox = {
      clientId: installation.credentials.signingKey.clientId,
      replyTo: undefined,
      keys: installation.credentials.installationKeys,
    }
    const inbox = openInbox(
      installation.queues,
      mailbox,
      async delivery => {
        if (delivery.type === 'event') events.push(delivery)
        return 'taken'
      },
      { concurrency: 1, log: openLog('silent') },
    )
    await inbox.ready
    stop = () => inbox.close(2_000)
  })
  afterAll(async () => {
    await stop?.()
    await gateway?.close()
    await networked?.close()
  })

  const nextPan = () => {
    cards += 1
    return numberedPan(cards)
  }
  const put = async (cardNumber: string) => {
    const { body, status } = await gateway.put({ cardNumber, expiryMonth: 12, expiryYear: 2031 })
    expect(status).toBe(200)
    return `${CARD}/${body['reuse_token']}`
  }
  const patch = (path: string, action: string, fields = {}) =>
    gateway.call('PATCH', path, { body: { scheme_token_action: action, ...fields } })
  const get = async (path: string) => (await gateway.call('GET', path)).body['scheme_token']

  const numberIn = (body: Record<string, unknown>) =>
    (body['scheme_token'] as Record<string, unknown> | undefined)?.['network_token']

  it('are activated by PATCH, and shown as their network says', async () => {
    const path = await put(nextPan())
    expect(await get(path)).toBeUndefined()
    expect(await patch(path, 'ACTIVATE')).toMatchObject({ status: 200, body: { scheme_token: { status: 'ACTIVE' } } })
    const [token] = await networked.simulator.tokens()
    expect(await get(path)).toEqual({
      network_token: expect.stringMatching(new RegExp(`^\\d{12}${token?.numberLastFour}$`)),
      status: 'VALID',
      expiry_month: 12,
      expiry_year: expect.any(Number),
      payment_account_reference: expect.stringMatching(/^[0-9A-Z]{29}$/),
    })
    expect((await patch(path, 'SUSPEND')).body['scheme_token']).toMatchObject({ status: 'SUSPENDED' })
    expect((await patch(path, 'DELETE')).body['scheme_token']).toEqual({ status: 'DELETED' })
    await until(async () => (await networked.simulator.stats()).tokens.live === 0)
  })

  it('follow what issuers do, and their client is told', async () => {
    const path = await put(nextPan())
    await patch(path, 'ACTIVATE')
    const token = (await networked.simulator.tokens()).find(({ state }) => state === 'ACTIVE')
    const told = (status: string) =>
      until(
        () =>
          events.find(
            ({ subject, data }) =>
              subject['reuse_token'] === path.split('/').at(-1) &&
              (data['scheme_token'] as Record<string, unknown>)['status'] === status,
          ),
        { what: `an event ${status}` },
      )
    await networked.simulator.befall(token?.reference ?? '', { do: 'suspend', by: 'ISSUER', times: 3 })
    await told('SUSPENDED')
    await patch(path, 'SUSPEND')
    await networked.simulator.befall(token?.reference ?? '', { do: 'resume', by: 'ISSUER' })
    // The suspension by the caller still holds.
    expect(await get(path)).toMatchObject({ status: 'SUSPENDED' })
    expect((await patch(path, 'ACTIVATE')).body['scheme_token']).toMatchObject({ status: 'ACTIVE' })
    await networked.simulator.befall(token?.reference ?? '', { do: 'expiry', expiry: '0139' })
    await until(async () => ((await get(path)) as Record<string, unknown>)['expiry_year'] === 2039)
    await networked.simulator.befall(token?.reference ?? '', { do: 'delete' })
    await told('DELETED')
    const numbers = events.flatMap(
      ({ data }) => (data['scheme_token'] as Record<string, unknown> | undefined)?.['network_token'] ?? [],
    )
    expect(numbers.length).toBeGreaterThan(0)
    expect(numbers.every(number => /^\*{12}\d{4}$/.test(String(number)))).toBe(true)
  })

  it('whose answer is lost, late, doubled or broken are provisioned once', async () => {
    const before = await networked.simulator.stats()
    const paths = await Promise.all([1, 2, 3, 4, 5, 6, 7, 8, 9, 10].map(n => put(outcomePan(n))))
    const answers = await Promise.all(paths.map(path => patch(path, 'ACTIVATE')))
    expect(answers.map(({ status }) => status)).toEqual(paths.map(() => 200))
    const after = await networked.simulator.stats()
    expect(after).toMatchObject({ tasksWithSeveralTokens: 0, cardsWithSeveralLiveTokens: 0 })
    expect(after.tokens.live - before.tokens.live).toBe(paths.length)
  })

  it('that the network refuses are refused with its reason', async () => {
    const ineligible = await put('5100000000000024')
    const { status, body } = await patch(ineligible, 'ACTIVATE')
    expect({ status, details: body['details'] }).toMatchObject({
      status: 400,
      details: { 'body.scheme_token_action': { code: 'scheme_card_ineligible' } },
    })
  })

  it('take no notification from whoever doesn’t know the secret', async () => {
    const answer = await gateway.call('POST', '/oidc/scheme-notifications/mdes', {
      authorization: 'Bearer guess-guess-guess-guess',
      body: { requestId: 'x', encryptedPayload: {} },
    })
    expect(answer.status).toBe(401)
    const own = await gateway.call('POST', '/oidc/scheme-notifications/mdes', { body: {} })
    expect(own.status).toBe(401)
  })

  it('of a deleted token go, though the network is away meanwhile', async () => {
    const path = await put(nextPan())
    await patch(path, 'ACTIVATE')
    const { live } = (await networked.simulator.stats()).tokens
    await networked.simulator.kill9()
    expect((await gateway.call('DELETE', path)).status).toBe(204)
    await networked.simulator.restart()
    await until(async () => (await networked.simulator.stats()).tokens.live === live - 1)
  })

  it('stand beside third-party tokens, which are named as the third party names them', async () => {
    const made = await gateway.put(
      { cardNumber: nextPan(), expiryMonth: 12, expiryYear: 2031 },
      {
        reuse_token_type: 'THIRD_PARTY_1',
        reuse_token_details: { expiry_month: 12, expiry_year: 2031 },
        token_context: { payment_provider_contract: CONTRACT },
      },
    )
    expect(made).toMatchObject({ status: 200, body: { reuse_token_type: 'THIRD_PARTY_1' } })
    const path = `${CARD}/${made.body['reuse_token']}`
    const { thirdParty } = await networked.simulator.stats()
    expect((await gateway.call('GET', path)).body).toMatchObject({
      reuse_token: made.body['reuse_token'],
      reuse_token_type: 'THIRD_PARTY_1',
      token_status: 'ACTIVE',
    })
    expect(await gateway.call('PATCH', `${path}/suspend`)).toMatchObject({ status: 204 })
    expect((await gateway.call('GET', path)).body).toMatchObject({ token_status: 'SUSPENDED' })
    expect(await gateway.call('DELETE', path)).toMatchObject({ status: 204 })
    expect(await gateway.call('GET', path)).toMatchObject({ status: 404 })
    await until(async () => (await networked.simulator.stats()).thirdParty.live === thirdParty.live - 1)
  })

  it('have their whole number in PUT, PATCH and GET, in repeats and in what is answered later (INTERFACE 2.6)', async () => {
    const { installation } = networked
    const card = { cardNumber: nextPan(), expiryMonth: 12, expiryYear: 2031 }
    const made = await gateway.put(card)
    const path = `${CARD}/${made.body['reuse_token']}`
    const ask = { body: { scheme_token_action: 'ACTIVATE' }, headers: { 'idempotency-key': 'whole-patch' } }
    const activated = await gateway.call('PATCH', path, ask)
    const number = String(numberIn(activated.body))
    expect(number).toMatch(/^\d{16}$/)
    const body = { token_scope: installation.scope, ...(await encrypted(card, installation.credentials)) }
    const again = { body, headers: { 'idempotency-key': 'whole-put' } }
    const answers = [
      await gateway.call('PATCH', path, ask),
      await gateway.call('PUT', CARD, again),
      await gateway.call('PUT', CARD, again),
      await gateway.call('PATCH', path, { body: { card_holder_name: 'ANNA MEYER' } }),
      await gateway.call('GET', path),
    ]
    expect(answers.map(answer => numberIn(answer.body))).toEqual(answers.map(() => number))
    const later = await gateway.put(card, {}, { headers: { prefer: 'respond-async' } })
    const told = await until(async () => {
      const { body } = await gateway.call('GET', later.headers.get('location') ?? '')
      return body['status'] === 'SUCCEEDED' && body
    })
    expect(numberIn(told['record'] as Record<string, unknown>)).toBe(number)
  })

  it('are masked to their last four on results queues, and whole in no stored answer', async () => {
    const { installation } = networked
    const path = await put(nextPan())
    const number = String(numberIn((await patch(path, 'ACTIVATE')).body))
    const client = await installation.connect({ replyTo: 'masked' })
    const id = path.split('/').at(-1) ?? ''
    const result = await client.call('scheme-token', { id, action: 'ACTIVATE' })
    expect(numberIn(result.record ?? {})).toBe(`************${number.slice(-4)}`)
    const { rows } = await installation.vault.store.query<{ text: string }>({
      text: 'select o::text as text from tokenmill.outbox o union all select r::text from tokenmill.receipt r',
      values: [],
    })
    expect(rows.length).toBeGreaterThan(0)
    expect(rows.filter(({ text }) => text.includes(number))).toEqual([])
  })

  it('are nothing but a status where the token requestor is not the merchant', async () => {
    const { installation } = networked
    const { tokenScope } = await makeScope(installation.vault, {
      entityId: ENTITY,
      par: true,
      networkTokens: true,
      requestor: 'PSP',
      binDigits: 8,
    })
    const card = { cardNumber: nextPan(), expiryMonth: 12, expiryYear: 2031 }
    const made = await gateway.put(card, { token_scope: tokenScope })
    const path = `${CARD}/${made.body['reuse_token']}`
    expect((await patch(path, 'ACTIVATE')).body['scheme_token']).toEqual({ status: 'ACTIVE' })
    expect((await gateway.put(card, { token_scope: tokenScope })).body['scheme_token']).toEqual({ status: 'VALID' })
    expect(await get(path)).toEqual({ status: 'VALID' })
  })
})
