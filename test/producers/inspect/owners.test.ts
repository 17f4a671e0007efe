// What `inspect` says of the owners of cards: exact counts, whatever the order of the rows.
import { expect, it } from 'vitest'
import { inspect } from '../../../producers/inspect/inspect.ts'
import { parseProfile } from '../../../producers/rows/profile/profile.ts'
import { testPan } from '../../support/test-pan.ts'

const PROFILE = {
  profile: 1,
  name: 'shop',
  title: 'A shop',
  format: { type: 'delimited' },
  columns: { reference: '{card}', card_number: { from: 'number' }, expiry: { from: 'valid', form: 'MM/YY' } },
  on_file: {
    provider: 'shop',
    customer_id: '{customer}',
    card_id: '{card}',
    network_transaction_ids: { from: 'nti' },
    transaction_link_id: { from: 'tlid' },
  },
}
const TLID = 'AbCdEfGhIjKlMnOpQrStU-'

const owners = async (
  rows: readonly (readonly [string, string, number, string, string])[],
  profile: object = PROFILE,
) => {
  const lines = rows.map(([customer, card, n, ...ids]) => [customer, card, testPan(n), '12/30', ...ids].join(','))
  async function* bytes() {
    yield Buffer.from(['customer,card,number,valid,nti,tlid', ...lines, ''].join('\n'))
  }
  const given = parseProfile('shop.json', JSON.stringify(profile))
  return (await inspect(bytes(), { profile: given, at: Date.parse('2026-01-01') })).cards?.owners
}

it('counts owners, customers, shared cards and what travels with them', async () => {
  expect(
    await owners([
      ['cus_1', 'card_1', 1, '016', TLID],
      ['cus_1', 'card_2', 2, '', 'unusual'],
      ['cus_2', 'card_3', 1, '017', ''],
      ['', 'card_4', 1, '', ''],
      ['cus_3', '', 5, '', ''],
      ['cus_1', 'card_2', 3, '', ''],
      ['cus_2', 'card_3', 1, '', ''],
    ]),
  ).toEqual({
    rows: 6,
    owners: { distinct: 4, repeated: 2 },
    numbersBeyondOne: 1,
    sharing: 2,
    customers: { distinct: 2, withOneRow: 0, rowsMost: 3 },
    networkIds: { with: 2, without: 4 },
    linkIds: { with: 2, without: 4, unusual: 1 },
  })
})

it('counts none where the profile names none, or no row has one', async () => {
  const { on_file: _, ...plain } = PROFILE
  expect(await owners([['cus_1', 'card_1', 1, '', '']], plain)).toBeUndefined()
  expect(await owners([['cus_1', '', 1, '', '']])).toBeUndefined()
})
