// A draft is made of columns that a profile can name; where it can't, that is said.
import { expect, it } from 'vitest'
import { inspect } from '../../../producers/inspect/inspect.ts'

const PAN = '4111111111111111'
const AT = Date.UTC(2026, 10, 22)

async function* bytesOf(text: string) {
  yield Buffer.from(text)
}
const inspected = (header: string, row: string) => inspect(bytesOf(`${header}\n${row}\n`), { at: AT })

it('is made where every column that it reads has a name of its own', async () => {
  const { profile, open, cards } = await inspected('card_id,number,expiry,note,note', `c1,${PAN},12/30,a,b`)
  expect(profile?.columns).toMatchObject({ reference: '{card_id}', card_number: { from: 'number' } })
  expect(open).toEqual([])
  expect(cards).toMatchObject({ rows: 1, cards: 1 })
})

it.each([
  ['an empty name', 'card_id,,expiry', `c1,${PAN},12/30`, 'column 2'],
  ['a brace', 'card_id,{number},expiry', `c1,${PAN},12/30`, 'column 2'],
  ['a doubled name', 'card_id,number,expiry,card_id', `c1,${PAN},12/30,c2`, 'column 1'],
  ['the sign of a parent', 'card_id,^.number,expiry', `c1,${PAN},12/30`, 'column 2'],
  ['the sign of four digits', 'card_id:last4,number,expiry', `c1,${PAN},12/30`, 'column 1'],
  ['a line break', 'card_id,"card\nnumber",expiry', `c1,${PAN},12/30`, 'column 2'],
  ['too many characters', `card_id,${'n'.repeat(201)},expiry`, `c1,${PAN},12/30`, 'column 2'],
])('is not made of a column with %s: a sentence says so', async (_, header, row, column) => {
  const { profile, open, columns, cards } = await inspected(header, row)
  expect(profile).toBeUndefined()
  expect(cards).toBeUndefined()
  expect(columns.length).toBeGreaterThan(2)
  expect(open).toHaveLength(1)
  expect(open[0]).toMatch(new RegExp(`^The name of ${column} .* can’t stand in a profile`))
})

it('tells that several columns look like card numbers, and which one it took', async () => {
  const { profile, open } = await inspected('card_id,old,new,expiry', `c1,${PAN},5555555555554444,12/30`)
  expect(profile?.columns.card_number.from).toBe('old')
  expect(open).toEqual(['Several columns look like card numbers: the draft reads "old", and passes over "new".'])
})

it('names the columns that look like ids of customers and networks, and says what to check of each', async () => {
  const header = 'card_id,number,expiry,customer_id,network_transaction_id,transaction_link_id'
  const { profile, open, cards } = await inspected(header, `c1,${PAN},12/30,cus_1,MCC123,AbCdEfGhIjKlMnOpQrStU-`)
  expect(profile?.on_file).toEqual({
    provider: 'name-of-the-provider',
    ...{ card_id: '{card_id}', customer_id: '{customer_id}' },
    network_transaction_ids: { from: 'network_transaction_id' },
    transaction_link_id: { from: 'transaction_link_id' },
  })
  expect(open.map(sentence => sentence.split(':')[0])).toEqual([
    ...['on_file.provider', 'on_file.card_id', 'on_file.customer_id'],
    ...['on_file.network_transaction_ids', 'on_file.transaction_link_id'],
  ])
  expect(profile?.add).toEqual(open)
  expect(cards?.owners).toMatchObject({ rows: 1, customers: { distinct: 1 }, networkIds: { with: 1 } })
})

it('names no owner where nothing but the id of a card is found, or its name can’t stand in a profile', async () => {
  const plain = await inspected('card_id,number,expiry', `c1,${PAN},12/30`)
  expect(plain.profile?.on_file).toBeUndefined()
  expect(plain.open).toEqual([])
  const doubled = await inspected('card_id,number,expiry,customer_id,customer_id', `c1,${PAN},12/30,a,b`)
  expect(doubled.profile?.on_file).toBeUndefined()
})

it('never reads a security code', async () => {
  const { profile, columns } = await inspected('card_id,number,expiry,card_holder_cid', `c1,${PAN},12/30,1234`)
  expect(columns[3]?.meaning).toBe('security_code')
  expect(JSON.stringify(profile)).not.toContain('cid')
})
