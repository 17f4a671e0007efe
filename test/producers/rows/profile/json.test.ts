import { describe, expect, it } from 'vitest'
import { failure, PAN, profile, read, readRaw } from './profiled.ts'

const json = (records: string, columns: Record<string, unknown> = {}, more: Record<string, unknown> = {}) =>
  profile({ format: { type: 'json', records }, no_card: 'skip', ...more }, columns)
const card = (id: string, more: object = {}) => ({ id, number: PAN, month: 5, year: 2030, name: 'A', ...more })
const row = (id: string) => `${id}: ${PAN} 5/2030 A`

describe('nested JSON', () => {
  it('is read wherever its array stands, and what stands around it is passed over', async () => {
    const text = JSON.stringify({
      customers: { deep: [{ customers: [{ cards: [card('no')] }] }] },
      'da"ta': { customers: 1, x: [1, { customers: [] }], 'y\\': '[{"' },
      data: { 'cust"omers': [{ cards: [card('1'), card('2')] }, { cards: [card('3')] }], more: [[], {}] },
      tail: '}]',
    })
    const by = json('data.cust"omers[].cards[]')
    for (const sizes of [[1], [7], [65_536]]) {
      expect(await read(by, text, { sizes })).toEqual([`1.1.1 ${row('1')}`, `1.1.2 ${row('2')}`, `1.2.1 ${row('3')}`])
    }
  })

  it('may be an array, of records or of what holds them, at any depth', async () => {
    expect(await read(json('[]'), JSON.stringify([card('1'), card('2')], null, 1))).toEqual([
      `2.1 ${row('1')}`,
      `9.2 ${row('2')}`,
    ])
    const deep = [
      {
        id: 'c1',
        subs: [
          { id: 's1', cards: { data: [card('1')] } },
          { id: 's2', cards: {} },
        ],
      },
      { id: 'c2' },
    ]
    const by = json('[].subs[].cards.data[]', { reference: '{^.^.id}/{^.id}/{id}' })
    expect(await read(by, JSON.stringify(deep))).toEqual([
      `1.1.1 c1/s1/${row('1')}`,
      '1.1 ?: skipped no_card',
      '1.2 ?: skipped no_card',
    ])
  })

  it('takes members by name before it takes them by path', async () => {
    const by = json('[]', { reference: '{card.id}', cardholder_name: { from: ['a.b.c'] } })
    const records = [
      { ...card('x'), 'card.id': '1', card: { id: 'no' }, a: { b: { c: 'A' } } },
      { ...card('x'), card: { id: '2' }, a: null },
      { ...card('x'), card: { id: '3' }, a: { b: 7 } },
    ]
    expect(await read(by, JSON.stringify(records))).toEqual([
      `1.1 ${row('1')}`,
      `1.2 2: ${PAN} 5/2030`,
      '1.3 3: rejected field_type',
    ])
  })

  it('names the parent of a record, and a customer without cards by its id', async () => {
    const by = json('customers[].cards[]', { reference: '{^.id}' })
    const text = JSON.stringify({
      customers: [{ id: 'c1', cards: [card('1')] }, { id: 'c2', cards: [] }, { id: 'c3' }],
    })
    expect(await read(by, text)).toEqual([`1.1.1 ${row('c1')}`, '1.2 c2: skipped no_card', '1.3 c3: skipped no_card'])
    expect(await read(json('customers[].cards[]', { reference: '{^.id}' }, { no_card: 'reject' }), text)).toEqual([
      `1.1.1 ${row('c1')}`,
      '1.2 c2: rejected field_required',
      '1.3 c3: rejected field_required',
    ])
  })

  it('rejects an element that can not be read, and only it', async () => {
    const good = JSON.stringify(card('1'))
    const text = `[${good}\n,7\n,"x,y"\n,[1]\n,{"id":"a","id":"b"}\n,{"x":{"k":1,"k":2}}\n,{"id":01}\n,{"a":"\0"}\n,null\n,${good}]`
    const bytes = Buffer.concat([
      Buffer.from(text.slice(0, -1)),
      Buffer.from([0x2c, 0x7b, 0x22, 0xff, 0x22, 0x7d, 0x5d]),
    ])
    for (const sizes of [[1], [65_536]]) {
      expect(await read(json('[]'), bytes, { sizes })).toEqual([
        `1.1 ${row('1')}`,
        ...['2.2', '3.3', '4.4', '5.5', '6.6', '7.7'].map(place => `${place} ?: rejected row_json`),
        '8.8 ?: rejected row_nul',
        '9.9 ?: rejected row_json',
        `10.10 ${row('1')}`,
        '10.11 ?: rejected row_utf8',
      ])
    }
  })

  it('rejects records that are no objects, at their places', async () => {
    const text = JSON.stringify({ customers: [{ cards: [7, card('1'), null] }, { cards: 'x' }] })
    expect(await read(json('customers[].cards[]'), text)).toEqual([
      '1.1.1 ?: rejected row_json',
      `1.1.2 ${row('1')}`,
      '1.1.3 ?: rejected row_json',
      '1.2.1 ?: rejected row_json',
    ])
  })

  it('takes whole numbers that are exact, and no other values', async () => {
    const text = `[{"id":1,"number":4111111111111111,"month":5,"year":2030},{"id":2,"number":4111111111111111111},
      {"id":3,"number":1.5},{"id":true,"number":"${PAN}"},{"id":5,"number":["${PAN}"]}]`
    expect(await read(json('[]'), text)).toEqual([
      `1.1 1: ${PAN} 5/2030`,
      '1.2 2: rejected field_type',
      '2.3 3: rejected field_type',
      '2.4 ?: rejected field_type',
      '2.5 5: rejected field_type',
    ])
  })

  it('takes no long number that a power of ten may have rounded', async () => {
    const text = `[{"id":1,"number":4.11111111111111E+15,"month":5E0,"year":2030},{"id":"x4E+3","number":4111111111111111,"month":5,"year":2030}]`
    const wanted = ['1: rejected field_type', `x4E+3: ${PAN} 5/2030`]
    expect(await read(json('[]'), text)).toEqual(wanted.map((row, index) => `1.${index + 1} ${row}`))
    const lines = text.slice(1, -1).replace('},{', '}\n{')
    const by = profile({ format: { type: 'ndjson' } }, {})
    expect(await read(by, lines)).toEqual(wanted.map((row, index) => `${index + 1} ${row}`))
  })

  it('compares true and false as words', async () => {
    const by = json('[]', {}, { where: [{ field: 'deleted', is_not: ['true'] }] })
    expect(await read(by, JSON.stringify([card('1', { deleted: false }), card('2', { deleted: true })]))).toEqual([
      `1.1 ${row('1')}`,
      '1.2 2: skipped filtered',
    ])
  })

  it('rejects an element over 1 MiB or over 10,000 cards, and goes on behind it', async () => {
    const long = { cards: [card('x', { note: '}]"\\'.repeat(300_000) })] }
    const many = (count: number) => ({ cards: Array.from({ length: count }, () => 0) })
    const text = JSON.stringify({ customers: [long, { cards: [card('1')] }, many(10_001), many(10_000)] })
    const rows = await readRaw(json('customers[].cards[]'), text)
    expect(rows.slice(0, 3).map(({ element, item, rejected }) => [element, item, rejected])).toEqual([
      [1, undefined, 'element_too_large'],
      [2, 1, undefined],
      [3, undefined, 'element_too_large'],
    ])
    expect(rows).toHaveLength(10_003)
    expect(rows.slice(3).every(({ element, rejected }) => element === 4 && rejected === 'row_json')).toBe(true)
  })

  it.each([
    ['', 'The file is empty'],
    [' \n', 'The file is empty'],
    ['id,number\n1,2\n', 'Line 1: the file is not JSON'],
    [`\n${PAN}`, 'Line 2: the file is not JSON'],
    ['{"a":1}', 'The document has no array "customers". Correct format.records of the profile. Its members are "a".'],
    ['[]', 'The document has no array "customers".'],
    ['{"customers":{"a":[]}}', 'The document has no array "customers".'],
    ['{"customers":[{"a":1},', 'Line 1: the document breaks off within its array'],
    ['{"customers":[{"a":1', 'Line 1: the document breaks off within its array'],
    ['{"customers":[{"a":1}]', 'Line 1: the document breaks off before its end'],
    ['{"customers":[{"a":1}],"x":"', 'Line 1: the document breaks off before its end'],
    ['{"customers":[{}]}\n{"customers":[{}]}', 'Line 2: the document goes on behind its end'],
    ['{"customers":[{}]} x', 'Line 1: the document goes on behind its end'],
    ['{"customers":[],"customers":[]}', 'Line 1: the document has the array "customers" twice'],
    ['{"customers":[{},]}', 'Line 1: the document is not JSON within its array'],
    ['{"customers":[,{}]}', 'Line 1: the document is not JSON within its array'],
    ['{"customers":[{} {}]}', 'Line 1: the document is not JSON within its array'],
    ['{"customers":[{}}', 'Line 1: the document is not JSON within its array'],
    ['{"customers":[]}', 'The file holds no rows'],
  ])('that is no document of that form is refused as a whole: %j', async (text, message) => {
    for (const sizes of [[1], [65_536]]) {
      expect(await failure(json('customers[].cards[]'), text, { sizes })).toContain(message)
    }
  })

  it('is refused where no record has a field that the profile needs', async () => {
    const text = JSON.stringify([card('1'), card('2')])
    expect(await failure(json('[]', { card_number: { from: 'card.nmber' }, reference: '{uid}' }), text)).toBe(
      'No record of the file has "card.nmber" (columns.card_number.from), "uid" (columns.reference). Correct the paths of the profile.',
    )
  })

  it('is refused where no element has the array of its records; one that holds none is enough', async () => {
    const text = (...elements: object[]) => JSON.stringify({ customers: elements })
    const by = json('customers[].payment_methods[]')
    expect(await failure(by, text({ id: 1, cards: [card('1')] }, { id: 2 }))).toBe(
      'No element of the file has "payment_methods", where format.records has the records. Correct the path of the profile.',
    )
    for (const payment_methods of [[], null])
      expect(await read(by, text({ id: 1 }, { id: 2, payment_methods }))).toEqual([
        '1.1 ?: skipped no_card',
        '1.2 ?: skipped no_card',
      ])
  })
})

describe('NDJSON', () => {
  const by = profile({ format: { type: 'ndjson' } }, { card_number: { from: 'card.number' } })

  it('is read line by line, with paths', async () => {
    const record = (id: number) => JSON.stringify({ ...card(String(id)), number: undefined, card: { number: PAN } })
    const text = `${record(1)}\r\n\n${record(2)}\n[]\n{"id":1,"id":2}\n{"card":{"a":1,"a":2}}\n{x}\n{"a":"\0"}\n${'x'.repeat(70_000)}\n${record(3)}`
    expect(await read(by, text, { sizes: [11] })).toEqual([
      `1 ${row('1')}`,
      `3 ${row('2')}`,
      ...[4, 5, 6, 7].map(line => `${line} ?: rejected row_json`),
      '8 ?: rejected row_nul',
      '9 ?: rejected row_too_long',
      `10 ${row('3')}`,
    ])
  })
})
