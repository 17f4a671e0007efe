import { describe, expect, it } from 'vitest'
import { type RowOptions, readRows } from '../../../producers/rows/file-rows.ts'
import { refusePanLookalikes } from '../../../producers/rows/pan-lookalikes.ts'
import { keptFieldsOf, rejectsFieldsOf } from '../../../producers/rows/row-texts.ts'
import { collect, inPieces } from './bytes.ts'
import { PAN, profile, profileNamed } from './profile/profiled.ts'

const namesOf = (options: Parameters<typeof rejectsFieldsOf>[0]) => rejectsFieldsOf(options).map(({ field }) => field)
const rowsOf = (text: string, options: Omit<RowOptions, 'keep'>) =>
  collect(readRows(inPieces(text), { ...options, keep: rejectsFieldsOf(options) }))

describe('of a row are kept', () => {
  const recordKind = 'token-create' as const

  it('the columns that the file’s profile reads and that hold no card data, and the echoed ones', () => {
    const by = profile(
      {
        where: [
          { field: 'type', is: ['card'] },
          { field: 'number', is_not: ['x'] },
        ],
      },
      { reference: '{id}-{number:last4}', card_brand: { from: 'brand' }, token_type: { constant: 'REUSE' } },
    )
    expect(namesOf({ recordKind, profile: by })).toEqual(['id', 'brand', 'type'])
    expect(namesOf({ recordKind, profile: by, echo: ['city', 'id'] })).toEqual(['id', 'brand', 'type', 'city'])
  })

  it('of a plain file the columns that aren’t card data, by their names in the file, none that is left out', () => {
    const map = { Kind: 'token_type', Note: null, card_brand: null, Number: 'card_number', Ref: 'reference' }
    expect(namesOf({ recordKind, map, echo: ['City'] })).toEqual([
      'Kind',
      'public_key_alias',
      'token_expiry_date',
      'City',
    ])
    expect(namesOf({ recordKind: 'token-lifecycle' })).toEqual(['id', 'action'])
  })

  it('nothing, unless a file asks for it', () => {
    const by = profileNamed('square')
    expect(keptFieldsOf({ recordKind, profile: by }, { rejects: false, back: false })).toBeUndefined()
    expect(keptFieldsOf({ recordKind, profile: by }, { rejects: true, back: true })).toEqual([
      { field: 'card_id', path: '--rejects' },
      { field: 'customer_id', path: '--rejects' },
      { field: 'postal_code', path: '--rejects' },
      { field: 'customer_id', path: 'return.columns.7.from' },
    ])
  })

  it.each([
    ['csv', 'reference,card_number,expiry,card_brand,City\nr,1,12/30,VISA,Köln\nx\n'],
    [
      'ndjson',
      '{"reference":"r","card_number":"1","expiry":"12/30","card_brand":"VISA","City":"Köln"}\n{"reference":1.5}\n',
    ],
  ] as const)('texts of %s as they stand, and none of a row that can’t be read', async (format, text) => {
    const rows = await rowsOf(text, { format, recordKind, echo: ['City'], ignoreUnknown: true })
    expect(rows.map(({ kept }) => kept)).toEqual([['', 'VISA', '', '', 'Köln'], undefined])
  })

  it('texts of up to 1,000 characters; of a longer one the beginning, marked, without its digits', async () => {
    const long = `no ${PAN}${'é'.repeat(2_000)}`
    const options = { format: 'csv', recordKind, echo: ['City'], ignoreUnknown: true } as const
    const [plain] = await rowsOf(`reference,card_number,expiry,City\nr,1,12/30,${long}\n`, options)
    const beginning = `no ${'*'.repeat(16)}${'é'.repeat(981)}…`
    expect(plain?.kept?.at(-1)).toBe(beginning)
    const by = profile({ where: [{ field: 'kind', is_not: ['x'] }] })
    const file = `id,number,month,year,name,kind\n1,${PAN},13,2030,A,${long}\n2,${PAN},13,2030,A,${'x'.repeat(1_000)}\n`
    const rows = await rowsOf(file, { format: 'csv', recordKind, profile: by })
    expect(rows.map(({ kept }) => kept?.[1])).toEqual([beginning, 'x'.repeat(1_000)])
  })

  it('no column of card data that is named by its place, and values of JSON that are no texts as none', async () => {
    const where = [
      { field: '#4', is: ['2030'] },
      { field: 'kind', is_not: ['x'] },
    ]
    const table = profile({ where })
    const csv = `id,number,month,year,name,kind\n1,${PAN},5,2030,ADA,y\n`
    const [row] = await rowsOf(csv, { format: 'csv', recordKind, profile: table })
    expect(row).toMatchObject({ kept: ['1', '', 'y'], number: PAN })
    const json = profile({ format: { type: 'ndjson' }, where: [{ field: 'kind', is_not: ['x'] }] })
    const record = { id: '1', number: PAN, month: 5, year: 2030, name: 'ADA', kind: true, note: {} }
    const [read] = await rowsOf(JSON.stringify(record), { format: 'csv', recordKind, profile: json, echo: [] })
    expect(read).toMatchObject({ kept: ['1', 'true'], rejected: undefined })
    const keep = [{ field: 'note', path: 'return.columns.0.from' }]
    const options = { format: 'csv', recordKind, profile: json, keep } as const
    const [other] = await collect(readRows(inPieces(JSON.stringify(record)), options))
    expect(other).toMatchObject({ kept: [''], rejected: undefined })
  })

  it('what tells whose card it is, but no card data that is read for it, whatever names its column', async () => {
    const onFile = {
      provider: 'club',
      customer_id: '{member}-{#3}',
      card_id: '{id}-{number:last4}',
      cardholder_name: { from: ['full name'] },
      network_transaction_ids: { from: 'nti' },
      billing_address: { line1: '#5', city: 'NAME', state: 'Full Name' },
    }
    const format = { type: 'delimited', header: 'any_case' }
    const by = profile({ format, on_file: onFile, drop: ['pin'] })
    const names = 'id,number,month,year,name,member,nti,full name,pin'
    const text = `${names}\n1,${PAN},5,2030,ADA,m1,016153,ADA LOVELACE,1234\n`
    const [row] = await rowsOf(text, { format: 'csv', recordKind, profile: by })
    const shown = Object.fromEntries(namesOf({ recordKind, profile: by }).map((name, at) => [name, row?.kept?.[at]]))
    expect(shown).toEqual({
      id: '1',
      member: 'm1',
      nti: '016153',
      '#3': '',
      '#5': '',
      NAME: '',
      'Full Name': '',
    })
  })

  it('no column that is dropped: who names one for an owner is refused', async () => {
    const owner = (customer: string) => ({ provider: 'club', card_id: '{id}', customer_id: customer })
    expect(() => profile({ drop: ['pin'], on_file: owner('{pin}') })).toThrow('drop')
    const by = profile({ drop: ['pin'], on_file: owner('{#6}') })
    const text = `id,number,month,year,name,pin\n1,${PAN},5,2030,ADA,1234\n`
    await expect(rowsOf(text, { format: 'csv', recordKind, profile: by })).rejects.toThrow('on_file.customer_id')
  })

  it('the number of a row that its profile rejects or skips, so that nothing like it is shown', async () => {
    const by = profile({ where: [{ field: 'kind', is: ['card'] }] })
    const rows = [`1,${PAN},5,2030,A,bank`, `2,${PAN},13,2030,A,card`, '3,5555555555554444,5,2030,A,card']
    const read = await rowsOf(`id,number,month,year,name,kind\n${rows.join('\n')}\n`, {
      format: 'csv',
      recordKind,
      profile: by,
    })
    expect(read.map(({ number }) => number)).toEqual([PAN, PAN, '5555555555554444'])
    const [, , third] = refusePanLookalikes(read.with(2, { ...(read[2] as (typeof read)[0]), reference: PAN }), {
      stored: false,
    })
    // What tells a person where the row stands isn't lost with its reference.
    expect(third).toMatchObject({ rejected: 'reference_pan', reference: undefined, kept: ['3', 'card'] })
  })

  it('place and repairs of a row of nested JSON that is refused for another row’s card', async () => {
    const card = (id: string, number: string) => ({ id, number, exp_month: 5, exp_year: 2030, name: ' A' })
    const cards = [card('c1', PAN), { ...card('c2', '5555555555554444'), note: PAN }]
    const text = `{"customers":\n[{"id":"cus_1","cards":${JSON.stringify(cards)}}]}`
    const options = { format: 'csv', recordKind, profile: profileNamed('stripe-json'), echo: ['note'] } as const
    const read = await rowsOf(text, options)
    expect(refusePanLookalikes(read, { stored: false })[1]).toMatchObject({
      line: 2,
      fileLine: 2,
      item: '1.2',
      rejected: 'echo_pan',
      repairs: [],
    })
  })
})
