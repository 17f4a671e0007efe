// Arbitrary bytes: nothing crashes, memory is bounded, and the places where the bytes are cut make no difference.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { FileError } from '../../../../producers/rows/file-error.ts'
import type { Profile } from '../../../../producers/rows/profile/profile.ts'
import { readProfiled } from '../../../../producers/rows/profile/read.ts'
import { HEADER, PAN, profile, read, readRaw } from './profiled.ts'

const names = HEADER.split(',')
const columns = names.map((name, index) => ({ name, start: 1 + index * 2, length: 2 }))
const FORMATS: Record<string, object> = {
  'doubled quotes': { type: 'delimited', header: 'none', names },
  'quotes behind backslashes': { type: 'delimited', delimiter: ';', quotes: 'backslash', header: 'none', names },
  'no quotes': {
    type: 'delimited',
    quotes: 'none',
    header: 'none',
    names,
    trailer_record: { mark: 'a', count_field: 2 },
  },
  'UTF-16': { type: 'delimited', encoding: 'utf-16', header: 'none', names },
  'fixed width': { type: 'fixed', length: 10, columns, header_record: { mark: 'a' } },
  NDJSON: { type: 'ndjson' },
  'nested JSON': { type: 'json', records: 'a[].b[]' },
}
const JSON_BY = profile({ format: FORMATS['nested JSON'] })

const soup = fc
  .array(
    fc.oneof(
      fc.constantFrom(...'ab1,;:"\\\n\r \t{}[]'.split(''), '\r\n', '\0', '\xff', 'é', '""', ',,,,', ';;;;'),
      fc.constantFrom('{"a":[', '{"b":[', '{"id":"x","number":"1"}', ']}', '"id":', 'null', '[{"b":[{}]}]'),
    ),
    { maxLength: 60 },
  )
  .map(parts => Buffer.concat(parts.map(part => Buffer.from(part, part === '\xff' ? 'latin1' : 'utf8'))))

async function outcome(by: Profile, bytes: Buffer, sizes?: readonly number[]): Promise<unknown> {
  try {
    return await readRaw(by, bytes, sizes ? { sizes } : {})
  } catch (error) {
    // Anything else is a defect.
    if (!(error instanceof FileError)) throw error
    return error.message
  }
}

describe('hostile bytes', () => {
  it.each(Object.keys(FORMATS))('give rows or one FileError, wherever they are cut: %s', async name => {
    const by = profile({ format: FORMATS[name], no_card: 'skip' })
    await fc.assert(
      fc.asyncProperty(soup, fc.integer({ min: 2, max: 9 }), async (bytes, size) => {
        const whole = await outcome(by, bytes)
        expect(await outcome(by, bytes, [1])).toEqual(whole)
        expect(await outcome(by, bytes, [size])).toEqual(whole)
      }),
      { numRuns: 300 },
    )
  })

  it('of any elements that JSON can hold give one answer for each', async () => {
    const elements = fc.array(
      fc.oneof(
        fc.json(),
        fc.record({ b: fc.array(fc.jsonValue()) }).map(one => JSON.stringify(one)),
      ),
    )
    await fc.assert(
      fc.asyncProperty(elements, fc.boolean(), async (all, spaced) => {
        const card = `{"b":[{"id":"1","number":"${PAN}","month":5,"year":2030}]}`
        const text = `{"x":${all[0] ?? 1},"a":[${[...all, card].join(spaced ? ' ,\n' : ',')}]}`
        const rows = await readRaw(JSON_BY, text, { sizes: [5, 3] })
        expect([...new Set(rows.map(row => row.element))]).toEqual([...all, card].map((_, index) => index + 1))
        expect(rows.at(-1)?.rejected).toBeUndefined()
      }),
      { numRuns: 300 },
    )
  })

  it('nested 10,000 levels deep cost one element, or nothing', async () => {
    const deep = '['.repeat(10_000) + ']'.repeat(10_000)
    const objects = `${'{"a":'.repeat(10_000)}1${'}'.repeat(10_000)}`
    const card = `{"b":[{"id":"1","number":"${PAN}","month":5,"year":2030}]}`
    const text = `{"x":${deep},"y":${objects},"a":[${deep},${objects},{"b":${deep}},${card}],"z":${deep}}`
    expect(await read(JSON_BY, text)).toEqual([
      '1.1 ?: rejected row_json',
      '1.2 ?: rejected field_required',
      '1.3.1 ?: rejected row_json',
      `1.4.1 1: ${PAN} 5/2030`,
    ])
    const ndjson = profile({ format: { type: 'ndjson' } })
    expect(await read(ndjson, `${objects}\n{"id":"1","number":"${PAN}","month":5,"year":2030}`)).toEqual([
      '1 ?: rejected field_required',
      `2 1: ${PAN} 5/2030`,
    ])
  })

  it('of many colons or half characters take no more time than others', async () => {
    await expect(readRaw(JSON_BY, `{"x"${':'.repeat(2_000_000)}`)).rejects.toThrow(/breaks off/)
    const by = profile({ format: FORMATS['UTF-16'] })
    expect(await readRaw(by, Buffer.from('\ud8d8'.repeat(100_000), 'utf16le'))).toHaveLength(1)
  })

  it.each([
    ['an unclosed string', 'doubled quotes', `1,${PAN},5,30,A\n"`, 'y'],
    ['an unclosed string behind a backslash', 'quotes behind backslashes', `1;${PAN};5;30;A\n"\\"`, '\\"'],
    ['a line without end', 'fixed width', 'a\n', 'x'],
    ['a line of NULs', 'NDJSON', '{}\n', '\0'],
    ['an unclosed string in an element', 'nested JSON', '{"a":[{"b":[]},"', 'y'],
    ['an unclosed element', 'nested JSON', '{"a":[{"b":[]},', '['],
    ['an unclosed string before the array', 'nested JSON', '{"', 'y'],
    ['brackets before the array', 'nested JSON', '{"x":', '['],
  ])('keep no memory: %s of 60 MB', async (_, name, before, filling) => {
    async function* endless() {
      yield Buffer.from(before)
      const piece = Buffer.from(filling.repeat(1_000_000 / filling.length))
      for (let index = 0; index < 60; index++) yield piece
    }
    const by = profile({ format: FORMATS[name], no_card: 'skip' })
    const start = process.memoryUsage().rss
    const reading = (async () => {
      let rows = 0
      for await (const part of readProfiled(endless(), by, { recordKind: 'token-create' })) rows += part.length
      return rows
    })()
    await reading.catch(error => expect(error).toBeInstanceOf(FileError))
    expect(process.memoryUsage().rss - start).toBeLessThan(50 * 1024 * 1024)
  })
})
