import { describe, expect, it } from 'vitest'
import { isRefusal } from '../../src/errors.ts'
import { parse } from '../../src/job/refusal.ts'
import { Secret } from '../../src/secret.ts'
import { areqOf } from '../../src/three-ds/areq/areq.ts'
import { LookupRequest } from '../../src/three-ds/lookup-request.ts'
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
    ['email', ['a@example.com'], ['a', 'a@']],
    ['recurring_end', ['2030-01-31', '20300131'], ['2030-02-30', '310130']],
    ['purchase_date', ['2026-01-02T03:04:05Z', '20260102030405', '2026-01-02'], ['yesterday']],
    ['merchant_reference', ['x'.repeat(50)], ['x'.repeat(51), '', 'a\nb']],
  ] as const)('holds %s to its values', (field, good, bad) => {
    for (const value of good) expect(wrong({ [field]: value }), String(value)).toEqual({})
    for (const value of bad) expect(Object.keys(wrong({ [field]: value })), String(value)).toEqual([field])
  })

  it('of 3RI says why, and a series of payments says until when', () => {
    expect(wrong({ device_channel: '3RI' })).toEqual({ three_ri_indicator: 'field_required' })
    expect(wrong({ device_channel: '3RI', three_ri_indicator: '01' })).toEqual({})
    expect(wrong({ authentication_indicator: '02' })).toEqual({
      recurring_end: 'field_required',
      recurring_frequency: 'field_required',
    })
    const series = { authentication_indicator: '03', recurring_end: '20300131', recurring_frequency: 30 }
    expect(wrong(series)).toEqual({ installment: 'field_required' })
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
    expect(areq({ billing_state: 'US-CA', shipping_state: 'tx' }).reveal()).toMatchObject({
      billAddrState: 'CA',
      shipAddrState: 'TX',
    })
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
