import { describe, expect, it } from 'vitest'
import { isRefusal } from '../../src/errors.ts'
import { parse } from '../../src/job/refusal.ts'
import { Secret } from '../../src/secret.ts'
import { areqOf } from '../../src/three-ds/areq/areq.ts'
import { LookupRequest } from '../../src/three-ds/areq/lookup-request.ts'
import { bodyOf, ERRORS, problem } from '../../src/three-ds/problem.ts'
import { lookupBody, makeContract } from './samples.ts'

const CONTRACT = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const body = (more: Record<string, unknown> = {}) => lookupBody(CONTRACT, '4000000000001000', more)

/** Field → reason, without the prefix. */
function wrong(more: Record<string, unknown>): Record<string, string> {
  const parsed = parse(LookupRequest, body(more), 'body')
  if (!isRefusal(parsed)) return {}
  return Object.fromEntries(
    [parsed, ...(parsed.also ?? [])].map(({ field, reason }) => [field.replace(/^body\./, ''), reason]),
  )
}

const REQUIRED = [
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
]

/** By the HTML standard. */
const EMAILS = {
  valid: [
    ...['a@example.com', 'sales&info@example.com', 'user=x@example.com', 'first/last@example.com'],
    ...['user@example.xn--p1ai', 'a@b', '.a..b.@example.com', `${'a'.repeat(248)}@b.com`],
  ],
  invalid: ['a', 'a@', '@b', 'a b@example.com', 'a@-b', 'ü@example.com', `${'a'.repeat(249)}@b.com`],
}

describe('a lookup', () => {
  it('with all that is required and one card is taken', () => {
    expect(wrong({})).toEqual({})
  })

  it.each(REQUIRED)('without %s is refused', field => {
    expect(wrong({ [field]: undefined })).toEqual({ [field]: 'field_required' })
  })

  it('names exactly one card', () => {
    expect(wrong({ reuse_token: undefined })).toEqual({ card: 'field_required' })
    expect(wrong({ card: 't4000000000001000' })).toEqual({ reuse_token: 'field_conflict' })
    expect(wrong({ encrypted_card: 'abc', public_key_alias: 'k' })).toEqual({ reuse_token: 'field_conflict' })
    expect(wrong({ reuse_token: undefined, encrypted_card: 'abc' })).toEqual({ public_key_alias: 'field_required' })
    expect(wrong({ reuse_token: undefined, encrypted_card: 'abc', public_key_alias: 'k' })).toEqual({})
    expect(wrong({ public_key_alias: 'k' })).toEqual({ public_key_alias: 'field_conflict' })
  })

  it.each([
    ['billing_first_name', 22],
    ['billing_last_name', 22],
    ['shipping_first_name', 22],
    ['billing_address_1', 50],
    ['billing_address_2', 50],
    ['billing_city', 50],
    ['billing_state', 50],
    ['shipping_city', 50],
    ['billing_postal_code', 16],
    ['shipping_postal_code', 16],
  ] as const)('takes %s of %i characters and not of one more', (field, most) => {
    expect(wrong({ [field]: 'x'.repeat(most) })).toEqual({})
    expect(wrong({ [field]: 'x'.repeat(most + 1) })).toEqual({ [field]: 'field_length' })
  })

  it('takes a phone of 20 characters and not of one more', () => {
    expect(wrong({ billing_phone: '1'.repeat(20) })).toEqual({})
    expect(wrong({ billing_phone: '1'.repeat(21) })).toEqual({ billing_phone: 'field_format' })
  })

  it.each([
    ['acs_window_size', ['01', '05'], ['00', '06', '5']],
    ['address_match', ['Y', 'N'], ['y', '']],
    ['authentication_indicator', ['01', '04', '06'], ['00', '07']],
    ['challenge_indicator', ['01', '04', '90'], ['05', '89']],
    ['device_channel', ['Browser'], ['browser', 'APP', 'SDK']],
    ['message_category', ['01', '02'], ['03']],
    ['sdk_max_timeout', [5, 15, 99], [4, 100, '15']],
    ['three_ri_indicator', ['01', '11'], ['00', '12']],
    ['installment', [2, 999], [1, 1000, 2.5]],
    ['recurring_frequency', [1, 9999], [0]],
    ['amount', [0, 999_999_999_999], [-1, 1.5, '10', 1e12]],
    ['currency_code', ['EUR', 'JPY', 'XCG'], ['eur', 'XAU', 'FRF', '978']],
    ['billing_country_code', ['GB', 'GBR'], ['UK', 'gb', '826']],
    ['email', EMAILS.valid, EMAILS.invalid],
    ['delivery_email', EMAILS.valid, EMAILS.invalid],
    ['recurring_end', ['2030-01-31', '20300131'], ['2030-02-30', '310130']],
    ['purchase_date', ['2026-01-02T03:04:05Z', '20260102030405', '2026-01-02'], ['yesterday']],
    ['merchant_reference', ['x'.repeat(50)], ['x'.repeat(51), '', 'a\nb']],
  ] as const)('holds %s to its values', (field, good, bad) => {
    for (const value of good) expect(wrong({ [field]: value }), String(value)).toEqual({})
    for (const value of bad) expect(Object.keys(wrong({ [field]: value })), String(value)).toEqual([field])
  })

  it('of 3RI says why', () => {
    expect(wrong({ device_channel: '3RI' })).toEqual({ three_ri_indicator: 'field_required' })
    expect(wrong({ device_channel: '3RI', three_ri_indicator: '11' })).toEqual({})
  })

  it('of a series says how often, and of instalments how many', () => {
    const often = { recurring_frequency: 'field_required' }
    const many = { installment: 'field_required' }
    const merchant = (three_ri_indicator: string) => ({ device_channel: '3RI', three_ri_indicator })
    expect(wrong({ authentication_indicator: '02' })).toEqual(often)
    expect(wrong({ authentication_indicator: '03' })).toEqual({ ...often, ...many })
    expect(wrong(merchant('01'))).toEqual(often)
    expect(wrong(merchant('02'))).toEqual({ ...often, ...many })
    // In 3RI the indicator of a request by the cardholder isn't used.
    expect(wrong({ ...merchant('11'), authentication_indicator: '03' })).toEqual({})
    expect(wrong({ ...merchant('02'), recurring_frequency: 30, installment: 6 })).toEqual({})
  })

  it('holds what it says of an earlier authentication to its form, and takes empty texts as nothing', () => {
    const prior = {
      prior_authentication_data: 'MDB1234',
      prior_authentication_method: '02',
      prior_authentication_ref: CONTRACT,
      prior_authentication_time: '202601020304',
    }
    expect(wrong(prior)).toEqual({})
    expect(wrong(Object.fromEntries(Object.keys(prior).map(field => [field, ''])))).toEqual({})
    for (const time of ['20260102030405', '2026-01-02T03:04:05Z', 202601020304])
      expect(wrong({ ...prior, prior_authentication_time: time }), String(time)).toEqual({})
    for (const [field, value, reason] of [
      ['prior_authentication_data', 'é', 'field_format'],
      ['prior_authentication_method', 'x', 'field_format'],
      ['prior_authentication_ref', 'short', 'field_length'],
      ['prior_authentication_time', 'yesterday', 'field_format'],
      ['prior_authentication_time', '202602300000', 'field_format'],
    ] as const)
      expect(wrong({ ...prior, [field]: value })).toEqual({ [field]: reason })
  })

  it('takes whatever color depth a browser reports', () => {
    for (const depth of [1, 24, 30, '30', 64])
      expect(wrong({ device_data_info: { browser_color_depth: depth } }), String(depth)).toEqual({})
    for (const depth of [0, -1, 1.5, 'many', 1000])
      expect(Object.keys(wrong({ device_data_info: { browser_color_depth: depth } })), String(depth)).toHaveLength(1)
  })

  it('refuses what it does not know, and passes over what others make something of', () => {
    expect(wrong({ cardNumber: '4000000000001000' })).toEqual({ cardNumber: 'field_unknown' })
    expect(wrong({ device_data_info: { browser: 'x' } })).toEqual({ 'device_data_info.browser': 'field_unknown' })
    expect(wrong({ merchant_score: '10', transaction_mode: 'S', total_items: '2' })).toEqual({})
  })
})

describe('an AReq', () => {
  const areq = (more: Record<string, unknown> = {}) => {
    const parsed = parse(LookupRequest, body(more), 'body')
    if (isRefusal(parsed)) throw new Error(parsed.field)
    return areqOf({
      transactionId: 'id',
      request: parsed.value,
      contract: makeContract('https://ds.example'),
      card: { pan: new Secret('4000000000001000'), expiryMonth: 1, expiryYear: 2031 },
      network: 'VISA',
      server: { url: 'https://tokens.example/rreq', refNumber: 'ref', operatorId: 'operator' },
      now: Date.UTC(2026, 0, 2, 3, 4, 5),
    })
  }

  it('shows nothing of the card to a log', () => {
    expect(JSON.stringify({ areq: areq() })).not.toContain('4000000000001000')
  })

  it('names money and countries by ISO number, and times in UTC', () => {
    expect(areq({ currency_code: 'JPY', billing_country_code: 'FRA' }).reveal()).toMatchObject({
      purchaseAmount: '1000',
      purchaseCurrency: '392',
      purchaseExponent: '0',
      purchaseDate: '20260102030405',
      billAddrCountry: '250',
      merchantCountryCode: '826',
      cardExpiryDate: '3101',
    })
  })

  it('has the code of a state, without its country, and no name of one', () => {
    const address = { billing_state: 'US-CA', shipping_state: 'tx', shipping_country_code: 'US' }
    expect(areq(address).reveal()).toMatchObject({ billAddrState: 'CA', shipAddrState: 'TX', shipAddrCountry: '840' })
    expect(areq({ shipping_state: 'tx' }).reveal()).not.toHaveProperty('shipAddrState')
    const named = areq({ billing_state: 'California', shipping_state: 'US-CALI' }).reveal()
    expect(named).not.toHaveProperty('billAddrState')
    expect(named).not.toHaveProperty('shipAddrState')
  })

  it('says that a browser has no script where what goes with scripts is not known', () => {
    expect(areq().reveal()).toMatchObject({ deviceChannel: '02', browserJavascriptEnabled: false })
    expect(areq().reveal()).not.toHaveProperty('browserTZ')
    const device_data_info = {
      browser_java_enabled: 'false',
      browser_color_depth: 24,
      browser_screen_height: '600',
      browser_screen_width: 800,
      browser_time_zone: -60,
    }
    expect(areq({ device_data_info }).reveal()).toMatchObject({
      browserJavascriptEnabled: true,
      browserJavaEnabled: false,
      browserColorDepth: '24',
      browserTZ: '-60',
    })
  })

  it.each([
    [30, '24'],
    [31, '24'],
    [64, '48'],
    [2, '1'],
    [47, '32'],
    [15, '15'],
  ])('says for a color depth of %i the next lower of the list, %s', (browser_color_depth, sent) => {
    const device_data_info = {
      browser_java_enabled: false,
      browser_color_depth,
      browser_screen_height: 1,
      browser_screen_width: 1,
      browser_time_zone: 0,
    }
    expect(areq({ device_data_info }).reveal()).toMatchObject({ browserColorDepth: sent })
  })

  it('leaves an address out that is no dot-atom, and sends every other one', () => {
    for (const email of ['.a@example.com', 'a.@example.com', 'a..b@example.com']) {
      const sent = areq({ email, delivery_email: email }).reveal()
      expect(sent).not.toHaveProperty('email')
      expect(sent).not.toHaveProperty('merchantRiskIndicator')
    }
    for (const email of ['sales&info@example.com', 'a.b@c', 'user=x@example.xn--p1ai', '^`@example.com'])
      expect(areq({ email }).reveal()).toMatchObject({ email })
  })

  it('writes what is no ASCII as a bank would', () => {
    const sent = areq({
      billing_first_name: 'Jürgen',
      billing_last_name: 'O’Åß',
      billing_address_1: 'Łódźer Straße 5`',
      billing_city: 'Ελλάδα',
    }).reveal()
    expect(sent).toMatchObject({
      cardholderName: "Juergen O'Ass",
      billAddrLine1: 'Lodzer Strasse 5`',
      billAddrCity: 'Ellada',
    })
  })

  it('leaves a name out that can not be written in ASCII, or would be too short', () => {
    expect(areq({ billing_last_name: '東京', billing_address_1: '東京' }).reveal()).not.toHaveProperty('cardholderName')
    expect(areq({ billing_address_1: '東京' }).reveal()).not.toHaveProperty('billAddrLine1')
    expect(areq({ billing_first_name: ' ', billing_last_name: 'A' }).reveal()).not.toHaveProperty('cardholderName')
    expect(areq({ device_data_info: { user_agent: 'a 東 b' } }).reveal()).toMatchObject({ browserUserAgent: 'a ? b' })
  })

  it('is no longer after it was transliterated than the standard has it', () => {
    const sent = areq({ billing_first_name: 'ü'.repeat(22), billing_last_name: 'ö'.repeat(22) }).reveal()
    expect(sent).toMatchObject({ cardholderName: 'ue'.repeat(22) })
  })

  it.each([
    ['PHY', '01'],
    ['CHA', '03'],
    ['ACF', '10'],
    ['QCT', '11'],
    ['PAL', '28'],
    [undefined, '01'],
    ['DIG', '01'],
  ])('of product code %s has transType %s, and none without a payment', (product_code, transType) => {
    expect(areq({ product_code }).reveal()).toMatchObject({ transType })
    expect(areq({ product_code, message_category: '02' }).reveal()).not.toHaveProperty('transType')
  })

  it('of a series has its end, or the standard’s word for none', () => {
    const series = { authentication_indicator: '02', recurring_frequency: 30, installment: 6 }
    expect(areq(series).reveal()).toMatchObject({ recurringExpiry: '99991231', recurringFrequency: '30' })
    // Instalments are another kind of series.
    expect(areq(series).reveal()).not.toHaveProperty('purchaseInstalData')
    const agreed = areq({ ...series, authentication_indicator: '03', recurring_end: '2030-01-31' }).reveal()
    expect(agreed).toMatchObject({ recurringExpiry: '20300131', purchaseInstalData: '6' })
    expect(areq({ recurring_frequency: 30, recurring_end: '20300131' }).reveal()).not.toHaveProperty('recurringExpiry')
  })

  it('names the authentication before it', () => {
    const sent = areq({
      device_channel: '3RI',
      three_ri_indicator: '11',
      prior_authentication_data: 'MDB1234',
      prior_authentication_method: 2,
      prior_authentication_time: '2026-01-02T04:04:05+01:00',
    }).reveal()
    expect(sent['threeDSRequestorPriorAuthenticationInfo']).toEqual({
      threeDSReqPriorAuthData: 'MDB1234',
      threeDSReqPriorAuthMethod: '02',
      threeDSReqPriorAuthTimestamp: '202601020304',
    })
  })
})

describe('an error', () => {
  it('has three digits, a status of this service and no reversal_status', () => {
    for (const [no, { status }] of Object.entries(ERRORS)) {
      expect(no).toMatch(/^\d{3}$/)
      expect([400, 401, 403, 404, 429, 500, 504]).toContain(status)
    }
    const { status, body: shown } = bodyOf(
      problem(203, { field: 'body.threeds_contract_id', reason: 'field_value' }),
      5,
    )
    expect(status).toBe(404)
    expect(Object.keys(shown).sort()).toEqual(['code', 'details', 'message', 'timestamp'])
    expect(shown).toMatchObject({ code: '203', timestamp: 5 })
  })
})
