// Encodings, expiry forms and fixed-width text.
import { describe, expect, it } from 'vitest'
import { toUtf8 } from '../../../../producers/rows/profile/encoding.ts'
import { EXPIRY_FORMS, expiryReader } from '../../../../producers/rows/profile/expiry-form.ts'
import { concat, inPieces } from '../bytes.ts'
import { failure, HEADER, PAN, profile, read } from './profiled.ts'

describe('an encoding', () => {
  const encoded = (encoding: string) => profile({ format: { type: 'delimited', encoding } })
  const text = `${HEADER}\n1,${PAN},5,30,Zoë €\n2,${PAN},5,30,B\n`
  const rows = (repair = '') => [`2 1: ${PAN} 5/2030 Zoë €${repair}`, `3 2: ${PAN} 5/2030 B`]

  it.each([
    ['utf-16', Buffer.from(`\ufeff${text}`, 'utf16le')],
    ['utf-16', Buffer.from(`\ufeff${text}`, 'utf16le').swap16()],
    ['utf-16', Buffer.from(text, 'utf16le')],
    ['utf-16le', Buffer.from(text, 'utf16le')],
    ['utf-16be', Buffer.from(text, 'utf16le').swap16()],
  ])('%s is read, however the bytes are cut', async (encoding, bytes) => {
    for (const sizes of [[1], [3, 2], [65_536]]) {
      expect(await read(encoded(encoding), bytes, { sizes })).toEqual(rows())
    }
  })

  it('windows-1252 has other characters than iso-8859-1 for 32 bytes', async () => {
    const bytes = Buffer.concat(['Zo\xeb \x80'].map(name => Buffer.from(text.replace('Zoë €', name), 'latin1')))
    expect(await read(encoded('windows-1252'), bytes)).toEqual(rows(' [encoding]'))
    // There the byte is a control character, which no name may hold.
    expect(await read(encoded('iso-8859-1'), bytes)).toEqual([
      '2 1: rejected field_characters [encoding]',
      `3 2: ${PAN} 5/2030 B`,
    ])
  })

  it('of one byte has a character for each of its bytes', async () => {
    const every = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
    const decoded = (await concat(toUtf8(inPieces(every), 'windows-1252'))).toString('utf8')
    expect(decoded.slice(0x80, 0xa0)).toBe('€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ')
    expect((await concat(toUtf8(inPieces(every), 'iso-8859-1'))).toString('utf8')).toBe(every.toString('latin1'))
  })

  it('that is declared against a UTF-8 mark is refused', async () => {
    expect(await failure(encoded('windows-1252'), `\ufeff${text}`)).toMatch(
      /byte order mark of UTF-8.*Set format\.encoding/,
    )
    expect(await failure(encoded('utf-8'), Buffer.from(`\ufeff${text}`, 'utf16le'))).toMatch(/the text is UTF-16/)
  })

  it('whose characters are broken costs the row, and only it', async () => {
    const lone = `${HEADER}\n1,${PAN},5,30,A\ud800B\n2,${PAN},5,30,😀\n`
    const half = Buffer.concat([
      Buffer.from(lone, 'utf16le'),
      Buffer.from(`3,${PAN},5,30,C`, 'utf16le'),
      Buffer.from([0]),
    ])
    for (const sizes of [[1], [7], [65_536]]) {
      expect(await read(encoded('utf-16'), half, { sizes })).toEqual([
        '2 ?: rejected row_utf8',
        `3 2: ${PAN} 5/2030 😀`,
        '4 ?: rejected row_utf8',
      ])
    }
  })
})

describe('an expiry form', () => {
  it('reads every month and year written in it, and no text of another length', () => {
    for (const form of EXPIRY_FORMS) {
      const read = expiryReader(form, 80)
      for (const year of [1980, 1999, 2000, 2030, 2079]) {
        for (const month of [1, 9, 10, 12]) {
          const [mm, yyyy] = [String(month).padStart(2, '0'), String(year)]
          const text = form.replace('MM', mm).replace('YYYY', yyyy).replace('YY', yyyy.slice(2))
          expect(read(text)).toEqual({ month, year })
          expect(read(`${text}0`)).toBeUndefined()
          expect(read(` ${text}`)).toBeUndefined()
        }
      }
    }
  })

  it.each([
    ['MMYY', '3005'],
    ['YYMM', '0530'],
    ['MM/YY', '0530'],
    ['MM/YY', '05/2030'],
    ['MMYYYY', '52030'],
    ['YYYY-MM', '2030/05'],
    ['MM-YY', '05--30'],
    ['YYMM', '３００５'],
  ] as const)('%s is not what %s means', (form, text) => {
    expect(expiryReader(form, undefined)(text)).toBeUndefined()
  })

  it('takes years of two digits as 20YY where no pivot is given', () => {
    expect(expiryReader('MM/YY', undefined)('5/99')).toEqual({ month: 5, year: 2099 })
    expect(expiryReader('MM/YY', 70)('5/99')).toEqual({ month: 5, year: 1999 })
    expect(expiryReader('MM/YY', 0)('5/30')).toEqual({ month: 5, year: 1930 })
  })
})

describe('fixed-width text', () => {
  const columns = [
    { name: 'id', start: 1, length: 3 },
    { name: 'number', start: 4, length: 16 },
    { name: 'month', start: 20, length: 2 },
    { name: 'year', start: 22, length: 4 },
    { name: 'name', start: 26, length: 5 },
  ]
  const fixed = (more: Record<string, unknown> = {}) =>
    profile({ format: { type: 'fixed', length: 30, columns, ...more } })

  it('counts characters, takes padding off, and rejects lines of another length', async () => {
    const text = `  1${PAN}052030Zoë  \r\n2  ${PAN}052030😀😀\n\n3  ${PAN}052030😀😀   \n4  \n\0\n`
    expect(await read(fixed(), text)).toEqual([
      `1 1: ${PAN} 5/2030 Zoë`,
      '2 ?: rejected row_fields',
      `4 3: ${PAN} 5/2030 😀😀`,
      '5 ?: rejected row_fields',
      '6 ?: rejected row_nul',
    ])
  })

  it('has header and trailer records, and lines to pass over', async () => {
    const by = fixed({ skip_lines: 1, trailer_record: { mark: 'END', count_start: 4, count_length: 5 } })
    expect(await read(by, `title\n1  ${PAN}052030A    \nEND00001\n`)).toEqual([`2 1: ${PAN} 5/2030 A`])
    expect(await failure(by, `title\n1  ${PAN}052030A    \nEND00002\n`)).toMatch(
      /^Line 3 states 2 rows, and the file has 1/,
    )
    expect(await failure(by, `title\n1  ${PAN}052030A    \n`)).toMatch(/^The trailer record is missing/)
  })
})

describe('zeros in front of a card number', () => {
  const padded = profile({}, { card_number: { from: 'number', remove: ' ', padded: true } })
  const file = [
    HEADER,
    `a,000${PAN},5,30,Ada`,
    `b,0000 ${PAN},5,30,Bob`,
    `c,${PAN},5,30,Cy`,
    'd,0000000000000000,5,30,Di',
    'e,000x,5,30,Ed',
  ]

  it('are taken away where the profile says so, to twelve digits at least, and each row names the repair', async () => {
    expect(await read(padded, `${file.join('\n')}\n`)).toEqual([
      `2 a: ${PAN} 5/2030 Ada [number_padding]`,
      `3 b: ${PAN} 5/2030 Bob [number_padding number_separators]`,
      `4 c: ${PAN} 5/2030 Cy`,
      '5 d: 000000000000 5/2030 Di [number_padding]',
      '6 e: 000x 5/2030 Ed',
    ])
  })

  it('stay where it does not, for the worker to refuse', async () => {
    expect(await read(profile(), `${HEADER}\na,000${PAN},5,30,Ada\n`)).toEqual([`2 a: 000${PAN} 5/2030 Ada`])
  })
})
