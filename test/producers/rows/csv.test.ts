import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { type CsvRow, readCsv } from '../../../producers/rows/csv.ts'
import { collect, inPieces } from './bytes.ts'

const read = (text: Buffer | string, sizes?: readonly number[]) => collect(readCsv(inPieces(text, sizes)))
const brief = (rows: CsvRow[]) => rows.map(row => [row.line, row.rejected ?? row.fields])

// What a field may hold: quotes, commas, line breaks and anything of Unicode, but no NUL.
const field = fc.oneof(
  fc.string({ unit: fc.constantFrom('a', '1', ',', '"', '\n', '\r\n', ' ', 'é', "'", ';'), maxLength: 12 }),
  fc.string({ unit: 'binary', maxLength: 8 }).map(text => text.replace(/[\0\r\n]/g, '')),
)
// One empty field alone would be a blank line.
const table = fc
  .integer({ min: 1, max: 5 })
  .chain(width => fc.array(fc.array(field, { minLength: width, maxLength: width }), { minLength: 1, maxLength: 12 }))
  .filter(rows => rows.every(row => row.length > 1 || row[0] !== ''))
const style = fc.record({ quoteAll: fc.boolean(), end: fc.constantFrom('\n', '\r\n'), lastEnd: fc.boolean() })
const sizes = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 6 })

function write(rows: string[][], { quoteAll, end, lastEnd }: { quoteAll: boolean; end: string; lastEnd: boolean }) {
  const cell = (text: string) => (quoteAll || /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text)
  const lines = rows.map(row => row.map(cell).join(','))
  return lines.join(end) + (lastEnd ? end : '')
}

describe('readCsv', () => {
  it('reads back any table, each row at the physical line where it starts, however the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(table, style, sizes, async (rows, how, cut) => {
        const text = write(rows, how)
        const got = await read(text, cut)
        expect(got.map(row => row.fields)).toEqual(rows)
        let line = 1
        for (const [index, row] of rows.entries()) {
          expect(got[index]?.line).toBe(line)
          line += 1 + row.join('').split('\n').length - 1
        }
      }),
      { numRuns: 300 },
    )
  })

  it('gives the same rows and rejections for any bytes, however they are cut', async () => {
    const bytes = fc
      .array(fc.constantFrom(...'ab,,""\n\n\r'.split(''), '\0', '\xff', 'é', '"a"', '""'), { maxLength: 60 })
      .map(parts => Buffer.concat(parts.map(part => Buffer.from(part, part === '\xff' ? 'latin1' : 'utf8'))))
    await fc.assert(
      fc.asyncProperty(bytes, sizes, async (text, cut) => {
        // Bytes that look like UTF-16 are no table at all.
        const seen = (pieces?: readonly number[]) => read(text, pieces).then(brief, error => String(error))
        expect(await seen(cut)).toEqual(await seen())
      }),
      { numRuns: 300, examples: [[Buffer.from('a\0a\0'), [1]]] },
    )
  })

  it('gives the same rows and rejections, however far apart the quotes are', async () => {
    const filler = 'x,1\n'.repeat(900)
    const parts = fc.array(fc.constantFrom(...'a,,""\n\n\r'.split(''), '"a"', '""', 'é', filler, filler), {
      maxLength: 30,
    })
    await fc.assert(
      fc.asyncProperty(
        parts,
        fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 6 }),
        async (some, cut) => {
          const text = `x,1\n${some.join('')}`
          const whole = brief(await read(text, [1_000_000]))
          expect(brief(await read(text, cut))).toEqual(whole)
          expect(brief(await read(text, [1]))).toEqual(whole)
        },
      ),
      { numRuns: 100 },
    )
  })

  it('never loses a line: every non-blank line without quotes is a row or a rejection', async () => {
    const line = fc.string({ unit: fc.constantFrom('a', ',', 'b'), maxLength: 6 })
    await fc.assert(
      fc.asyncProperty(fc.array(line, { maxLength: 20 }), async lines => {
        const got = await read(lines.join('\n'))
        expect(got.map(row => row.line)).toEqual(lines.flatMap((text, index) => (text === '' ? [] : [index + 1])))
      }),
    )
  })

  it('rejects a row with too few or too many fields, and only it', async () => {
    expect(brief(await read('a,b\n1\n1,2,3\n1,2\n'))).toEqual([
      [1, ['a', 'b']],
      [2, 'row_fields'],
      [3, 'row_fields'],
      [4, ['1', '2']],
    ])
  })

  it('rejects a row with a NUL byte or with bad UTF-8, and only it', async () => {
    const bad = Buffer.concat([
      Buffer.from('a,b\nx\0,1\n'),
      Buffer.from([0xc3, 0x28, 0x2c, 0x31, 10]),
      Buffer.from('é,2'),
    ])
    expect(brief(await read(bad))).toEqual([
      [1, ['a', 'b']],
      [2, 'row_nul'],
      [3, 'row_utf8'],
      [4, ['é', '2']],
    ])
  })

  it('rejects a NUL or bad UTF-8 inside quotes over several lines at the first of them', async () => {
    const bad = Buffer.from('a,b\n"x\n\xff",1\n"y\n\0",1\nok,2\n', 'latin1')
    expect(brief(await read(bad))).toEqual([
      [1, ['a', 'b']],
      [2, 'row_utf8'],
      [4, 'row_nul'],
      [6, ['ok', '2']],
    ])
  })

  it.each([
    ['a quote inside an unquoted field', '5" pipe,1'],
    ['text behind a closing quote', '"a"b,1'],
    ['an unclosed quote', '"a,1'],
    ['a single quote in the middle', 'a"b"c,1'],
  ])('rejects %s and reads the rows around it', async (_, broken) => {
    expect(brief(await read(`a,b\n"x",1\n${broken}\n"y",2\nz,3\n`))).toEqual([
      [1, ['a', 'b']],
      [2, ['x', '1']],
      [3, 'row_quotes'],
      [4, ['y', '2']],
      [5, ['z', '3']],
    ])
  })

  it('lets an unclosed quote cost one line even when a later quote seems to close it', async () => {
    const text = 'a,b\n"open,1\n"p",2\nq,3\nalso open",4\nr,5\n'
    expect(brief(await read(text))).toEqual([
      [1, ['a', 'b']],
      [2, 'row_quotes'],
      [3, ['p', '2']],
      [4, ['q', '3']],
      [5, 'row_quotes'],
      [6, ['r', '5']],
    ])
  })

  it('lets an unclosed quote cost one line of a file of any length', async () => {
    const rows = Array.from({ length: 20_000 }, (_, index) => `row ${index},x`)
    const got = await read(`a,b\n"open,1\n${rows.join('\n')}\n`)
    expect(got).toHaveLength(20_002)
    expect(got.filter(row => row.rejected !== undefined).map(row => [row.line, row.rejected])).toEqual([
      [2, 'row_quotes'],
    ])
  })

  it('reads many rows on both sides of many broken ones', async () => {
    const rows = Array.from({ length: 3_000 }, (_, index) => (index % 7 === 3 ? `"b"${index},x` : `"r ""${index}""",x`))
    const got = await read(`a,b\n${rows.join('\n')}\n`)
    expect(got).toHaveLength(3_001)
    expect(got.filter(row => row.rejected === 'row_quotes')).toHaveLength(rows.filter(row => row[1] === 'b').length)
    expect(got[1]?.fields).toEqual(['r "0"', 'x'])
  })

  it('rejects a row over 64 KiB, quoted or not, and goes on behind it', async () => {
    const long = 'x'.repeat(70_000)
    for (const cut of [[65_536], [1_000_000], [10_007]]) {
      expect(brief(await read(`a,b\n${long},1\nc,2\n"${long}",3\nd,4\n`, cut))).toEqual([
        [1, ['a', 'b']],
        [2, 'row_too_long'],
        [3, ['c', '2']],
        [4, 'row_too_long'],
        [5, ['d', '4']],
      ])
    }
  })

  it('takes a line of exactly 64 KiB, and none that is longer', async () => {
    const line = (length: number) => `${'x'.repeat(length - 2)},1`
    for (const cut of [[65_536], [65_537], [9_999]]) {
      const got = await read(`a,b\n${line(65_536)}\n${line(65_537)}\n${line(65_536)}`, cut)
      expect(got.map(row => row.rejected)).toEqual([undefined, undefined, 'row_too_long', undefined])
    }
  })

  /** A line of a million columns, and one of so many megabytes. */
  async function* long(megabytes: number) {
    yield Buffer.from('a,b\n')
    for (let index = 0; index < 1_000; index++) yield Buffer.from('x,'.repeat(500))
    yield Buffer.from('\n')
    const piece = Buffer.alloc(1_000_000, 'y')
    for (let index = 0; index < megabytes; index++) yield piece
    yield Buffer.from('\nc,1\n')
  }

  it('keeps its memory while a line of a million columns and a line of 16 MB pass', async () => {
    const before = process.memoryUsage().rss
    const got = await collect(readCsv(long(16)))
    expect(brief(got)).toEqual([
      [1, ['a', 'b']],
      [2, 'row_too_long'],
      [3, 'row_too_long'],
      [4, ['c', '1']],
    ])
    expect(process.memoryUsage().rss - before).toBeLessThan(60 * 1024 * 1024)
  })

  it('stops at a line that is so long that it hides other rows', async () => {
    await expect(collect(readCsv(long(17)))).rejects.toThrow('Line 3: the row is longer than 16 MiB')
  })

  it('takes BOM, CRLF, blank lines and a missing last line end', async () => {
    expect(brief(await read('\ufeffa,b\r\n\r\n1,2\r\n\n"3",4'))).toEqual([
      [1, ['a', 'b']],
      [3, ['1', '2']],
      [5, ['3', '4']],
    ])
  })

  it.each([
    ['UTF-16 LE with a mark', Buffer.from('\ufeffreference,id\n', 'utf16le')],
    ['UTF-16 LE without a mark', Buffer.from('reference,id\n', 'utf16le')],
    ['UTF-16 BE', Buffer.from('\ufeffreference,id\n', 'utf16le').swap16()],
  ])('refuses %s, naming the line and what to do', async (_, bytes) => {
    await expect(read(bytes)).rejects.toThrow(/Line 1: the text is UTF-16\. Export it as UTF-8/)
  })
})
