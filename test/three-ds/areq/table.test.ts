// For every accepted lookup, the AReq fits the table and the simulator's directory server accepts it. The simulator's
// rules follow the same standard and share no code.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { isRefusal } from '../../../src/errors.ts'
import { parse } from '../../../src/job/refusal.ts'
import { Secret } from '../../../src/secret.ts'
import { faultOf } from '../../../src/simulate/three-ds/members.ts'
import { missingFields, situationOf } from '../../../src/three-ds/areq/admission.ts'
import { areqOf } from '../../../src/three-ds/areq/areq.ts'
import { LookupRequest } from '../../../src/three-ds/areq/lookup-request.ts'
import { faultsOf, inclusionOf, MEMBERS, TABLE } from '../../../src/three-ds/areq/table.ts'
import { VERSIONS } from '../../../src/three-ds/messages.ts'
import { lookupBody, makeContract } from '../samples.ts'

const CONTRACT = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const CARDS = [
  ['4000000000001000', 'VISA'],
  ['5200000000002235', 'MASTERCARD'],
  ['6759649826438453', 'MAESTRO'],
  ['340000000001007', 'AMEX'],
] as const

const maybe = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: undefined })
const digits = (from: number, to: number) =>
  fc.integer({ min: from, max: to }).map(number => String(number).padStart(2, '0'))
const words = (maxLength: number) =>
  fc.string({ unit: 'binary', minLength: 1, maxLength }).map(text =>
    text
      .replace(/[\p{Cc}\u2028\u2029]/gu, 'ü')
      .slice(0, maxLength)
      .toWellFormed(),
  )
const country = maybe(fc.constantFrom('GB', 'US', 'FRA'))
const email = fc.constantFrom('a@b', '.a@example.com', 'sales&info@example.com', 'a..b@example.xn--p1ai')

/** Bodies whose fields are mostly well-formed, in arbitrary combinations. */
const lookups = fc.record({
  device_channel: maybe(fc.constantFrom('Browser', '3RI')),
  message_category: maybe(fc.constantFrom('01', '02')),
  authentication_indicator: maybe(digits(1, 6)),
  three_ri_indicator: maybe(digits(1, 11)),
  challenge_indicator: maybe(fc.constantFrom('01', '02', '03', '04', '90')),
  address_match: maybe(fc.constantFrom('Y', 'N')),
  installment: maybe(fc.integer({ min: 2, max: 999 })),
  recurring_frequency: maybe(fc.integer({ min: 1, max: 9_999 })),
  recurring_end: maybe(fc.constantFrom('2030-01-31', '20310131')),
  product_code: maybe(fc.constantFrom('PHY', 'QCT', 'DIG', '')),
  prior_authentication_data: maybe(fc.constantFrom('MDB1234', '')),
  prior_authentication_time: maybe(fc.constantFrom('202601020304', '2026-01-02T03:04:05Z', '')),
  prior_authentication_method: maybe(fc.constantFrom('02', 4)),
  billing_first_name: words(22),
  billing_last_name: words(22),
  billing_address_1: words(50),
  billing_state: maybe(fc.constantFrom('US-CA', 'CA', 'California')),
  shipping_state: maybe(fc.constantFrom('US-CA', 'CA', 'California')),
  shipping_country_code: country,
  shipping_city: maybe(words(50)),
  email,
  delivery_email: maybe(email),
  device_data_info: maybe(
    fc.record({
      browser_javascript_enabled: maybe(fc.boolean()),
      browser_java_enabled: maybe(fc.boolean()),
      browser_color_depth: maybe(fc.integer({ min: 1, max: 64 })),
      browser_screen_height: maybe(fc.integer({ min: 0, max: 9_999 })),
      browser_screen_width: maybe(fc.integer({ min: 0, max: 9_999 })),
      browser_time_zone: maybe(fc.integer({ min: -840, max: 840 })),
      user_agent: maybe(words(60)),
      browser_language: maybe(fc.constantFrom('de', 'zh-Hant-TW')),
    }),
  ),
})

const server = { url: 'https://tokens.example/rreq', refNumber: 'ref', operatorId: 'operator' }
const contract = makeContract('https://ds.example', { merchantName: 'Käse & Söhne 東京', requestorName: '東京' })

describe('an admitted lookup', () => {
  it('never makes an AReq that the table or the simulated directory server refuses, in any edition', () => {
    let admitted = 0
    fc.assert(
      fc.property(lookups, fc.constantFrom(...CARDS), fc.constantFrom(...VERSIONS), (more, [pan, network], version) => {
        const parsed = parse(LookupRequest, lookupBody(CONTRACT, pan, more), 'body')
        if (isRefusal(parsed) || missingFields(parsed.value, network, version).length > 0) return
        admitted += 1
        const request = parsed.value
        const card = { pan: new Secret(pan), expiryMonth: 1, expiryYear: 2031 }
        const asking = { transactionId: CONTRACT, request, contract, card, network, server, now: 1_700_000_000_000 }
        const areq = areqOf(asking, version).reveal()
        expect(faultsOf(areq, situationOf(request, network, version))).toEqual({ missing: [], surplus: [] })
        expect(faultOf(areq)).toBeUndefined()
      }),
      { numRuns: 3_000 },
    )
    expect(admitted).toBeGreaterThan(500)
  })
})

describe('the table of members', () => {
  const payment = { version: '2.2.0', channel: 'BRW', category: '01', authenticationInd: '01' } as const
  const bare = { hasScripts: false, hasBillingCountry: true, hasShippingCountry: false }

  it('has a cell for every member, edition, channel and category', () => {
    for (const version of VERSIONS)
      for (const member of MEMBERS)
        for (const channel of ['APP', 'BRW', '3RI'] as const)
          for (const category of ['01', '02'] as const) {
            expect(TABLE[version][member][channel][category]).toMatch(/^(required|conditional|optional|absent)$/)
            const situation = { ...bare, version, channel, category }
            expect(inclusionOf(member, situation)).toMatch(/^(required|optional|absent)$/)
          }
  })

  it('leaves out what has no place in a channel', () => {
    const inChannel = (channel: 'APP' | 'BRW' | '3RI') =>
      MEMBERS.filter(member => inclusionOf(member, { ...payment, ...bare, channel }) !== 'absent')
    const [app, browser, merchant] = [inChannel('APP'), inChannel('BRW'), inChannel('3RI')]
    expect(app.filter(member => member.startsWith('browser'))).toEqual([])
    expect(browser.filter(member => member.startsWith('sdk'))).toEqual([])
    expect(merchant.filter(member => /^(sdk|browser)/.test(member))).toEqual([])
    for (const member of ['addrMatch', 'threeDSRequestorChallengeInd', 'threeDSRequestorAuthenticationInd'] as const)
      expect([app, browser, merchant].map(found => found.includes(member))).toEqual([true, true, false])
    expect([app, browser, merchant].map(found => found.includes('threeRIInd'))).toEqual([false, false, true])
    expect([app, browser, merchant].map(found => found.includes('notificationURL'))).toEqual([false, true, false])
  })

  it('asks for money without a payment only of series and of the merchant’s own purchases', () => {
    const asks = (more: object) => inclusionOf('purchaseAmount', { ...payment, ...bare, category: '02', ...more })
    for (const authenticationInd of ['02', '03']) expect(asks({ authenticationInd })).toBe('required')
    for (const authenticationInd of ['01', '04', '05']) expect(asks({ authenticationInd })).toBe('absent')
    const merchant = { channel: '3RI', authenticationInd: undefined }
    for (const threeRIInd of ['01', '02', '06', '07', '08', '09', '11'])
      expect(asks({ ...merchant, threeRIInd })).toBe('required')
    for (const threeRIInd of ['03', '04', '05', '10']) expect(asks({ ...merchant, threeRIInd })).toBe('absent')
  })

  it('asks Mastercard’s 3RI payments alone for the authentication before', () => {
    const asks = (more: object) =>
      inclusionOf('threeDSRequestorPriorAuthenticationInfo', { ...payment, ...bare, channel: '3RI', ...more })
    for (const network of ['MASTERCARD', 'MAESTRO']) {
      expect(asks({ network })).toBe('required')
      expect(asks({ network, category: '02' })).toBe('optional')
      expect(asks({ network, channel: 'BRW' })).toBe('optional')
    }
    for (const network of ['VISA', 'AMEX', undefined]) expect(asks({ network })).toBe('optional')
  })

  it('tells what is missing and what is too much', () => {
    const situation = { ...payment, ...bare }
    const { missing, surplus } = faultsOf({ threeRIInd: '01', browserTZ: '0', nonsense: 1 }, situation)
    expect(missing).toContain('acctNumber')
    expect(surplus).toEqual(['threeRIInd', 'browserTZ', 'nonsense'])
  })
})
