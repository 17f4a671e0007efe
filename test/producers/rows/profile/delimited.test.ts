import { describe, expect, it } from 'vitest'
import { failure, HEADER, PAN, profile, read } from './profiled.ts'

const delimited = (format: Record<string, unknown>, more: Record<string, unknown> = {}, columns = {}) =>
  profile({ format: { type: 'delimited', ...format }, ...more }, columns)

describe('delimited text', () => {
  it.each([';', '\t', '|', '^', '\u0001'])('is split at the delimiter %j and at no comma', async delimiter => {
    const text = [HEADER, `1,${PAN},5,30,A`, `2,${PAN},5,30,"B,C"`].join('\n').replaceAll(',', delimiter)
    const rows = [`2 1: ${PAN} 5/2030 A`, `3 2: ${PAN} 5/2030 B${delimiter}C`]
    // A control character in a name is refused behind the reader.
    if (delimiter < ' ') rows[1] = '3 2: rejected field_characters'
    expect(await read(delimited({ delimiter }), text)).toEqual(rows)
  })

  it('reads doubled quotes beside another delimiter, over lines too', async () => {
    const text = `id;number;month;year;name;note\n1;${PAN};5;30;"A ""B""";"x\ny;z"\n2;${PAN};5;30;C;\n`
    expect(await read(delimited({ delimiter: ';' }), text)).toEqual([
      `2 1: ${PAN} 5/2030 A "B"`,
      `4 2: ${PAN} 5/2030 C`,
    ])
  })

  it('reads quotes behind backslashes, and leaves every other backslash as it is', async () => {
    const text = [
      HEADER,
      `"1","${PAN}","5","30","A \\"B\\" \\\\"`,
      `2,${PAN},5,30,"C \\n D"`,
      `3,${PAN},5,30,E\\`,
      `,${PAN},5,30,F`,
      `5,${PAN},5,30,"open`,
      `6,${PAN},5,30,x"y`,
      `7,${PAN},5,30,"G"`,
    ].join('\n')
    expect(await read(delimited({ quotes: 'backslash' }), text)).toEqual([
      `2 1: ${PAN} 5/2030 A "B" \\`,
      `3 2: ${PAN} 5/2030 C \\n D`,
      `4 3: ${PAN} 5/2030 E\\`,
      `5 ?: ${PAN} 5/2030 F`,
      '6 ?: rejected row_quotes',
      '7 ?: rejected row_quotes',
      `8 7: ${PAN} 5/2030 G`,
    ])
  })

  it('takes quotes as ordinary characters where the profile says so', async () => {
    const text = `${HEADER}\n1,${PAN},5,30,A "B\n2,${PAN},5,30,"C"\n`
    expect(await read(delimited({ quotes: 'none' }), text)).toEqual([
      `2 1: ${PAN} 5/2030 A "B`,
      `3 2: ${PAN} 5/2030 "C"`,
    ])
  })

  it('passes over lines at the beginning, even one with an open quote, and counts them', async () => {
    const text = `\ufeffExport of "today\n\n${HEADER}\n1,${PAN},5,30,A\n`
    expect(await read(delimited({ skip_lines: 2 }), text, { sizes: [3] })).toEqual([`4 1: ${PAN} 5/2030 A`])
  })

  it('matches the header exactly, or in any case where the profile says so', async () => {
    const text = `ID,Number,MONTH,year,Name\n1,${PAN},5,30,A\n`
    expect(await read(delimited({ header: 'any_case' }), text)).toEqual([`2 1: ${PAN} 5/2030 A`])
    expect(await failure(delimited({}), text)).toBe(
      'Line 1: no column "number" (columns.card_number.from), "id" (columns.reference), "month" (columns.expiry.month), "name" (columns.cardholder_name.from.0). The columns are "ID", "Number", "MONTH", "year", "Name". Correct the profile, or its delimiter.',
    )
  })

  it('names no column that holds data where the header is missing', async () => {
    const message = await failure(delimited({}), `1,${PAN},5,30,ADA LOVELACE\n`)
    expect(message).toBe('Line 1 holds data, not the names of columns. Set format.header to none.')
  })

  it('reads files without a header by given names or by number', async () => {
    const text = `1,${PAN},5,30,A\n"2",${PAN},5\n`
    const rows = [`1 1: ${PAN} 5/2030 A`, '2 ?: rejected row_fields']
    expect(await read(delimited({ header: 'none', names: HEADER.split(',') }), text)).toEqual(rows)
    const byNumber = {
      reference: '{#1}',
      card_number: { from: '#2' },
      expiry: { month: '#3', year: '#4' },
      cardholder_name: { from: ['#5'] },
    }
    expect(await read(delimited({ header: 'none' }, {}, byNumber), text)).toEqual(rows)
    expect(await read(delimited({ header: 'none' }, {}, byNumber), `"x\n${text}`)).toEqual([
      '1 ?: rejected row_quotes',
      `2 1: ${PAN} 5/2030 A`,
      '3 ?: rejected row_fields',
    ])
    expect(await failure(delimited({ header: 'none' }, {}, byNumber), `1,${PAN},5\n`)).toMatch(
      /^The file: no column "#4" \(columns\.expiry\.year\), "#5" .* The columns are "#1", "#2", "#3"\./,
    )
  })

  it('tells repeated names apart by number, and refuses one that could mean several columns', async () => {
    const text = `id,F,number,F,month,year,F#2\n1,x,${PAN},y,5,30,z\n`
    const named = (from: string) => delimited({}, {}, { cardholder_name: { from: [from] } })
    expect(await read(named('F#1'), text)).toEqual([`2 1: ${PAN} 5/2030 x`])
    // A column of that very name comes first.
    expect(await read(named('F#2'), text)).toEqual([`2 1: ${PAN} 5/2030 z`])
    expect(await read(named('#4'), text)).toEqual([`2 1: ${PAN} 5/2030 y`])
    expect(await failure(named('F'), text)).toBe(
      'Line 1: several columns are called "F", which columns.cardholder_name.from.0 names. Say which: the second one is "F#2".',
    )
    expect(await failure(named('F#3'), text)).toMatch(/no column "F#3"/)
  })

  it('is refused where a number stands for a column of security codes', async () => {
    const by = delimited({}, {}, { cardholder_name: { from: ['#5'] } })
    expect(await failure(by, `id,number,month,year,CVV\n1,${PAN},5,30,123\n`)).toBe(
      'columns.cardholder_name.from.0 names a column that is never read. Leave it out.',
    )
  })

  it('checks header and trailer records and their counts', async () => {
    const format = {
      header_record: { mark: 'H', count_field: 3 },
      trailer_record: { mark: 'T', count_field: 2, counts: 'records' },
    }
    const by = delimited(format)
    const file = (head: string, tail: string) => `${head}\n${HEADER}\n1,${PAN},5,30,A\nbad\n${tail}`
    expect(await read(by, file('H,20261101,2', 'T,4\n'))).toEqual([`3 1: ${PAN} 5/2030 A`, '4 ?: rejected row_fields'])
    expect(await failure(by, file('H,x,3', 'T,4'))).toMatch(/^Line 1 states 3 rows, and the file has 2\./)
    expect(await failure(by, file('H,x,2', 'T,5'))).toMatch(/^Line 5 states 5 records, and the file has 4\./)
    expect(await failure(by, file('H,x,2', 'T,x'))).toMatch(/^Line 5: the stated number of records is no number\./)
    expect(await failure(by, file('X,x,2', 'T,4'))).toMatch(/^Line 1: the header record is missing\./)
    expect(await failure(by, file('H,x,2', ''))).toMatch(
      /^The trailer record is missing: the file may have lost its end/,
    )
    expect(await failure(by, file('H,x,2', `T,4\n2,${PAN},5,30,B`))).toMatch(
      /^Line 6: the trailer record at line 5 is not the last record\./,
    )
  })

  it('with a header and nothing else is an error', async () => {
    expect(await failure(delimited({}), HEADER)).toMatch(/^The file holds no rows\./)
    expect(await failure(delimited({}), '')).toMatch(/^The file holds no rows\./)
  })
})

describe('a row', () => {
  it('whose declared UTF-8 is none is rejected, as in any file', async () => {
    expect(await read(profile(), Buffer.from(`${HEADER}\n1,${PAN},5,30,Jos\xe9\n`, 'latin1'))).toEqual([
      '2 ?: rejected row_utf8',
    ])
  })

  it('keeps its blanks, separators and words where the profile declares nothing', async () => {
    const text = `${HEADER}\n 1 ,4111 1111 1111 1111,5,30, NULL\n`
    expect(await read(profile(), text)).toEqual(['2  1 : 4111 1111 1111 1111 5/2030  NULL'])
  })

  it('without a card is skipped or rejected, as declared', async () => {
    const text = `${HEADER}\n1,,5,30,A\n2,-,,,\n`
    expect(await read(profile({ null_words: ['-'] }), text)).toEqual([
      '2 1: rejected field_required',
      '3 2: rejected field_required',
    ])
    expect(await read(profile({ null_words: ['-'], no_card: 'skip' }), text)).toEqual([
      '2 1: skipped no_card',
      '3 2: skipped no_card',
    ])
  })

  it('without a card has no reference that could be one', async () => {
    const text = `${HEADER}\n${PAN},,5,30,A\nid ${PAN},,5,30,A\n3,,5,30,A\n`
    expect(await read(profile({ no_card: 'skip' }), text)).toEqual([
      '2 ?: skipped no_card',
      '3 ?: skipped no_card',
      '4 3: skipped no_card',
    ])
  })

  it('is taken by its type alone', async () => {
    const by = profile({
      where: [
        { field: 'type', is: ['card', 'CARD'] },
        { field: 'state', is_not: ['deleted', ''] },
      ],
    })
    const text = `${HEADER},type,state\n1,${PAN},5,30,A,card,live\n2,x,5,30,A,bank,live\n3,${PAN},5,30,A,CARD,deleted\n4,${PAN},5,30,A,card,\n`
    expect(await read(by, text)).toEqual([
      `2 1: ${PAN} 5/2030 A`,
      '3 2: skipped filtered',
      '4 3: skipped filtered',
      '5 4: skipped filtered',
    ])
  })

  it('whose expiry can not be read keeps its reference, but not one that holds the number', async () => {
    const text = `${HEADER}\n1,${PAN},13,30,A\nx${PAN},${PAN},13,30,A\n3,${PAN},5,,A\n4,${PAN},,,A\n`
    expect(await read(profile(), text)).toEqual([
      '2 1: rejected expiry_format',
      '3 ?: rejected expiry_format',
      '4 3: rejected expiry_format',
      `5 4: ${PAN} / A`,
    ])
  })

  it('has the constants of its profile', async () => {
    const by = profile({}, { token_type: { constant: 'REUSE' }, card_brand: { from: 'brand' } })
    const { readRaw } = await import('./profiled.ts')
    const [row] = await readRaw(by, `${HEADER},brand\n1,${PAN},5,30,A,VISA\n`)
    expect(row?.cells.filter(cell => cell !== '').sort()).toEqual(['1', '2030', PAN, '5', 'A', 'REUSE', 'VISA'].sort())
  })

  it('repeats echoed columns as they are, and none with card data', async () => {
    const text = `${HEADER},NOTE,cvv\n1,${PAN},5,30,A, n ,123\n`
    const by = profile({ trim: true, drop: ['secret'], format: { type: 'delimited', header: 'any_case' } })
    expect(await read(by, text, { echo: ['note', 'id'] })).toEqual([`2 1: ${PAN} 5/2030 A < n |1>`])
    for (const echo of ['number', 'name', 'month', 'cvv', 'secret', 'cardholder_name']) {
      expect(await failure(by, text, { echo: [echo] })).toMatch(/would put card data into the results/)
    }
    expect(await failure(by, text, { echo: ['NUMBER'] })).toBe('--echo names a column of card data. Leave it out.')
    expect(await failure(by, text, { echo: ['#7'] })).toBe('--echo names a column that is never read. Leave it out.')
    expect(await failure(by, text, { echo: ['absent'] })).toMatch(/no column "absent" \(--echo\)/)
  })
})
