// The fast check of a card's source against the schema: what passes it passes the schema unchanged.
import fc from 'fast-check'
import { expect, it } from 'vitest'
import { isUsualOnFile, OnFileRecord, someText } from '../../src/job/on-file.ts'
import { couldLookLikeCard } from '../../src/token/pan-lookalike.ts'

const text = fc.oneof(
  fc.string({ maxLength: 140 }),
  fc.string({ unit: fc.constantFrom('a', 'Z', '0', '9', '.', '_', ' ', 'é', '\n', '１'), maxLength: 20 }),
  fc.constantFrom('', 'stripe', 'card_1NGTaT2eZvKYlo2CZWSctn5n', '4111111111111111', 'x'.repeat(64), 'x'.repeat(128)),
)
const usual = fc.constantFrom('stripe', 'card_1', 'cus_1', 'ANNA B.')
const odd = fc.oneof(text, fc.boolean(), fc.integer(), fc.constant(null), fc.constant([]), fc.constant({}))
const member = fc.oneof({ weight: 8, arbitrary: usual }, { weight: 1, arbitrary: odd }, { weight: 1, arbitrary: text })
const others = ['is_default', 'agreement', 'toString', 'cvv', 'first_amount', 'provider_account', 'cardholder_name']
const given = fc
  .tuple(
    fc.record({ provider: member, card_id: member, customer_id: member }, { requiredKeys: [] }),
    fc.dictionary(fc.constantFrom(...others), fc.oneof(member, fc.boolean()), { maxKeys: 2 }),
  )
  .map(([ids, more]) => ({ ...ids, ...more }))

it('what passes the fast check passes the schema unchanged, and holds nothing like a card number', () => {
  let passed = 0
  fc.assert(
    fc.property(given, one => {
      if (!isUsualOnFile(one)) return
      passed += 1
      expect(OnFileRecord.parse(one)).toEqual(one)
      expect(someText(one, couldLookLikeCard)).toBe(false)
    }),
    { numRuns: 20_000 },
  )
  expect(passed).toBeGreaterThan(20)
})

it('a usual source passes it', () => {
  const usual = {
    provider: 'stripe',
    customer_id: 'cus_1',
    card_id: 'card_1',
    cardholder_name: 'ANNA',
    is_default: true,
  }
  expect(isUsualOnFile(usual)).toBe(true)
  for (const wrong of [undefined, null, [], 'stripe', { provider: 'stripe' }, { card_id: 'c' }])
    expect(isUsualOnFile(wrong)).toBe(false)
  expect(isUsualOnFile(JSON.parse('{"provider":"stripe","card_id":"c","__proto__":"x"}'))).toBe(false)
})
