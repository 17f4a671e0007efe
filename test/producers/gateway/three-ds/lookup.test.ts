// Lookup over HTTP: the card from each of its sources, only for clients of its entity; outcomes, repeats and time-outs.
import { randomUUID } from 'node:crypto'
import { createServer, type Server } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { grantContract } from '../../../../src/acts/contract-grants.ts'
import * as contracts from '../../../../src/store/three-ds/three-ds-contracts.ts'
import { encryptCard } from '../../../../src/vault/capture/encrypt.ts'
import { until } from '../../../support/until.ts'
import { CARD, lookupBody, makeContract, OTHER_ENTITY } from '../../../three-ds/samples.ts'
import { basicOf, encrypted } from '../bundle.ts'
import { ALL_ROLES, type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

let bundle: HttpBundle
beforeAll(async () => {
  bundle = await openHttpBundle({ TOKENMILL_THREE_DS_TIMEOUT_SECONDS: '3' })
  await bundle.installation.openWorkers({ roles: ['interactive'] })
})
afterAll(() => bundle?.close())

const byToken = (field: 'card' | 'reuse_token', token: string, options = {}) => {
  const { reuse_token: _, ...body } = lookupBody(bundle.contract.contractId, CARD.Y)
  return bundle.call('POST', `${SERVICE}/lookup`, { body: { ...body, [field]: token }, ...options })
}

describe('a lookup', () => {
  it.each([
    ['Y', CARD.Y, { pares_status: 'Y', eci_flag: '05', cavv_algorithm: '2' }],
    ['Y on Mastercard', CARD.mastercard, { pares_status: 'Y', eci_flag: '02', cavv_algorithm: '3' }],
    ['A', CARD.A, { pares_status: 'A', eci_flag: '06' }],
    ['N', CARD.N, { pares_status: 'N', eci_flag: '07' }],
    ['U', CARD.U, { pares_status: 'U', eci_flag: '07' }],
    ['R', CARD.R, { pares_status: 'R', eci_flag: '07' }],
    ['a challenge', CARD.challengeY, { pares_status: 'C', acs_url: expect.any(String), payload: expect.any(String) }],
    ['a malformed answer', CARD.malformed, { pares_status: 'U', error_no: '511' }],
    ['a number that no issuer enrolled', CARD.notEnrolled, { enrolled: 'N', error_no: '512', reason_code: '305' }],
  ])('that is answered %s is 200', async (_, pan, expected) => {
    const answer = await bundle.lookup(pan)
    expect(answer).toMatchObject({ status: 200, body: expected })
    for (const field of ['authentication_id', 'transaction_id', 'error_no'])
      expect(answer.body[field]).toEqual(expect.any(String))
    expect(answer.body).not.toHaveProperty('challenge_cancel')
  })

  it.each(['card', 'reuse_token'] as const)('names its card by a token in %s, and the record names it', async field => {
    const token = await bundle.tokenize(CARD.Y)
    const { status, body } = await byToken(field, token)
    expect({ status, body }).toMatchObject({ status: 200, body: { pares_status: 'Y', token } })
    const { body: record } = await bundle.call('GET', `${SERVICE}/3d/${body['authentication_id']}`)
    expect(record['card']).toBe(token)
    expect((await bundle.call('GET', `${SERVICE}/3d/count?card=${token}`)).body['count']).toBeGreaterThan(0)
  })

  it.each([
    ['exactly one card', { card: `t${'0'.repeat(26)}` }, 'body.encrypted_card', 'field_conflict'],
    ['a first name of 22', { billing_first_name: 'x'.repeat(23) }, 'body.billing_first_name', 'field_length'],
    ['a city of 50', { billing_city: 'x'.repeat(51) }, 'body.billing_city', 'field_length'],
    ['a postal code of 16', { billing_postal_code: '1'.repeat(17) }, 'body.billing_postal_code', 'field_length'],
    ['a phone of 20', { billing_phone: '1'.repeat(21) }, 'body.billing_phone', 'field_format'],
    ['a window size of 01 to 05', { acs_window_size: '06' }, 'body.acs_window_size', 'field_value'],
    ['2 to 999 instalments', { installment: 1 }, 'body.installment', 'field_range'],
    ['an SDK time-out of 5 or more', { sdk_max_timeout: 4 }, 'body.sdk_max_timeout', 'field_range'],
    ['a currency', { currency_code: 'XAU' }, 'body.currency_code', 'field_value'],
    ['nothing else', { surprise: 1 }, 'body.surprise', 'field_unknown'],
    ['no security code', { cvv: '123' }, 'body.cvv', 'cvv_not_allowed'],
  ])('takes %s', async (_, more, field, code) => {
    const answer = await bundle.lookup(CARD.Y, more)
    expect(answer).toMatchObject({ status: 400, body: { code: '101', details: { [field]: { code } } } })
  })

  it.each([
    'amount',
    'billing_address_1',
    'billing_city',
    'billing_country_code',
    'billing_first_name',
    'billing_last_name',
    'currency_code',
    'device_info_id',
    'email',
    'merchant_reference',
    'threeds_contract_id',
  ])('without %s is 400', async field => {
    const answer = await bundle.lookup(CARD.Y, { [field]: undefined })
    expect(answer.body).toMatchObject({ code: '101', details: { [`body.${field}`]: { code: 'field_required' } } })
  })

  it('under a contract that isn’t, or is another entity’s, is 404 with number 203', async () => {
    const foreign = await bundle.addContract({ entityId: OTHER_ENTITY })
    for (const threeds_contract_id of [randomUUID(), foreign.contractId])
      expect(await bundle.lookup(CARD.Y, { threeds_contract_id })).toMatchObject({ status: 404, body: { code: '203' } })
  })

  it('of a brand without 3-D Secure is 400 with number 302, and writes nothing down', async () => {
    const before = (await bundle.call('GET', `${SERVICE}/3d/count`)).body
    expect(await bundle.lookup('1000000000000008')).toMatchObject({ status: 400, body: { code: '302' } })
    expect((await bundle.call('GET', `${SERVICE}/3d/count`)).body).toEqual(before)
  })
})

describe('the card of a lookup', () => {
  const NO_CARD = { status: 404, body: { code: '205', details: { 'body.reuse_token': { code: 'token_not_found' } } } }

  it('is another entity’s, deleted, or was never: one answer, 404 with number 205', async () => {
    const token = await bundle.tokenize('4111111111111111')
    const foreign = await bundle.installation.addClient('foreign', { entity: OTHER_ENTITY, roles: ALL_ROLES })
    const theirs = makeContract(bundle.simulator.url, { entityId: OTHER_ENTITY })
    const { store, ring } = bundle.installation.vault
    await contracts.insert(store, ring, theirs)
    await grantContract(store, ring, theirs)
    const body = { ...lookupBody(theirs.contractId, CARD.Y), reuse_token: token }
    const authorization = await basicOf(foreign.clientFile)
    expect(await bundle.call('POST', `${SERVICE}/lookup`, { body, authorization })).toMatchObject(NO_CARD)
    expect(await byToken('reuse_token', `t${'0'.repeat(26)}`)).toMatchObject(NO_CARD)
    expect(await byToken('reuse_token', token)).toMatchObject({ status: 200 })
    const client = await bundle.installation.connect()
    await client.call('token-lifecycle', { id: token, action: 'SUSPEND' })
    expect(await byToken('reuse_token', token)).toMatchObject({
      status: 400,
      body: { code: '301', details: { 'body.reuse_token': { code: 'token_suspended' } } },
    })
    await client.call('token-lifecycle', { id: token, action: 'DELETE' })
    expect(await byToken('reuse_token', token)).toMatchObject(NO_CARD)
  })

  it('is opened by JWE and by OpenPGP', async () => {
    const { pgp } = bundle.installation.credentials.captureKeys
    if (!pgp) throw new Error('the client has a key of each form')
    const content = { cardNumber: CARD.A, expiryMonth: 1, expiryYear: 2031, captureTime: new Date().toISOString() }
    const more = { encrypted_card: await encryptCard(content, pgp), public_key_alias: pgp.alias }
    expect(await bundle.lookup(CARD.Y, more)).toMatchObject({ status: 200, body: { pares_status: 'A' } })
  })

  it('is not opened by another entity’s key, after 15 minutes, or where it is none: 400 with number 301', async () => {
    const { credentials } = await bundle.installation.addClient('others key', { entity: OTHER_ENTITY })
    const wrong = async (more: Record<string, unknown>, field: string, code: string) =>
      expect(await bundle.lookup(CARD.Y, more)).toMatchObject({
        status: 400,
        body: { code: '301', details: { [field]: { code } } },
      })
    const own = bundle.installation.credentials
    const card = { cardNumber: CARD.Y, expiryMonth: 1, expiryYear: 2031 }
    await wrong(await encrypted(card, credentials), 'body.public_key_alias', 'alias_unknown')
    await wrong({ public_key_alias: 'nobody' }, 'body.public_key_alias', 'alias_unknown')
    const stale = { ...card, captureTime: new Date(Date.now() - 16 * 60_000).toISOString() }
    await wrong(await encrypted(stale, own), 'body.encrypted_card', 'capture_time_stale')
    await wrong({ encrypted_card: 'eyJ.x.y.z.q' }, 'body.encrypted_card', 'card_undecryptable')
    const misspelt = { ...card, cardNumber: '4000000000001001' }
    await wrong(await encrypted(misspelt, own), 'body.encrypted_card', 'pan_luhn')
  })

  it('stands neither in the reference nor in the idempotency key', async () => {
    const named = await bundle.lookup(CARD.Y, { merchant_reference: `order ${CARD.Y}` })
    expect(named.body).toMatchObject({
      code: '101',
      details: { 'body.merchant_reference': { code: 'reference_pan' } },
    })
    const keyed = await bundle.lookup(CARD.Y, {}, { headers: { 'idempotency-key': `x-${CARD.Y}` } })
    expect(keyed.body).toMatchObject({ code: '101', details: { 'params.idempotency-key': { code: 'jti_pan' } } })
    // Also the number of another card is refused.
    const other = await bundle.lookup(CARD.Y, {}, { headers: { 'x-vfi-api-idempotencykey': '5555555555554444' } })
    expect(other.body).toMatchObject({
      code: '101',
      details: { 'params.x-vfi-api-idempotencykey': { code: 'jti_pan' } },
    })
  })
})

describe('a repeat under one idempotency key', () => {
  const lookup = (key: string, body: unknown) =>
    bundle.call('POST', `${SERVICE}/lookup`, { body, headers: { 'idempotency-key': key } })
  const bodyOf = async (pan: string, more = {}) => {
    const { reuse_token: _, ...body } = lookupBody(bundle.contract.contractId, pan)
    const card = { cardNumber: pan, expiryMonth: 1, expiryYear: 2031 }
    return { ...body, ...(await encrypted(card, bundle.installation.credentials)), ...more }
  }

  it('is answered as the first, and authenticates once', async () => {
    const body = await bodyOf(CARD.Y)
    let key = ''
    // On a machine that stands still the directory server may be late: then another authentication is begun.
    const first = await until(async () => {
      key = `key-1-${randomUUID()}`
      const answer = await lookup(key, body)
      return answer.status === 200 && answer
    })
    expect(await lookup(key, body)).toMatchObject({ status: 200, body: first.body })
    expect(bundle.simulator.seen(String(first.body['transaction_id'])).requests).toBe(1)
  })

  it('with another request is 400 with number 103', async () => {
    const body = await bodyOf(CARD.Y)
    await lookup('key-2', body)
    expect(await lookup('key-2', { ...body, amount: 1 })).toMatchObject({ status: 400, body: { code: '103' } })
  })

  it('after a time-out is the same authentication: 504 with number 502 first, then the outcome', async () => {
    const body = await bodyOf(CARD.silence)
    const began = Date.now()
    expect(await lookup('key-3', body)).toMatchObject({ status: 504, body: { code: '502', details: {} } })
    expect(Date.now() - began).toBeLessThan(60_000)
    const { body: found } = await lookup('key-3', body)
    expect(found).toMatchObject({ pares_status: 'Y', error_no: '0' })
    expect(bundle.simulator.seen(String(found['transaction_id'])).requests).toBe(2)
    expect((await bundle.call('GET', `${SERVICE}/3d/count?transaction_id=${found['transaction_id']}`)).body).toEqual({
      count: 1,
    })
  })

  it('is 504 with number 503 while the first is under way', async () => {
    const body = await bodyOf('5200000000002326')
    const answers = await Promise.all([lookup('key-4', body), lookup('key-4', body)])
    expect(answers.map(({ status }) => status)).toEqual([504, 504])
    expect(answers.map(({ body: said }) => said['code']).sort()).toEqual(['502', '503'])
  })
})

describe('a directory server', () => {
  let deaf: Server
  let asked = 0
  beforeAll(async () => {
    deaf = createServer(() => {
      asked += 1
    })
    await new Promise<void>(resolve => deaf.listen(0, '127.0.0.1', resolve))
  })
  afterAll(() => {
    deaf.closeAllConnections()
    deaf.close()
  })
  const under = async (directoryUrl: string) => {
    const { contractId } = await bundle.addContract({ directoryUrl })
    return bundle.lookup(CARD.Y, { threeds_contract_id: contractId })
  }

  it('that never answers is asked once: 504 with number 502', async () => {
    const { port } = deaf.address() as AddressInfo
    expect(await under(`http://127.0.0.1:${port}/`)).toMatchObject({ status: 504, body: { code: '502' } })
    expect(asked).toBe(1)
  })

  it('that isn’t there, or may not be asked, is 504 with number 501', async () => {
    for (const url of ['http://127.0.0.1:1/', 'http://127.0.0.2:9/', 'https://10.0.0.1/'])
      expect(await under(url)).toMatchObject({ status: 504, body: { code: '501' } })
  })

  it('is asked by so many lookups at once as the setting allows, and the next is 429 with number 207', async () => {
    const { port } = deaf.address() as AddressInfo
    const narrow = await bundle.openAnother({ TOKENMILL_GATEWAY_INFLIGHT: '1' })
    const { contractId } = await bundle.addContract({ directoryUrl: `http://127.0.0.1:${port}/` })
    const card = { cardNumber: CARD.Y, expiryMonth: 1, expiryYear: 2031 }
    const { reuse_token: _, ...fields } = lookupBody(contractId, CARD.Y)
    const body = { ...fields, ...(await encrypted(card, bundle.installation.credentials)) }
    const answers = await Promise.all([1, 2].map(() => narrow.call('POST', `${SERVICE}/lookup`, { body })))
    expect(answers.map(({ status }) => status).sort()).toEqual([429, 504])
    expect(answers.find(({ status }) => status === 429)?.body).toMatchObject({ code: '207' })
    await narrow.close()
  })
})
