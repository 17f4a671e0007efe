// Every brand from lookup to outcome over HTTP, against the simulator: without a challenge, attempted, refused, unknown,
// rejected, for information, and by a challenge, each with the authentication value that its network makes.

import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { CODE } from '../../../../src/simulate/three-ds/cards.ts'
import { challenge } from '../../../three-ds/bundle.ts'
import { lookupBody } from '../../../three-ds/samples.ts'
import { encrypted } from '../bundle.ts'
import { type HttpBundle, openHttpBundle, SERVICE } from './bundle.ts'

let bundle: HttpBundle
beforeAll(async () => {
  bundle = await openHttpBundle()
  await bundle.installation.openWorkers({ roles: ['interactive'] })
})
afterAll(() => bundle?.close())

/** 20 bytes with padding; Mastercard's SPA2 are 21 without. */
const PADDED = /^[A-Za-z0-9+/]{27}=$/
const SPA2 = /^k[A-Za-z0-9+/]{27}$/
const MOST = { Y: '05', A: '06', N: '07', U: '07', R: '07', I: '07' }
const MASTERCARD = { Y: '02', A: '01', N: '00', U: '00', R: '00', I: '06' }

const BRANDS = [
  { name: 'Visa', brand: 'VISA', pan: '4000000000001000', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'Mastercard', brand: 'MASTERCARD', pan: '5200000000002235', eci: MASTERCARD, value: SPA2, algorithm: '3' },
  { name: 'Maestro', brand: 'MAESTRO', pan: '6759649826438453', eci: MASTERCARD, value: SPA2, algorithm: '3' },
  { name: 'American Express', brand: 'AMEX', pan: '340000000001007', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'Diners', brand: 'DINERS', pan: '30569309025904', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'Discover', brand: 'DISCOVER', pan: '6011000000001002', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'JCB', brand: 'JCB', pan: '3530111333300000', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'UnionPay', brand: 'UPI', pan: '6200010000200000', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'CB on Visa', brand: 'CB', pan: '4000000000003006', eci: MOST, value: PADDED, algorithm: '2' },
  { name: 'CB on Mastercard', brand: 'CB', pan: '5200000000003001', eci: MASTERCARD, value: SPA2, algorithm: '3' },
] as const
type Case = (typeof BRANDS)[number]

const tokens = new Map<string, Promise<string>>()
/** The token of a test card, with the brand that the case names. */
function tokenOf({ pan, brand }: Case): Promise<string> {
  const known = tokens.get(pan)
  if (known) return known
  const { installation, shop } = bundle
  const made = encrypted({ cardNumber: pan, expiryMonth: 12, expiryYear: 2031 }, installation.credentials)
    .then(card => shop.call('token-create', { token_scope: installation.scope, card_brand: brand, ...card }))
    .then(({ record }) => String(record?.['reuse_token']))
  tokens.set(pan, made)
  return made
}

/** Makes a lookup. `wish`: the outcome that the names ask the simulator for. */
async function ask(one: Case, wish: string, more: Record<string, unknown> = {}) {
  const [first = '', ...words] = wish.split(' ')
  const names = { billing_first_name: `SIMULATE ${first}`, billing_last_name: words.join(' ') || '.' }
  const body = { ...lookupBody(bundle.contract.contractId, one.pan), ...names, ...more }
  const { status, body: answer } = await bundle.call('POST', `${SERVICE}/lookup`, {
    body: { ...body, reuse_token: await tokenOf(one) },
  })
  expect(status, JSON.stringify(answer)).toBe(200)
  return answer as Record<string, string>
}

const retrieve = async ({ authentication_id: id }: Record<string, string>) =>
  (await bundle.call('GET', `${SERVICE}/3d/${id}`)).body['authentication'] as Record<string, string>

/** The liability in the event for the client, which is written in the transaction that ends the authentication. */
async function liabilityOf({ authentication_id: id }: Record<string, string>): Promise<unknown> {
  const { rows } = await bundle.installation.vault.store.query<{ body: string }>({
    text: 'select body from tokenmill.outbox where body like $1',
    values: [`%"authentication_id":"${id}"%`],
  })
  expect(rows).toHaveLength(1)
  return (JSON.parse(rows[0]?.body ?? '{}') as { data?: { liability?: string } }).data?.liability
}

describe.each(BRANDS)('an authentication with $name', one => {
  it.each(['Y', 'A'] as const)('is %s with its ECI and its value, at the issuer’s liability', async outcome => {
    const answer = await ask(one, outcome)
    expect(answer).toMatchObject({
      pares_status: outcome,
      eci_flag: one.eci[outcome],
      cavv: expect.stringMatching(one.value),
      cavv_algorithm: one.algorithm,
      card_brand: one.brand,
      error_no: '0',
      enrolled: 'Y',
    })
    expect(await retrieve(answer)).toMatchObject({ pares_status: outcome, cavv: answer['cavv'] })
    expect(await liabilityOf(answer)).toBe('ISSUER')
  })

  it.each([
    ['N', 'N'],
    ['U', 'U'],
    ['R', 'R'],
    ['I', 'U'],
  ] as const)('that is answered %s is %s, at the merchant’s liability', async (sent, outcome) => {
    const answer = await ask(one, sent)
    expect(answer).toMatchObject({ pares_status: outcome, eci_flag: one.eci[sent], error_no: '0' })
    expect(answer).not.toHaveProperty('cavv')
    expect(await liabilityOf(answer)).toBe('MERCHANT')
  })

  it('by a challenge is Y by its result', async () => {
    const answer = await ask(one, 'C-Y')
    expect(answer).toMatchObject({ pares_status: 'C', challenge_required: 'Y' })
    await challenge(answer, { code: CODE })
    const record = await retrieve(answer)
    expect(record).toMatchObject({ pares_status: 'Y', eci_flag: one.eci.Y, cavv: expect.stringMatching(one.value) })
    expect(await liabilityOf(answer)).toBe('ISSUER')
  })
})

const [VISA, MC, , , , , , , CB] = BRANDS

describe('what networks rarely send', () => {
  it.each([
    ['Mastercard’s data only', 'U reason=80', { pares_status: 'U', eci_flag: '04', cavv: expect.stringMatching(SPA2) }],
    ['Mastercard’s old form', 'Y value=spa1', { pares_status: 'Y', cavv: expect.stringMatching(/^j.{26}=$/) }],
    ['no value', 'Y value=none', { pares_status: 'Y', eci_flag: '02' }],
    ['a value in hex', 'A value=hex', { pares_status: 'A', cavv: expect.stringMatching(/^[0-9a-f]{40}$/) }],
    ['4,000 characters', 'I value=long', { pares_status: 'U', cavv: expect.stringMatching(/^.{4000}$/) }],
    ['a value that is none', 'N value=odd', { pares_status: 'N', cavv: '!' }],
    ['a value of a refusal', 'R value=network', { pares_status: 'R', cavv: expect.stringMatching(SPA2) }],
    ['no ECI', 'Y eci=none', { pares_status: 'Y', eci_flag: '02' }],
    ['an ECI of its own', 'Y eci=N2', { pares_status: 'Y', eci_flag: 'N2' }],
    ['a type of its own', 'Y type=92', { pares_status: 'Y', authentication_type: '92' }],
  ])('is taken as it comes: %s', async (_, wish, expected) => {
    const answer = await ask(MC, wish)
    expect(answer).toMatchObject({ error_no: '0', ...expected })
    expect(await retrieve(answer)).toMatchObject(expected)
  })

  it.each([
    ['A', 'C-A eci=07 value=hex', { pares_status: 'A', eci_flag: '07', cavv: expect.stringMatching(/^[0-9a-f]{40}$/) }],
    ['R', 'C-R cancel=10', { pares_status: 'R', eci_flag: '00', challenge_cancel: '10' }],
    ['N', 'C-N value=long', { pares_status: 'N', cavv: expect.stringMatching(/^.{4000}$/) }],
    ['U', 'C-U cancel=85', { pares_status: 'U', challenge_cancel: '85' }],
    ['Y without a value', 'C-Y value=none', { pares_status: 'Y', eci_flag: '02' }],
  ])('ends a challenge as the result says: %s', async (_, wish, expected) => {
    const answer = await ask(MC, wish)
    await challenge(answer, { code: CODE })
    expect(await retrieve(answer)).toMatchObject(expected)
  })

  it('without a payment has N2 and N0 with Mastercard, and nobody’s liability', async () => {
    for (const [wish, eci] of [
      ['Y', 'N2'],
      ['N', 'N0'],
    ] as const) {
      const answer = await ask(MC, wish, { message_category: '02' })
      expect(answer).toMatchObject({ pares_status: wish, eci_flag: eci })
      expect(await liabilityOf(answer)).toBeUndefined()
    }
  })

  it('leaves liability with the merchant for Visa’s Y with 07, and for any outcome without a value', async () => {
    expect(await liabilityOf(await ask(VISA, 'Y eci=07'))).toBe('MERCHANT')
    expect(await liabilityOf(await ask(VISA, 'A value=none'))).toBe('MERCHANT')
  })

  it('leaves it with the merchant who asked Cartes Bancaires for no challenge, unless there was one', async () => {
    const none = { challenge_indicator: '02' }
    expect(await liabilityOf(await ask(CB, 'Y', none))).toBe('MERCHANT')
    expect(await liabilityOf(await ask(VISA, 'Y', none))).toBe('ISSUER')
    const challenged = await ask(CB, 'C-Y', none)
    await challenge(challenged, { code: CODE })
    expect(await liabilityOf(challenged)).toBe('ISSUER')
  })
})

describe('a request that the directory server would refuse', () => {
  const refused = (pan: string, more: Record<string, unknown>) => bundle.lookup(pan, more)
  const merchant = { device_channel: '3RI', three_ri_indicator: '11' }
  const prior = { prior_authentication_data: 'MDB1234', prior_authentication_time: '202601020304' }

  it.each([
    ['Mastercard', '5200000000002235'],
    ['Maestro', '6759649826438453'],
  ])('is 400 for a payment of the merchant’s with %s that names no authentication before', async (_, pan) => {
    expect(await refused(pan, merchant)).toMatchObject({
      status: 400,
      body: {
        code: '101',
        details: {
          'body.prior_authentication_data': { code: 'field_required' },
          'body.prior_authentication_time': { code: 'field_required' },
        },
      },
    })
    expect(await refused(pan, { ...merchant, ...prior })).toMatchObject({ status: 200, body: { pares_status: 'Y' } })
    expect(await refused(pan, { ...merchant, message_category: '02' })).toMatchObject({ status: 200 })
  })

  it('is none with another network', async () => {
    expect(await refused(VISA.pan, merchant)).toMatchObject({ status: 200, body: { pares_status: 'Y' } })
  })

  it('is 400 for a card number of 12 digits, and nothing is written down', async () => {
    const before = (await bundle.call('GET', `${SERVICE}/3d/count`)).body
    expect(await refused('675970000005', {})).toMatchObject({
      status: 400,
      body: { code: '301', details: { 'body.encrypted_card': { code: 'three_ds_pan_length' } } },
    })
    expect((await bundle.call('GET', `${SERVICE}/3d/count`)).body).toEqual(before)
  })

  it('is none for names in any script, odd addresses, and a screen of 30 bits', async () => {
    const device_data_info = {
      browser_java_enabled: false,
      browser_color_depth: 30,
      browser_screen_height: 600,
      browser_screen_width: 800,
      browser_time_zone: 0,
    }
    for (const more of [
      { billing_last_name: 'Müller-Łódź' },
      { billing_last_name: '東京', billing_city: '東京' },
      { email: 'a..b@example.com' },
      { email: 'a@b' },
      { shipping_state: 'US-CA' },
      { device_data_info },
    ])
      expect(await refused(VISA.pan, more), JSON.stringify(more)).toMatchObject({
        status: 200,
        body: { pares_status: 'Y', error_no: '0' },
      })
  })
})
