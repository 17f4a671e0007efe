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
    card_id: '{card_id}',
    customer_id: '{customer_id}',
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

it.each([
  ['Kunde;Karte;Gültig;Inhaber', '122030', 'MMYYYY', 'Inhaber'],
  ["Client;Carte;Date d'échéance;Titulaire", '2030-12', 'YYYY-MM', 'Titulaire'],
  ['Cliente;Tarjeta;Caducidad;Titular', '12/30', 'MM/YY', 'Titular'],
  ['Klant;Kaart;Vervaldatum;Kaarthouder', '1230', 'MMYY', 'Kaarthouder'],
])('is made of an export in another language: %s', async (header, expiry, form, holder) => {
  const rows = ['4111111111111111', '5555555555554444'].map((pan, n) => `K${n};${pan};${expiry};Zoë Müller`)
  async function* latin1() {
    yield Buffer.from(`${header}\n${rows.join('\n')}\n`, 'latin1')
  }
  const { profile, open, cards } = await inspect(latin1(), { at: AT })
  const [customer, number, date] = header.split(';')
  expect(profile).toMatchObject({
    format: { delimiter: ';', encoding: 'iso-8859-1' },
    columns: {
      reference: `{${customer}}`,
      card_number: { from: number },
      expiry: { from: date, form },
      cardholder_name: { from: [holder] },
    },
  })
  expect(open).toHaveLength(1)
  expect(open[0]).toContain(`names a row by "${customer}"`)
  expect(cards).toMatchObject({ rows: 2, cards: 2, rejected: {} })
})

it('knows each form of a profile that four digits do not have, whatever the column is called', async () => {
  const forms = {
    MMYYYY: '122030',
    YYYYMM: '203012',
    'MM/YY': '12/30',
    'MM-YY': '12-30',
    'YY/MM': '30/12',
    'YY-MM': '30-12',
    'MM/YYYY': '12/2030',
    'MM-YYYY': '12-2030',
    'YYYY/MM': '2030/12',
    'YYYY-MM': '2030-12',
  }
  for (const [form, text] of Object.entries(forms)) {
    const { profile } = await inspected('card_id,a,b,c', `c1,${PAN},1230,${text}`)
    expect(profile?.columns.expiry).toEqual({ from: 'c', form })
  }
})

it('names no row by a column that repeats or has gaps, and reads the delimiter that sep= names', async () => {
  async function* of(rows: readonly string[]) {
    yield Buffer.from(`sep=;\r\nx;n;expiry\r\n${rows.join('\r\n')}\r\n\x1a`)
  }
  const tail = [`4111111111111111;12/30`, `5555555555554444;12/30`]
  const referenceOf = async (...ids: string[]) =>
    (await inspect(of(ids.map((id, n) => `${id};${tail[n % 2]}`)), { at: AT })).profile?.columns
  expect(await referenceOf('a', 'b')).toMatchObject({ reference: '{x}', card_number: { from: 'n' } })
  expect(await referenceOf('a', 'a')).not.toHaveProperty('reference')
  expect(await referenceOf('a', '', 'b')).not.toHaveProperty('reference')
})

it('is a sketch with place-holders, which fits no file, where the number or the expiry can not be told', async () => {
  const { profile, sketch } = await inspected('card_id,number,expiry', `c1,${PAN},1011`)
  expect(profile).toBeUndefined()
  expect(sketch?.columns).toMatchObject({
    reference: '{card_id}',
    card_number: { from: 'number' },
    expiry: { from: expect.stringMatching(/^FILL IN/) },
  })
  const nothing = await inspected('a,b', 'x,y')
  expect(nothing.sketch?.columns.card_number.from).toMatch(/^FILL IN/)
  const bad = await inspected('a,{expiry}', 'x,12/30')
  expect(bad.sketch?.columns.expiry).toMatchObject({ from: expect.stringMatching(/^FILL IN/) })
  const { sketch: none } = await inspected('card_id,number,expiry', `c1,${PAN},12/30`)
  expect(none).toBeUndefined()
})
