// What a run tells its workers about the whole batch, and how often a file is read for it before its rows are sent.
import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { limitInChunks, measureExtent } from '../../../producers/migrate/extent.ts'
import { extentOf } from '../../../producers/rows/chunks.ts'
import { countRows, readRows } from '../../../producers/rows/file-rows.ts'
import { validateFile } from '../../../producers/rows/validate-file.ts'
import { CHUNK_NUMBER_MAX } from '../../../src/job/envelope/batch-extent.ts'
import { testPan } from '../../support/test-pan.ts'
import { inPieces } from '../rows/bytes.ts'
import { HEADER, profile } from '../rows/profile/profiled.ts'

describe('the extent of a file that is read by a profile', () => {
  let dir: string
  beforeAll(async () => {
    dir = await mkdtemp(join(tmpdir(), 'tokenmill-extent-'))
  })
  afterAll(() => rm(dir, { recursive: true }))

  const card = (n: number, name = 'ANN') => `c-${n},${testPan(n)},5,2030,${name}`
  const none = (n: number) => `c-${n},,,,`
  const onFile = { provider: 'p', customer_id: '{id}', card_id: '{id}', cardholder_name: { from: ['name'] } }
  const by = profile({ no_card: 'skip', on_file: onFile })

  const textOf = (lines: readonly string[]) => [HEADER, ...lines, ''].join('\n')

  /** The extent in chunks of `size`. `between`: what happens to the file after its first reading. */
  async function measured(
    lines: readonly string[],
    size: number,
    { name = 'cards.csv', migration, between }: Measured = {},
  ) {
    const path = join(dir, name)
    await writeFile(path, textOf(lines))
    const options = { recordKind: 'token-create', format: 'csv', profile: by, migration } as const
    const file = await validateFile({ path }, options)
    await between?.(path)
    return measureExtent({ path }, options, file, size)
  }

  /** The file is gone after its first reading, so a second one fails. */
  const extentOf = (lines: readonly string[], size: number) => measured(lines, size, { between: path => rm(path) })

  it('is known when the file was read once, rows without cards left out', async () => {
    const lines = [none(1), card(2), card(3), none(4), card(5)]
    expect(await extentOf(lines, 2)).toMatchObject({ chunks: 2, rows: 3, name: 'cards.csv' })
    expect(await extentOf([none(1)], 2)).toMatchObject({ chunks: 0, rows: 0 })
  })

  it('needs a second reading where skipped rows or long rows may cut a chunk short', async () => {
    await expect(extentOf([card(1), ...Array.from({ length: 98 }, (_, n) => none(n))], 2)).rejects.toThrow('cards.csv')
    await expect(extentOf([card(1), card(2, 'A'.repeat(500))], 1_000)).rejects.toThrow('cards.csv')
  })

  it('counts the chunks that are cut short, by reading again, and not those of skipped rows alone', async () => {
    // A chunk of two holds at most a hundred rows: the card of the first has none beside it.
    const apart = [card(1), ...Array.from({ length: 105 }, (_, n) => none(n + 10)), card(2)]
    expect(await measured(apart, 2)).toMatchObject({ chunks: 2, rows: 2 })
    const empty = Array.from({ length: 130 }, (_, n) => none(n + 10))
    expect(await measured([card(1), card(2), ...empty, card(3)], 1)).toMatchObject({ chunks: 3, rows: 3 })
    const long = [card(1), card(2, 'A'.repeat(500)), card(3)]
    expect(await measured(long, 1_000)).toMatchObject({ chunks: 1, rows: 3 })
  })

  it('is refused if another file stands there at the second reading', async () => {
    const lines = [card(1), card(2, 'A'.repeat(500))]
    const between = (path: string) => writeFile(path, textOf([card(3), lines[1] ?? '']))
    await expect(measured(lines, 1_000, { between })).rejects.toThrow('cards.csv')
  })

  it('names the file, its digest, and the migration that it belongs to', async () => {
    const sha256 = createHash('sha256')
      .update(textOf([card(1)]))
      .digest('hex')
    expect(await measured([card(1)], 2)).toEqual({ chunks: 1, rows: 1, sha256, name: 'cards.csv' })
    const counted = [card(1), card(2, 'A'.repeat(500))]
    expect(await measured(counted, 1_000, { migration: 'spring' })).toMatchObject({
      chunks: 1,
      rows: 2,
      name: 'spring/cards.csv',
      sha256: createHash('sha256').update(textOf(counted)).digest('hex'),
    })
    const hidden = await measured([card(1)], 2, { name: `${testPan(1)}.csv` })
    expect(hidden).toEqual({ chunks: 1, rows: 1, sha256 })
  })
})

interface Measured {
  name?: string
  migration?: string
  between?: (path: string) => Promise<void>
}

describe('the extent of a file that is read without a profile', () => {
  const options = { recordKind: 'token-create', format: 'csv' } as const
  const HEAD = 'reference,encrypted_card,public_key_alias'
  const counted = (row: string) => countRows(inPieces(Buffer.from(`${HEAD}\n${row}\n`)), options)

  it('is known when rows with a JWE each were read once', async () => {
    const row = `r-1,${'a'.repeat(700)}.${'b'.repeat(700)},alias`
    expect(extentOf(await counted(row), 1_000)).toEqual({ chunks: 1, rows: 1 })
  })

  it('needs a second reading where longer rows, escapes or wide characters may cut a chunk short', async () => {
    for (const text of ['a'.repeat(2_100), '\u0001'.repeat(400), '€'.repeat(700), '\u{1f4b3}'.repeat(300)])
      expect(extentOf(await counted(`r-1,${text},alias`), 1_000)).toBeUndefined()
  })

  it('never takes a record for shorter than it is', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 900 }).map(any => any.replace(/["\r\n\0]/g, '').trim())
    await fc.assert(
      fc.asyncProperty(text, async any => {
        const row = `r-1,x${any.replaceAll(',', ';')},alias`
        const { recordBytesMax } = await counted(row)
        for await (const [made] of readRows(inPieces(Buffer.from(`${HEAD}\n${row}\n`)), options))
          expect(recordBytesMax).toBeGreaterThanOrEqual(Buffer.byteLength(made?.json ?? ''))
      }),
    )
  })
})

describe('a limit', () => {
  it('is rounded up to whole chunks', () => {
    const chunksOf = (limit: number) => limitInChunks(limit, { chunks: 10 }, 500)
    expect([1, 499, 500, 501, 1_000, 4_500].map(chunksOf)).toEqual([1, 1, 1, 2, 2, 9])
  })

  it('is none where it is the whole file or isn’t given', () => {
    expect(limitInChunks(undefined, { chunks: 10 }, 500)).toBeUndefined()
    expect(limitInChunks(undefined, undefined, 500)).toBeUndefined()
    for (const limit of [4_501, 5_000, 1e9]) expect(limitInChunks(limit, { chunks: 10 }, 500)).toBeUndefined()
  })

  it('of standard input, whose extent isn’t known, stays, and is no more than a batch may have', () => {
    expect(limitInChunks(4_501, undefined, 500)).toBe(10)
    expect(limitInChunks(1e15, undefined, 500)).toBe(CHUNK_NUMBER_MAX)
  })
})
