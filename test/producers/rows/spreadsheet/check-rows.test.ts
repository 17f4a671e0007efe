// What `profile check` says of a whole file: what no single row shows, and that a profile finds nothing.
import { describe, expect, it } from 'vitest'
import { checkRows } from '../../../../producers/rows/spreadsheet/check-rows.ts'
import { sentencesOf } from '../../../../producers/rows/spreadsheet/column-count.ts'
import { inPieces } from '../bytes.ts'
import { HEADER, PAN, profile } from '../profile/profiled.ts'

const owned = (changes: object = {}) =>
  profile({ on_file: { provider: 'shop', card_id: '{id}', customer_id: '{cust}' }, ...changes })

/** The sentences about a file with these customers; each row has a card of its own unless the test says which. */
async function said(customers: readonly string[], idOf = (index: number) => `c${index}`) {
  const rows = customers.map((cust, index) => `${idOf(index)},${PAN},5,2030,ADA,${cust}`)
  const { count } = await checkRows(inPieces(`${[`${HEADER},cust`, ...rows].join('\n')}\n`), owned())
  return sentencesOf(count).filter(text => /^(cust:|rows with)/.test(text))
}

describe('the check of a whole file', () => {
  it('counts numbers whose last digits are rounded', async () => {
    expect(await said(['1234567890123450000', '2234567890123450', '00001234567890123457'])).toEqual([
      'cust: 2 of 3 long numbers have only zeros after the 15th digit, as a spreadsheet rounds',
    ])
    expect(await said(['1234567890123456', '2234567890123457', '2234567890123450'])).toEqual([])
  })

  it('counts numbers that may have lost leading zeros, and not those that are counted up', async () => {
    const lost = ['12345678', '22345678', '32345678', '345678']
    expect(await said(lost)).toEqual(['cust: numbers shorter than the others: 1; leading zeros may be lost'])
    expect(await said([...lost, '00345679'])).toEqual([])
    expect(await said([...lost, 'a'])).toEqual([])
    expect(await said(['8', '9', '10', '11'])).toEqual([])
  })

  it('counts references and owners that repeat', async () => {
    expect(await said(['a', 'a', 'b'], index => (index === 2 ? 'c2' : 'c0'))).toEqual([
      'rows with the reference of an earlier row: 1',
      'rows with the customer and card of an earlier row: 1',
    ])
  })

  it('counts rejected rows by field, and repairs, beyond the rows that are shown', async () => {
    const lines = Array.from({ length: 30 }, (_, n) => `c${n},000${PAN},5,2030,ADA,${n < 12 ? 'NULL' : `u${n}`}`)
    const given = profile(
      { on_file: { provider: 'shop', card_id: '{id}', customer_id: '{cust}' } },
      { card_number: { from: 'number', padded: true } },
    )
    const { rows, count } = await checkRows(inPieces(`${HEADER},cust\n${lines.join('\n')}\n`), given)
    expect(rows).toHaveLength(10)
    expect(sentencesOf(count)).toEqual([
      '30 rows: 18 are read, 12 rejected, 0 skipped',
      '12 rejected: field_spreadsheet on_file.customer_id',
      '18 repaired: number_padding',
    ])
  })

  it('fails where the profile finds no card: a wrong path, an empty column, a condition that none fulfils', async () => {
    const json = profile({ format: { type: 'json', records: 'customers[].card[]' }, no_card: 'skip' })
    const text = JSON.stringify({ customers: [{ id: 'a', cards: [{ number: PAN }] }] })
    await expect(checkRows(inPieces(text), json)).rejects.toThrow(/no|none/i)
    const row = `${HEADER}\n1,,5,2030,ADA\n`
    await expect(checkRows(inPieces(row), profile({ no_card: 'skip' }))).rejects.toThrow(/none of the 1 records/)
    const where = [{ field: 'name', is: ['BOB'] }]
    await expect(checkRows(inPieces(row), profile({ where }))).rejects.toThrow(/none of the 1 records.*where/)
    const other = JSON.stringify({ people: [{ cards: [{ number: PAN }] }] })
    await expect(checkRows(inPieces(other), json)).rejects.toThrow()
  })
})
