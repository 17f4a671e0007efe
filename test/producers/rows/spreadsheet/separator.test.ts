// A first line `sep=;` tells a spreadsheet the delimiter. It is no header.
import { describe, expect, it } from 'vitest'
import { readRows } from '../../../../producers/rows/file-rows.ts'
import { collect, inPieces } from '../bytes.ts'
import { failure, PAN, profile, read } from '../profile/profiled.ts'

const HEADER = 'id;number;month;year;name'
const by = profile({ format: { type: 'delimited', delimiter: ';' } })

describe('a line sep=', () => {
  it.each(['sep=;\n', 'SEP=;\r\n', '"sep=;"\n', '\uFEFFsep=;\n'])(
    '%j before the header is passed over, and lines keep their numbers',
    async start => {
      for (const sizes of [[1], [7], [65_536]])
        expect(await read(by, `${start}${HEADER}\n1;${PAN};5;2030;ADA\n`, { sizes })).toEqual([
          `3 1: ${PAN} 5/2030 ADA`,
        ])
    },
  )

  it('that contradicts the profile refuses the file', async () => {
    expect(await failure(by, `sep=,\n${HEADER}\n1;${PAN};5;2030;ADA\n`)).toMatch(/Line 1.*Set format.delimiter/)
  })

  it('says the delimiter of a file without a profile', async () => {
    for (const delimiter of [';', '\t', '|', ',']) {
      const text = `sep=${delimiter}\ncard_number,expiry,reference\n${PAN},12/30,r-1\n`.replaceAll(',', delimiter)
      const [row] = (await collect(readRows(inPieces(text, [3]), { format: 'csv', recordKind: 'token-create' }))).flat()
      expect(row).toMatchObject({ line: 3, reference: 'r-1', rejected: undefined, number: PAN })
    }
  })

  it('is a header where it names no delimiter', async () => {
    expect(await failure(by, `sep=\n${HEADER}\n`)).toMatch(/header|column/i)
    expect(await failure(by, 'sep=;')).toMatch(/no rows/)
  })
})
