// What transfers and editors add to a file or take from it.
import { describe, expect, it } from 'vitest'
import { editedText } from '../../../../src/edited-text.ts'
import { failure, HEADER, PAN, profile, read } from './profiled.ts'

const ROW = `1,${PAN},5,2030,ADA`
const SEEN = [`2 1: ${PAN} 5/2030 ADA`]
const FILLS = ['\x1a', '\0', '\0'.repeat(500), '\x1a\0\0', '\x1a\x1a']

describe('what a transfer adds at the end of a file', () => {
  it.each(FILLS.map((fill, index) => [index, fill] as const))('is no part of delimited text (%d)', async (_, fill) => {
    for (const end of ['', '\n', '\r\n'])
      for (const sizes of [[1], [7], [65_536]])
        expect(await read(profile(), `${HEADER}\n${ROW}${end}${fill}`, { sizes })).toEqual(SEEN)
  })

  it('is no part of fixed-width text, NDJSON, nested JSON and UTF-16', async () => {
    const card = JSON.stringify({ id: '1', number: PAN, month: '5', year: '2030', name: 'ADA' })
    const fixed = {
      type: 'fixed',
      length: 30,
      columns: [
        ...[
          { name: 'number', start: 1, length: 16 },
          { name: 'month', start: 17, length: 2 },
        ],
        ...[
          { name: 'year', start: 19, length: 4 },
          { name: 'id', start: 23, length: 3 },
        ],
        { name: 'name', start: 26, length: 5 },
      ],
    }
    const line = `${PAN}052030001ADA  `
    for (const fill of FILLS) {
      expect(await read(profile({ format: fixed }), `${line}\n${fill}`)).toEqual([`1 001: ${PAN} 5/2030 ADA`])
      expect(await read(profile({ format: { type: 'ndjson' } }), `${card}\n${fill}`)).toEqual([
        `1 1: ${PAN} 5/2030 ADA`,
      ])
      const json = profile({ format: { type: 'json', records: '[]' } })
      expect(await read(json, `[${card}]\n${fill}`)).toEqual([`1.1 1: ${PAN} 5/2030 ADA`])
      const wide = profile({ format: { type: 'delimited', encoding: 'utf-16le' } })
      expect(await read(wide, Buffer.from(`${HEADER}\n${ROW}\n${fill}`, 'utf16le'))).toEqual(SEEN)
    }
    const cut = `${PAN}052030001`
    expect(await read(profile({ format: fixed }), `${cut}\n`)).toEqual(['1 ?: rejected row_fields'])
    const padding = profile({ format: { ...fixed, pad_short: true } })
    expect(await read(padding, `${cut}\n${line}\n${line} \n`)).toEqual([
      `1 001: ${PAN} 5/2030`,
      `2 001: ${PAN} 5/2030 ADA`,
      '3 ?: rejected row_fields',
    ])
  })

  it('is refused where it stands between rows', async () => {
    expect(await read(profile(), `${HEADER}\n\0\n${ROW}\n`)).toEqual([
      '2 ?: rejected row_nul',
      `3 1: ${PAN} 5/2030 ADA`,
    ])
    expect(await failure(profile(), '\x1a')).toMatch(/no rows/)
  })
})

describe('a small text that a person edits', () => {
  const fail = (wrong: string, next: string) => new Error(`f ${wrong}. ${next}`)

  it('is read with and without a byte order mark', () => {
    for (const text of ['{}', '\uFEFF{}']) expect(JSON.parse(editedText(Buffer.from(text), fail))).toEqual({})
  })

  it('is refused in words in another encoding', () => {
    for (const bytes of [Buffer.from('\uFEFF{"a":1}', 'utf16le'), Buffer.from('{"a":1}', 'utf16le').swap16()])
      expect(() => editedText(bytes, fail)).toThrow('f is UTF-16. Save it as UTF-8.')
    expect(() => editedText(Buffer.from('{"a":"é"}', 'latin1'), fail)).toThrow('f is not UTF-8 text.')
  })
})
