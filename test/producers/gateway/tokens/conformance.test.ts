// The card token operations over HTTP: INTERFACE 2.1 to 2.7, 3, 4 and 8, with CONTRACT 8.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { encryptCard } from '../../../../src/vault/capture/encrypt.ts'
import { describeOnRedis } from '../../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'
import { basicOf, CARD, type Caller, encrypted, openGatewayFor } from '../bundle.ts'

const today = () => new Date().toISOString().slice(0, 10)
const VISA = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }
const reasonOf = (answer: { body: Record<string, unknown> }) =>
  Object.fromEntries(
    Object.entries((answer.body['details'] ?? {}) as Record<string, { code: string }>).map(([f, { code }]) => [
      f,
      code,
    ]),
  )

/** A Luhn-valid number of a well-known test BIN. */
function cardOf(bin: string, serial: number, length = 16): string {
  const head = `${bin}${String(serial).padStart(length - 1 - bin.length, '0')}`
  const sum = [...head].reverse().reduce((total, digit, at) => {
    const n = Number(digit) * (at % 2 === 0 ? 2 : 1)
    return total + (n > 9 ? n - 9 : n)
  }, 0)
  return `${head}${(10 - (sum % 10)) % 10}`
}

describeOnRedis('the card token service', engine => {
  let installation: Installation
  let caller: Caller
  let serial = 0
  const fresh = () => ({ cardNumber: cardOf('411111', ++serial), expiryMonth: 12, expiryYear: 2030 })
  const make = async (card: Record<string, unknown> = fresh(), fields = {}) => {
    const made = await caller.put(card, fields)
    expect(made.status).toBe(200)
    return String(made.body['reuse_token'])
  }
  const get = (id: string) => caller.call('GET', `${CARD}/${id}`)
  const patch = (id: string, body: Record<string, unknown>) => caller.call('PATCH', `${CARD}/${id}`, { body })

  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['interactive'] })
    caller = await openGatewayFor(installation)
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  describe('PUT (2.1, 4.1)', () => {
    it('creates a token and answers 200 with the record of 2.4', async () => {
      const days = [today()]
      const made = await caller.put({ ...VISA, cardholderName: 'ANNA MEYER' })
      days.push(today())
      expect(made.status).toBe(200)
      expect(made.body).toEqual({
        reuse_token: expect.stringMatching(/^t[0-9A-HJKMNP-TV-Z]{26}$/),
        reuse_token_type: 'INTERNAL',
        token_scope: installation.scope,
        bin: '41111111',
        expiry_month: 12,
        expiry_year: 2030,
        last_four: '1111',
        card_holder_name: 'ANNA MEYER',
        issuer_country: 'GBR',
        currency: 'GBP',
        bin_details: {
          bin: '41111111',
          brand: 'VISA',
          issuer_country: 'GBR',
          issuer_name: expect.any(String),
          last_four: '1111',
          type: 'CREDIT',
          variant: expect.any(String),
        },
        created_at: expect.toBeOneOf(days),
        updated_at: expect.toBeOneOf(days),
        token_status: 'ACTIVE',
      })
    })
    it('updates the token that the card has in the scope already; absent fields stay as they are', async () => {
      const card = { ...fresh(), cardholderName: 'ANNA' }
      const id = await make(card)
      const again = await caller.put({ cardNumber: card.cardNumber, expiryMonth: 1, expiryYear: 32 })
      expect(again.body).toMatchObject({
        reuse_token: id,
        expiry_month: 1,
        expiry_year: 2032,
        card_holder_name: 'ANNA',
      })
    })
    it('takes reuse_token_details beside INTERNAL, judges their form, and leaves the expiry to the card', async () => {
      const details = { expiry_month: 1, expiry_year: 2044 }
      for (const internal of [{}, { reuse_token_type: 'INTERNAL' }])
        expect(await caller.put(fresh(), { ...internal, reuse_token_details: details })).toMatchObject({
          status: 200,
          body: { reuse_token_type: 'INTERNAL', expiry_month: 12, expiry_year: 2030 },
        })
      expect(reasonOf(await caller.put(fresh(), { reuse_token_details: { expiry_month: 13 } }))).toEqual({
        'body.reuse_token_details.expiry_month': 'field_range',
        'body.reuse_token_details.expiry_year': 'field_required',
      })
    })
    it('takes a UUID of any version in any case, with its dashes and nothing around it', async () => {
      const scope = installation.scope
      const flexible = { token_context: { entity_id: '0A1F6F0E-3A52-9C3B-0A57-0C1D2E3F4A5B' } }
      const made = await caller.put(fresh(), { token_scope: scope.toUpperCase() })
      expect([made.status, made.body['token_scope']]).toEqual([200, scope])
      // A well-formed scope that isn't the client's is refused with 403.
      expect((await caller.put(fresh(), flexible)).status).toBe(403)
      for (const token_scope of [`{${scope}}`, `urn:uuid:${scope}`, scope.replaceAll('-', ''), ` ${scope}`])
        expect(reasonOf(await caller.put(fresh(), { token_scope }))).toEqual({ 'body.token_scope': 'field_format' })
    })
    it('takes a card encrypted with OpenPGP as well', async () => {
      const { pgp } = installation.credentials.captureKeys
      const card = { ...fresh(), captureTime: new Date().toISOString() }
      const fields = pgp && { encrypted_card: await encryptCard(card, pgp), public_key_alias: pgp.alias }
      expect((await caller.put(card, fields)).status).toBe(200)
    })
    it('shows no brand, issuer_name, type or variant at the top level, nor an e-mail', async () => {
      const { body } = await caller.put(fresh())
      for (const name of ['brand', 'issuer_name', 'type', 'variant', 'card_holder_email'])
        expect(body).not.toHaveProperty(name)
    })
    it.each(['token_scope', 'encrypted_card', 'public_key_alias'])('requires %s', async name => {
      const answer = await caller.put(fresh(), { [name]: undefined })
      expect([answer.status, reasonOf(answer)]).toEqual([400, { [`body.${name}`]: 'field_required' }])
    })
    it('takes a past token_expiry_date for an error, and keeps a future one', async () => {
      const past = await caller.put(fresh(), { token_expiry_date: '2020-01-01' })
      expect([past.status, reasonOf(past)]).toEqual([400, { 'body.token_expiry_date': 'expiry_past' }])
      expect((await caller.put(fresh(), { token_expiry_date: '2090-01-31' })).body['token_expiry_date']).toBe(
        '2090-01-31',
      )
    })
    it('takes a card_brand that contradicts the number for an error, but CB', async () => {
      const wrong = await caller.put(fresh(), { card_brand: 'JCB' })
      expect([wrong.status, reasonOf(wrong)]).toEqual([400, { 'body.card_brand': 'brand_conflict' }])
      expect((await caller.put(fresh(), { card_brand: 'CB' })).body['bin_details']).toMatchObject({ brand: 'CB' })
    })
    it('REUSE (the default) answers a reuse_token, ANALYTICS an analytics_token, REUSE_AND_ANALYTICS both', async () => {
      const reuse = await caller.put(fresh())
      expect(reuse.body).not.toHaveProperty('analytics_token')
      const card = fresh()
      const analytics = await caller.put(card, { token_type: 'ANALYTICS' })
      expect(analytics.body).not.toHaveProperty('reuse_token')
      expect(analytics.body['analytics_token']).toMatch(/^a[A-Za-z0-9_-]{43}$/)
      const both = await caller.put(card, { token_type: 'REUSE_AND_ANALYTICS' })
      expect(both.body).toMatchObject({
        reuse_token: expect.any(String),
        analytics_token: analytics.body['analytics_token'],
      })
    })
    it('of a suspended card updates it, and it stays suspended', async () => {
      const card = fresh()
      const id = await make(card)
      await caller.call('PATCH', `${CARD}/${id}/suspend`)
      const again = await caller.put({ ...card, expiryMonth: 5 })
      expect(again.body).toMatchObject({ reuse_token: id, token_status: 'SUSPENDED', expiry_month: 5 })
    })
    it('of a deleted card makes a new token', async () => {
      const card = fresh()
      const id = await make(card)
      await caller.call('DELETE', `${CARD}/${id}`)
      expect(await make(card)).not.toBe(id)
    })
    it('of another entity’s or an unknown scope is 403', async () => {
      for (const scope of [
        (await installation.addClient('other-scope', { entity: randomUUID() })).scope,
        randomUUID(),
      ]) {
        const answer = await caller.put(fresh(), { token_scope: scope })
        expect([answer.status, reasonOf(answer)]).toEqual([403, { 'body.token_scope': 'scope_forbidden' }])
      }
    })
  })

  describe('encrypted_card (2.2, 8)', () => {
    it('is valid for 15 minutes from its captureTime', async () => {
      const stale = new Date(Date.now() - 15.1 * 60_000).toISOString()
      const answer = await caller.put({ ...fresh(), captureTime: stale })
      expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.encrypted_card': 'capture_time_stale' }])
      const young = new Date(Date.now() - 14 * 60_000).toISOString()
      expect((await caller.put({ ...fresh(), captureTime: young })).status).toBe(200)
    })
    it('needs a captureTime in RFC 3339 and UTC', async () => {
      for (const captureTime of ['yesterday', '2030-01-01T00:00:00+01:00', undefined]) {
        const answer = await caller.put({ ...fresh(), captureTime })
        expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.encrypted_card': 'capture_time_invalid' }])
      }
    })
    it('may be used again within its time', async () => {
      const fields = await encrypted(fresh(), installation.credentials)
      const first = await caller.put({}, fields)
      expect((await caller.put({}, fields)).body['reuse_token']).toBe(first.body['reuse_token'])
    })
    it('with a number that fails Luhn is refused, and the number isn’t echoed', async () => {
      const answer = await caller.put({ ...VISA, cardNumber: '4111111111111112' })
      expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.encrypted_card': 'pan_luhn' }])
      expect(answer.text).not.toContain('4111111111111112')
    })
    it('that can’t be opened says so in one text, whatever is wrong', async () => {
      const { encrypted_card: good } = await encrypted(fresh(), installation.credentials)
      const texts = new Set<string>()
      for (const bad of [`${good.slice(0, -4)}AAAA`, `${good}A`, `A${good}`, 'abc', 'a.b.c.d.e']) {
        const answer = await caller.put(
          {},
          { encrypted_card: bad, public_key_alias: installation.credentials.captureKeys.jwe?.alias },
        )
        expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.encrypted_card': 'card_undecryptable' }])
        texts.add(JSON.stringify(answer.body['details']))
      }
      expect(texts.size).toBe(1)
    })
    it('by another entity’s or an unknown alias is 400 on the alias', async () => {
      const other = await installation.addClient('other-alias', { entity: randomUUID() })
      const alias = other.credentials.captureKeys.jwe?.alias
      for (const public_key_alias of [alias, 'nobodys'])
        expect(reasonOf(await caller.put(fresh(), { public_key_alias }))).toEqual({
          'body.public_key_alias': 'alias_unknown',
        })
    })
    it('may hold a cvv, which is checked for form and shown nowhere', async () => {
      const answer = await caller.put({ ...fresh(), cvv: '987' })
      // As a value: an id or a time may hold these digits.
      expect([answer.status, /["\s:]987["\s,}]/.test(answer.text)]).toEqual([200, false])
      expect(reasonOf(await caller.put({ ...fresh(), cvv: '98765' }))).toEqual({ 'body.encrypted_card': 'cvv_format' })
    })
  })

  describe('token_context and third parties (2.3)', () => {
    it('INTERNAL: token_context is optional, and its entity_id must be the caller’s', async () => {
      expect((await caller.put(fresh(), { token_context: {} })).status).toBe(200)
      const answer = await caller.put(fresh(), { token_context: { entity_id: randomUUID() } })
      expect([answer.status, reasonOf(answer)]).toEqual([403, { 'body.token_context.entity_id': 'entity_forbidden' }])
      expect((await caller.put(fresh(), { token_context: { entity_id: ENTITY } })).status).toBe(200)
    })
    it('third party: reuse_token_details are mandatory', async () => {
      const answer = await caller.put(fresh(), {
        reuse_token_type: 'THIRD_PARTY_1',
        token_context: { entity_id: randomUUID() },
      })
      expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.reuse_token_details': 'field_required' }])
    })
    it('third party: without entity and contract it is declined, 400 on token_context', async () => {
      const fields = { reuse_token_type: 'THIRD_PARTY_1', reuse_token_details: { expiry_month: 1, expiry_year: 2030 } }
      for (const token_context of [undefined, {}]) {
        const answer = await caller.put(fresh(), { ...fields, token_context })
        expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.token_context': 'third_party_context' }])
      }
    })
    it('third party: what is lacking is named at once', async () => {
      const answer = await caller.put(fresh(), { reuse_token_type: 'THIRD_PARTY_1' })
      expect([answer.status, reasonOf(answer)]).toEqual([
        400,
        { 'body.reuse_token_details': 'field_required', 'body.token_context': 'third_party_context' },
      ])
    })
    it('another reuse_token_type is no permitted value', async () => {
      expect(reasonOf(await caller.put(fresh(), { reuse_token_type: 'NOBODY' }))).toEqual({
        'body.reuse_token_type': 'field_value',
      })
    })
  })

  describe('GET (2.4)', () => {
    it('answers 200 with the record and the fields that only GET has', async () => {
      const id = await make({ ...VISA, cardNumber: '5555555555554444' })
      const answer = await get(id)
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({
        reuse_token: id,
        token_scope: installation.scope,
        reuse_token_type: 'INTERNAL',
        brand: 'MASTERCARD',
        issuer_name: expect.any(String),
        type: expect.stringMatching(/^(DEBIT|CREDIT)$/),
        variant: expect.any(String),
        issuer_country: expect.stringMatching(/^[A-Z]{3}$/),
        currency: expect.stringMatching(/^[A-Z]{3}$/),
        token_status: 'ACTIVE',
      })
    })
    it('has issuer_country ZZZ for a BIN that no table knows, as PUT, PATCH and results on queues have', async () => {
      // A published test number outside the built-in ranges.
      const card = { cardNumber: '6011000990139424', expiryMonth: 12, expiryYear: 2030 }
      const unknown = { issuer_country: 'ZZZ', bin_details: { issuer_country: 'ZZZ' } }
      const made = await caller.put(card)
      const id = String(made.body['reuse_token'])
      const client = await installation.connect({ replyTo: 'zzz' })
      const request = { token_scope: installation.scope, ...(await encrypted(card, installation.credentials)) }
      const onQueues = [await client.call('token-create', request), await client.call('token-update', { id })]
      const records = [made.body, (await get(id)).body, (await patch(id, {})).body, ...onQueues.map(one => one.record)]
      for (const record of records) expect(record).toMatchObject(unknown)
    })
    it('shows a BIN of six digits for a card that hasn’t sixteen', async () => {
      const id = await make({ ...VISA, cardNumber: '378282246310005' })
      expect((await get(id)).body).toMatchObject({ bin: '378282', last_four: '0005' })
    })
    it('finds a token whatever the case of its letters', async () => {
      const id = await make()
      expect((await get(id.toLowerCase())).body['reuse_token']).toBe(id)
    })
    it('of another entity’s token is 404, as is one that never was', async () => {
      const id = await make()
      const other = await installation.addClient('other-reader', { entity: randomUUID() })
      const theirs = await caller.call('GET', `${CARD}/${id}`, { authorization: await basicOf(other.clientFile) })
      const nobodys = await get(`t${'0'.repeat(26)}`)
      for (const answer of [theirs, nobodys])
        expect([answer.status, reasonOf(answer)]).toEqual([404, { 'params.id': 'token_not_found' }])
    })
  })

  describe('PATCH (2.7, 4.2)', () => {
    it('updates what is given and answers the subset of 4', async () => {
      const id = await make()
      const fields = {
        card_holder_name: 'BEN',
        card_holder_email: 'ben@example.com',
        expiry_month: 3,
        expiry_year: 2033,
      }
      const answer = await patch(id, { ...fields, token_expiry_date: '2090-12-31' })
      expect(answer.status).toBe(200)
      expect(answer.body).toMatchObject({ ...fields, token_expiry_date: '2090-12-31', token_status: 'ACTIVE' })
      expect(
        Object.keys(answer.body).filter(name => ['reuse_token', 'token_scope', 'brand', 'type'].includes(name)),
      ).toEqual([])
    })
    it('{} is 200 and changes nothing', async () => {
      const id = await make()
      const before = (await get(id)).body
      expect((await patch(id, {})).status).toBe(200)
      expect((await get(id)).body).toEqual(before)
    })
    it('with encrypted_card links the token to a new PAN', async () => {
      const id = await make()
      const card = { cardNumber: '6011111111111117', expiryMonth: 4, expiryYear: 2031 }
      const answer = await patch(id, await encrypted(card, installation.credentials))
      expect(answer.body).toMatchObject({ last_four: '1117', expiry_month: 4, bin_details: { brand: 'DISCOVER' } })
      expect((await get(id)).body).toMatchObject({ reuse_token: id, last_four: '1117' })
    })
    it('with encrypted_card and no expiry date clears the date and keeps the name', async () => {
      const id = await make({ ...fresh(), cardholderName: 'ANNA MEYER' })
      const { cardNumber } = fresh()
      const answer = await patch(id, await encrypted({ cardNumber, cardholderName: ' ' }, installation.credentials))
      expect(answer.body).toMatchObject({ last_four: cardNumber.slice(-4), card_holder_name: 'ANNA MEYER' })
      for (const { body } of [answer, await get(id)]) expect(Object.keys(body)).not.toContain('expiry_month')
      const half = await patch(id, {
        ...(await encrypted({ cardNumber: fresh().cardNumber }, installation.credentials)),
        expiry_month: 3,
      })
      expect([half.status, reasonOf(half)]).toEqual([400, { 'body.expiry_year': 'field_required' }])
    })
    it('null clears name, e-mail and token_expiry_date, and a blank name is none', async () => {
      const id = await make()
      const given = { card_holder_name: 'BEN', card_holder_email: 'ben@example.com', token_expiry_date: '2090-12-31' }
      const names = (answer: { body: Record<string, unknown> }) =>
        Object.keys(given).filter(name => answer.body[name] !== undefined)
      expect(names(await patch(id, given))).toEqual(Object.keys(given))
      const none = { card_holder_name: null, card_holder_email: null, token_expiry_date: null }
      const cleared = await patch(id, none)
      expect([cleared.status, names(cleared)]).toEqual([200, []])
      for (const card_holder_name of ['', ' ', '\u00a0 ']) {
        await patch(id, given)
        expect(names(await patch(id, { card_holder_name }))).toEqual(['card_holder_email', 'token_expiry_date'])
      }
      const bad = await patch(id, { expiry_month: null })
      expect([bad.status, reasonOf(bad)]).toEqual([400, { 'body.expiry_month': 'field_type' }])
    })
    it('a plain field beside encrypted_card overrides the one inside', async () => {
      const card = fresh()
      const id = await make(card)
      const answer = await patch(id, {
        ...(await encrypted({ ...card, expiryMonth: 4 }, installation.credentials)),
        expiry_month: 9,
      })
      expect(answer.body['expiry_month']).toBe(9)
    })
    it('encrypted_card without public_key_alias is 400', async () => {
      const { encrypted_card } = await encrypted(fresh(), installation.credentials)
      const answer = await patch(await make(), { encrypted_card })
      expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.public_key_alias': 'field_required' }])
    })
    it('to a PAN that another live token of the scope stands for is 400', async () => {
      const card = fresh()
      await make(card)
      const answer = await patch(await make(), await encrypted(card, installation.credentials))
      expect([answer.status, reasonOf(answer)]).toEqual([400, { 'body.encrypted_card': 'pan_taken' }])
    })
    it('a plain cvv of up to 30 characters is taken and dropped, unjudged; a longer one is 400', async () => {
      const id = await make()
      const answer = await patch(id, { cvv: 'not even digits ✓', card_holder_name: 'CY' })
      expect([answer.status, answer.body['card_holder_name'], answer.text.includes('digits')]).toEqual([
        200,
        'CY',
        false,
      ])
      expect(reasonOf(await patch(id, { cvv: '1'.repeat(31) }))).toEqual({ 'body.cvv': 'field_length' })
    })
    it.each([
      ['card_holder_name', 'N'.repeat(30), 'N'.repeat(31), 'field_length'],
      [
        'card_holder_email',
        `${'a'.repeat(60)}@${'b.'.repeat(94)}com`,
        `${'a'.repeat(60)}@${'b.'.repeat(97)}com`,
        'field_length',
      ],
      ['expiry_month', 12, 13, 'field_range'],
      ['expiry_month', 1, 0, 'field_range'],
      ['expiry_year', 9999, 10_000, 'field_range'],
      ['expiry_month', 2, '02', 'field_type'],
      ['card_holder_email', 'a@b.co', 'a.b', 'field_format'],
      ['card_holder_email', 'sales&info@example.com', 'sales info@example.com', 'field_format'],
      ['card_holder_email', 'user=x@example.com', 'ü@example.com', 'field_format'],
      ['card_holder_email', 'first/last@example.com', 'a@-b', 'field_format'],
      ['card_holder_email', 'user@example.xn--p1ai', 'user@', 'field_format'],
      ['card_holder_email', 'a@b', '@bc', 'field_format'],
      ['card_holder_email', 'a@b', '@b', 'field_length'],
      ['token_expiry_date', '2090-02-28', '2090-02-30', 'field_format'],
    ])('%s: takes what its limit allows and no more (case %#)', async (name, good, bad, reason) => {
      const id = await make()
      expect((await patch(id, { [name]: good })).status).toBe(200)
      const answer = await patch(id, { [name]: bad })
      expect([answer.status, reasonOf(answer)[`body.${name}`]]).toEqual([400, reason])
    })
    it('id isn’t a field of the body', async () => {
      expect(reasonOf(await patch(await make(), { id: 't00000000000000' }))).toEqual({ 'body.id': 'field_unknown' })
    })
  })

  describe('suspend, activate, DELETE (3)', () => {
    const suspend = (id: string) => caller.call('PATCH', `${CARD}/${id}/suspend`)
    const activate = (id: string) => caller.call('PATCH', `${CARD}/${id}/activate`)
    const statusOf = async (id: string) => (await get(id)).body['token_status']
    it('suspends and activates again, 204 without a body', async () => {
      const id = await make()
      const answer = await suspend(id)
      expect([answer.status, answer.text, answer.headers.get('content-type')]).toEqual([204, '', null])
      expect(await statusOf(id)).toBe('SUSPENDED')
      expect((await activate(id)).status).toBe(204)
      expect(await statusOf(id)).toBe('ACTIVE')
    })
    it('suspending a suspended one and activating an active one are 204 and change nothing', async () => {
      const id = await make()
      expect([(await activate(id)).status, await statusOf(id)]).toEqual([204, 'ACTIVE'])
      await suspend(id)
      expect([(await suspend(id)).status, await statusOf(id)]).toEqual([204, 'SUSPENDED'])
    })
    it('DELETE is 204 without a body, and for good: everything on it is 404 from then on', async () => {
      const id = await make()
      const answer = await caller.call('DELETE', `${CARD}/${id}`)
      expect([answer.status, answer.text]).toEqual([204, ''])
      const after = [
        await get(id),
        await patch(id, {}),
        await suspend(id),
        await activate(id),
        await caller.call('DELETE', `${CARD}/${id}`),
      ]
      for (const late of after) expect([late.status, reasonOf(late)]).toEqual([404, { 'params.id': 'token_not_found' }])
    })
    it('takes an empty object for a body, as some clients send it, and nothing else', async () => {
      const id = await make()
      expect((await caller.call('PATCH', `${CARD}/${id}/suspend`, { body: {} })).status).toBe(204)
      expect((await caller.call('PATCH', `${CARD}/${id}/suspend`, { body: '' })).status).toBe(204)
      expect(reasonOf(await caller.call('PATCH', `${CARD}/${id}/suspend`, { body: { now: true } }))).toEqual({
        body: 'field_unknown',
      })
    })
  })

  describe('the id of a path (4, 8)', () => {
    it('has 14 to 255 characters, else 400', async () => {
      for (const id of ['t'.repeat(13), 't'.repeat(256), 't'.repeat(3_000)]) {
        const answer = await get(id)
        expect([answer.status, reasonOf(answer)]).toEqual([400, { 'params.id': 'field_length' }])
      }
    })
    it('of that length that is no token of ours is 404', async () => {
      for (const id of [
        't'.repeat(14),
        'x'.repeat(255),
        '4111111111111111',
        encodeURIComponent('ünïcödë-tøken-tøken'),
        'a%2Fb%2Fc%2Fd%2Fe%2Ff%2Fg%2Fh',
      ])
        for (const answer of [await get(id), await patch(id, {})])
          expect([answer.status, reasonOf(answer)]).toEqual([404, { 'params.id': 'token_not_found' }])
    })
    it('with control characters or badly encoded is 400', async () => {
      expect(reasonOf(await get(`tttttttttttttt%00`))).toEqual({ 'params.id': 'field_characters' })
      expect((await get(`tttttttttttttt%zz`)).status).toBe(400)
    })
  })
})
