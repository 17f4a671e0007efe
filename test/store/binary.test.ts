// The binary form of array parameters, as the server reads it: every type, every length, nulls, and texts of any kind.
import { randomBytes, randomUUID } from 'node:crypto'
import fc from 'fast-check'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openLog } from '../../src/log.ts'
import {
  bigints,
  byteas,
  compareAt,
  dates,
  indexesOf,
  integers,
  orderOf,
  pick,
  placesByValue,
  smallints,
  texts,
  timestamps,
  uuidBytes,
  uuids,
  uuidTexts,
} from '../../src/store/binary.ts'
import { openStore, type Store } from '../../src/store/pool.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'

describe('an array in its binary form', () => {
  let database: FreshDatabase
  let store: Store
  beforeAll(async () => {
    database = await freshDatabase()
    store = openStore(database.url, { log: openLog('silent'), connectionsMax: 1 })
  })
  afterAll(async () => {
    await store?.close()
    await database?.drop()
  })

  /** The values that the server reads, as texts. */
  const read = async (type: string, array: Buffer, shown = 'v::text') => {
    const { rows } = await store.query<{ v: string | null }>({
      text: `select ${shown} as v from unnest($1::${type}[]) with ordinality as a(v, place) order by place`,
      values: [array],
    })
    return rows.map(({ v }) => v)
  }

  it('has the UUIDs that it was made of', async () => {
    const given = Array.from({ length: 300 }, () => randomUUID())
    expect(await read('uuid', uuids(uuidBytes(given)))).toEqual(given)
    expect(await read('uuid', uuids(uuidBytes([])))).toEqual([])
    expect(uuidTexts(uuidBytes(given))).toEqual(given)
  })

  it('has bytes of any length', async () => {
    const given = [randomBytes(44), Buffer.alloc(0), randomBytes(1), Buffer.from([0, 0]), randomBytes(5_000)]
    let end = 0
    const ends = given.map(({ length }) => {
      end += length
      return end
    })
    const found = await read('bytea', byteas(Buffer.concat(given), ends), `encode(v, 'hex')`)
    expect(found).toEqual(given.map(one => one.toString('hex')))
  })

  it('has numbers up to the ends of their ranges, and nulls', async () => {
    const small = [0, -1, null, 32_767, -32_768]
    expect(await read('smallint', smallints(small))).toEqual(small.map(asText))
    const whole = [null, 0, -1, 2_147_483_647, -2_147_483_648, null]
    expect(await read('integer', integers(whole))).toEqual(whole.map(asText))
    expect(await read('integer', integers([null]))).toEqual([null])
  })

  it('has amounts up to the ends of their range', async () => {
    const ends = [
      0n,
      -1n,
      1n,
      2n ** 32n,
      -(2n ** 32n) - 1n,
      10n ** 15n - 1n,
      1n - 10n ** 14n,
      999_999_999_999_999_999n,
      -999_999_999_999_999_999n,
      2n ** 63n - 1n,
      -(2n ** 63n),
    ]
    expect(await read('bigint', bigints([null, ...ends.map(String)]))).toEqual([null, ...ends.map(String)])
  })

  it('has the dates and times that the server reads from their texts', async () => {
    const day = fc
      .integer({ min: Date.UTC(1900, 0, 1), max: Date.UTC(2200, 0, 1) })
      .map(ms => new Date(ms).toISOString().slice(0, 19))
    const moment = fc
      .tuple(day, fc.option(fc.stringMatching(/^\d{1,6}$/)))
      .map(([text, fraction]) => `${text}${fraction === null ? '' : `.${fraction}`}Z`)
    const asServer = async (type: string, given: readonly (string | null)[]) =>
      (
        await store.query<{ v: string | null }>({
          text: `select v::${type}::text as v from unnest($1::text[]) with ordinality as a(v, place) order by place`,
          values: [texts(given)],
        })
      ).rows.map(({ v }) => v)
    const ends = ['2000-01-01T00:00:00Z', '1999-12-31T23:59:59.999999Z', '2099-12-31T23:59:59.999999Z', null]
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(moment)), async some => {
        const moments = [...ends, '2024-02-29T12:00:00.000001Z', ...some]
        expect(await read('timestamptz', timestamps(moments))).toEqual(await asServer('timestamptz', moments))
        const days = moments.map(one => one?.slice(0, 10) ?? null)
        expect(await read('date', dates(days))).toEqual(await asServer('date', days))
      }),
      { numRuns: 100 },
    )
  })

  it('has every text that PostgreSQL can hold, and nulls', async () => {
    const hostile = [
      '',
      'NULL',
      '{}',
      '"',
      '\\',
      `'; drop table x --`,
      'a\nb\t\u007f\u0080',
      'JOSÉ',
      '😀',
      '\ufeff',
      '\u2028',
    ]
    const given = [...hostile, null, 'x'.repeat(10_000)]
    expect(await read('text', texts(given))).toEqual(given)
    const text = fc.oneof(fc.string(), fc.string({ unit: 'binary' })).filter(one => !one.includes('\0'))
    await fc.assert(
      fc.asyncProperty(fc.array(fc.option(text)), async some => {
        expect(await read('text', texts(some))).toEqual(some)
      }),
      { numRuns: 200 },
    )
  })

  it.each(['a\0b', '\0', 'JOSÉ \ud83d', '\ude00'])('isn’t made of a text that PostgreSQL can’t hold (%j)', text => {
    expect(() => texts(['good', text])).toThrow(expect.objectContaining({ code: 'data' }))
  })

  it('is refused by the server if its elements have another type', async () => {
    await expect(read('bigint', integers([1]))).rejects.toMatchObject({ code: '42804' })
  })
})

describe('values of 16 bytes', () => {
  it('are put into the order in which PostgreSQL has UUIDs', () => {
    const given = Array.from({ length: 200 }, () => randomUUID())
    // The first four bytes of these are the same.
    const near = Array.from({ length: 50 }, () => `00000000${randomUUID().slice(8)}`)
    const bytes = uuidBytes([...given, ...near, ...near.slice(0, 5)])
    const sorted = uuidTexts(pick(bytes, orderOf(bytes)))
    expect(sorted).toEqual([...given, ...near, ...near.slice(0, 5)].sort())
    expect(compareAt(bytes, given.length, given.length + near.length)).toBe(0)
    const order = orderOf(bytes)
    const found = indexesOf(uuidBytes([given[3] ?? '', randomUUID(), near[7] ?? '']), bytes, order)
    expect(found.slice(0, 1)).toEqual([3])
    expect(uuidTexts(pick(bytes, found))).toEqual([given[3], near[7]])
    // Values that are the same keep their own order.
    expect(placesByValue([7, 2 ** 32 - 1, 0, 7, 3])).toEqual([2, 4, 0, 3, 1])
  })
})

const asText = (value: number | null) => (value === null ? null : String(value))
