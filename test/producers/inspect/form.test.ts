// What a file looks like by its first bytes.
import { expect, it } from 'vitest'
import { formOf, HEAD_BYTES } from '../../../producers/inspect/form.ts'

const form = (bytes: Buffer | string, isWhole = true) => formOf(Buffer.from(bytes as string), isWhole)

it('tells the delimiter by the rows that have the header’s width', async () => {
  for (const delimiter of [',', ';', '\t', '|']) {
    const text = [
      ['id', 'name', 'number'],
      ['1', 'A, B', '4111'],
      ['2', 'C', '5555'],
    ]
      .map(row => row.map(cell => (cell.includes(delimiter) ? `"${cell}"` : cell)).join(delimiter))
      .join('\n')
    expect(await form(text)).toMatchObject({ type: 'delimited', delimiter, header: ['id', 'name', 'number'] })
    expect((await form(text)).rows).toEqual([
      ['1', 'A, B', '4111'],
      ['2', 'C', '5555'],
    ])
  }
})

it('takes no row of data for a header', async () => {
  const { header, rows } = await form('4111111111111111,12/30\n5555555555554444,01/31\n')
  expect(header).toBeUndefined()
  expect(rows).toHaveLength(2)
})

it('tells the encoding by the bytes', async () => {
  expect((await form('name,x\nMüller,1\n')).encoding).toBe('utf-8')
  expect((await form(Buffer.from('name,x\nMüller,1\n', 'latin1'))).encoding).toBe('iso-8859-1')
  expect(
    (await form(Buffer.concat([Buffer.from('name,x\n'), Buffer.from([0x8a]), Buffer.from(',1\n')]))).encoding,
  ).toBe('windows-1252')
  const wide = await form(Buffer.from('\uFEFFname,x\nMüller,1\n', 'utf16le'))
  expect(wide).toMatchObject({ encoding: 'utf-16', header: ['name', 'x'], rows: [['Müller', '1']] })
})

it('leaves out a last row that may be cut, and a character that is', async () => {
  const cut = Buffer.from('id,name\n1,Anna\n2,Zoë').subarray(0, -1)
  expect(await form(cut, false)).toMatchObject({ encoding: 'utf-8', rows: [['1', 'Anna']] })
})

it('tells a document of JSON from lines of it', async () => {
  expect((await form('{"number":"1"}\n{"number":"2"}\n')).type).toBe('ndjson')
  expect((await form('{"customers":[{"id":"c1","cards":[]}]}')).type).toBe('json')
  expect((await form('{\n  "customers": [\n')).type).toBe('json')
  expect((await form('[{"number":"1"}]')).type).toBe('json')
})

it('tells a document of JSON in a single line that is longer than what is looked at', async () => {
  const text = JSON.stringify({ customers: Array.from({ length: 60_000 }, (_, id) => ({ id, name: 'Zoë Ångström' })) })
  const bytes = Buffer.from(text)
  for (let size = HEAD_BYTES; size > HEAD_BYTES - 8; size--) {
    expect(await form(bytes.subarray(0, size), false)).toEqual({ type: 'json', encoding: 'utf-8', rows: [] })
  }
})
