// The fast check of a card's source against the schema: what passes it passes the schema unchanged.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { OnFileRecord, readUsualOnFile, textsIn } from '../../src/job/on-file.ts'
import { AGREED_BY, AGREEMENTS } from '../../src/token/on-file.ts'
import { couldLookLikeCard } from '../../src/token/pan-lookalike.ts'

const text = fc.oneof(
  fc.string({ maxLength: 140 }),
  fc.string({ unit: fc.constantFrom('a', 'Z', '0', '9', '.', '_', ' ', 'é', '\n', '１'), maxLength: 20 }),
  fc.constantFrom('', 'stripe', 'card_1NGTaT2eZvKYlo2CZWSctn5n', '4111111111111111', 'x'.repeat(64), 'x'.repeat(128)),
)
const usual = fc.constantFrom('stripe', 'card_1', 'cus_1', 'ANNA B.')
const odd = fc.oneof(text, fc.boolean(), fc.integer(), fc.constant(null), fc.constant([]), fc.constant({}))
const member = fc.oneof({ weight: 8, arbitrary: usual }, { weight: 1, arbitrary: odd }, { weight: 1, arbitrary: text })
const ids = fc.constantFrom('MCC1234567890', '123456789012345', '5'.repeat(64), '５５５５５５５５５５５５', 'é')
const address = fc.record(
  {
    line1: member,
    postal_code: fc.oneof(usual, text),
    city: fc.oneof(usual, ids),
    country: fc.constantFrom('GB', 'gb', 'GBR'),
    street: usual,
  },
  { requiredKeys: [] },
)
const others = {
  is_default: fc.oneof(fc.boolean(), member),
  agreement: fc.constantFrom('RECURRING', 'recurring', 'UNSCHEDULED', 7),
  agreed_by: fc.constantFrom('CUSTOMER', 'MERCHANT', ''),
  agreed_on: fc.constantFrom('2026-02-28', '2026-02-30', '2026-2-1', 1),
  first_date: fc.constantFrom('2024-02-29', '2023-02-29', '20240229'),
  first_amount: fc.constantFrom(0, 1250, 99_999_999_999, 100_000_000_000, -1, 1.5, '1'),
  first_currency: fc.constantFrom('EUR', 'eur', 'EURO'),
  network_transaction_id: fc.oneof(ids, member),
  network_transaction_ids: fc.oneof(fc.array(fc.oneof(ids, member), { maxLength: 3 }), member),
  transaction_link_id: fc.oneof(ids, member),
  provider_account: member,
  cardholder_name: member,
  billing_address: fc.oneof(address, member),
  toString: member,
  cvv: member,
}
const names = Object.keys(others) as (keyof typeof others)[]
const given = fc
  .tuple(
    fc.record({ provider: member, card_id: member, customer_id: member }, { requiredKeys: [] }),
    fc
      .subarray(names, { maxLength: 3 })
      .chain(some => fc.record(Object.fromEntries(some.map(name => [name, others[name]])))),
  )
  .map(([ids, more]) => ({ ...ids, ...more }))

it('what passes the fast check passes the schema unchanged, and the texts with a number are named', () => {
  const passed = { withNumber: 0, without: 0 }
  fc.assert(
    fc.property(given, one => {
      const usual = readUsualOnFile(one)
      if (!usual) return
      const numbers = [...usual.numbers, ...usual.addressNumbers]
      passed[numbers.length > 0 ? 'withNumber' : 'without'] += 1
      expect(OnFileRecord.parse(one)).toEqual(one)
      expect(usual.onFile).toBe(one)
      const likely = textsIn(one).filter(couldLookLikeCard)
      expect(numbers).toEqual(expect.arrayContaining(likely))
      expect(usual.addressNumbers.every(text => textsIn(usual.onFile.billing_address).includes(text))).toBe(true)
    }),
    { numRuns: 20_000 },
  )
  expect(passed.withNumber).toBeGreaterThan(20)
  expect(passed.without).toBeGreaterThan(20)
})

it('what has the schema’s form passes it but for rare forms: each member of the schema does', () => {
  const whole = {
    provider: 'stripe',
    provider_account: 'acct_1',
    customer_id: 'cus_1',
    card_id: 'card_1',
    cardholder_name: 'Ánna Meyér',
    network_transaction_ids: ['123456789012345'],
    network_transaction_id: 'MCC1234567890',
    transaction_link_id: 'abc',
    first_amount: 1250,
    first_currency: 'EUR',
    first_date: '2024-02-29',
    agreement: AGREEMENTS[0],
    agreed_by: AGREED_BY[0],
    agreed_on: '2024-02-29',
    is_default: false,
    billing_address: {
      line1: '1 Hauptstraße',
      line2: 'x',
      city: 'Köln',
      state: 'NW',
      postal_code: '50667',
      country: 'DE',
    },
  }
  expect(Object.keys(whole).sort()).toEqual(Object.keys(OnFileRecord.shape).sort())
  const numbers = ['123456789012345']
  expect(readUsualOnFile(whole)).toEqual({ onFile: whole, numbers, addressNumbers: [] })
  const inAddress = { ...whole, billing_address: { ...whole.billing_address, line2: '1234 5678 9012' } }
  expect(readUsualOnFile(inAddress)).toEqual({ onFile: inAddress, numbers, addressNumbers: ['1234 5678 9012'] })
})

it('a usual source passes it', () => {
  const usual = {
    provider: 'stripe',
    customer_id: 'cus_1',
    card_id: 'card_1',
    cardholder_name: 'ANNA',
    is_default: true,
  }
  expect(readUsualOnFile(usual)).toEqual({ onFile: usual, numbers: [], addressNumbers: [] })
  for (const wrong of [undefined, null, [], 'stripe', { provider: 'stripe' }, { card_id: 'c' }])
    expect(readUsualOnFile(wrong)).toBeUndefined()
  expect(readUsualOnFile(JSON.parse('{"provider":"stripe","card_id":"c","__proto__":"x"}'))).toBeUndefined()
})
