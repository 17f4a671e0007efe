// What a spreadsheet makes of an id is no id: the form is known by the text alone, and real ids don't have it.
import { describe, expect, it } from 'vitest'
import { readRows } from '../../../../producers/rows/file-rows.ts'
import { formulaForm, type SpreadsheetForm, spreadsheetForm } from '../../../../producers/rows/spreadsheet-form.ts'
import { collect, inPieces } from '../bytes.ts'

const CHANGED: Record<SpreadsheetForm, readonly string[]> = {
  exponent: [
    '1.23E+15',
    '1,23E+15',
    '1E+15',
    '-1.5e+20',
    '1.23E15',
    '1E-05',
    '4.5E-7',
    ' 1.23E+15 ',
    '1.7976931348623157e+308',
  ],
  error: [
    '#N/A',
    '#REF!',
    '#NAME?',
    '#VALUE!',
    '#DIV/0!',
    '#NULL!',
    '#NV',
    '#BEZUG!',
    '#NOM?',
    '#¿NOMBRE?',
    '#¡VALOR!',
    '#N/D',
    '#####',
    'Err:502',
    '#ERROR!',
  ],
  formula: ['="0123"', '=0123', '=T("a")', '=A2', '=Sheet1!$B$7', '= "x"', "'0123", "'=1", "'+49", '=+1', '=(1)'],
  date: [
    '3/4/2024',
    '03.04.2024',
    '3-4-2024',
    '3/4/24',
    '2024/03/04',
    '2024. 3. 4.',
    '2024年3月4日',
    '2024-03-04 00:00:00',
    '3-Apr',
    'Apr-03',
    '03. Mrz',
    'Mrz 24',
    'sept-24',
    'mars-24',
    'Dec-12',
    '1-Dec',
    '3/4/2024 12:00 AM',
    'set/24',
    'Mär 24',
    'September 12, 2024',
  ],
  boolean: ['TRUE', 'false', 'WAHR', 'FAUX', 'VERDADERO', 'Onwaar', 'ИСТИНА'],
  nothing: [
    'NULL',
    'null',
    'N/A',
    'n/a',
    'NA',
    'None',
    'nil',
    '-',
    '--',
    '—',
    '\\N',
    'NaN',
    '(null)',
    'k.A.',
    'undefined',
    '?',
    '(blank)',
  ],
  point_zero: ['123.0', '123.00', '0.0', '123456,0', '-7.0'],
}

const IDS = [
  ...[
    '1E5',
    '12E34',
    '1e5f',
    'E5',
    '5e',
    '00E1',
    '0123',
    '42',
    '0',
    '-AbCdEfGhIjKlMnOpQrStU',
    'DEC-12',
    'MAR1',
    'may-1x',
  ],
  ...['cus_123', '=cus;1', '#12', '#A12', '12#', 'nullable', 'none-1', '1.23', '10.0.0.1', '12-03-04', '2024-03-04'],
  ...[
    '016153570198200',
    'MCC0000001',
    'x=1',
    "o'1",
    'truex',
    '3/4',
    '99/99/9999',
    '45.13.2024',
    '1-1',
    'Error:1',
    '7/7a',
  ],
  ...['9f86d081-884c-4d63-a15b-6a3e1c2b3d4e', 'AbC=', '+', '1_000', 'N', 'x'.repeat(200)],
]

describe('a form that a spreadsheet makes', () => {
  it.each(Object.entries(CHANGED))('is known: %s', (form, texts) => {
    for (const text of texts) expect(`${text} ${spreadsheetForm(text)}`).toBe(`${text} ${form}`)
  })

  it('is none of the forms of real ids', () => {
    for (const id of IDS) expect(`${id} ${spreadsheetForm(id)}`).toBe(`${id} undefined`)
  })

  it('is in free words only a formula or an error', () => {
    const words = ['None', 'Null', 'True', '3/4', '12.0', '-', 'May 12', "'s-Gravenhage", '#12 Main St', '#A', 'Erroll']
    for (const text of words) expect(formulaForm(text)).toBeUndefined()
    for (const text of ['#N/A', '#NAME?', '="ADA"', '=A1', 'Err:504']) expect(formulaForm(text)).toBeDefined()
  })
})

describe('a file without a profile', () => {
  const PAN = '4111111111111111'
  const read = async (cells: string) =>
    (
      await collect(
        readRows(inPieces(`card_number,expiry,cardholder_name,reference\n${cells}\n`), {
          format: 'csv',
          recordKind: 'token-create',
          inColumns: true,
        }),
      )
    ).flat()

  it('has no such text as a reference or a name, and the record names the column', async () => {
    const [row] = await read(`${PAN},12/30,ADA,1.23E+15`)
    expect(JSON.parse(row?.json ?? '')).toEqual({
      line: 2,
      reference: '1.23E+15',
      rejected: { reason: 'field_spreadsheet', field: 'reference' },
    })
    const [named] = await read(`${PAN},12/30,#NAME?,r-1`)
    expect(named).toMatchObject({ rejected: 'field_spreadsheet', field: 'cardholder_name' })
    for (const name of ['NONE', 'NULL', 'TRUE'])
      expect((await read(`${PAN},12/30,${name},r-1`))[0]?.rejected).toBeUndefined()
  })
})
