// Properties that hold for any profile and any rows.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { countChunks, extentOf } from '../../../../producers/rows/chunks.ts'
import { COLUMN_NAMES } from '../../../../producers/rows/columns.ts'
import { countRows, readRows } from '../../../../producers/rows/file-rows.ts'
import type { ProfiledRow } from '../../../../producers/rows/profile/read.ts'
import { OnFileRecord } from '../../../../src/job/on-file.ts'
import { collect, inPieces } from '../bytes.ts'
import {
  type Declared,
  declared,
  type Expected,
  expectedOf,
  fileOf,
  holdable,
  type Made,
  profileOf,
  records,
} from './made-files.ts'
import { readRaw } from './profiled.ts'

const sizes = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 5 })

const cell = (row: ProfiledRow, name: (typeof COLUMN_NAMES)[number]) => row.cells[COLUMN_NAMES.indexOf(name)] ?? ''
function seen(row: ProfiledRow): Expected {
  const why = row.skipped ?? row.rejected
  if (why !== undefined) return { outcome: why, reference: row.reference, repairs: [...row.repairs] }
  const cells = {
    reference: cell(row, 'reference'),
    number: cell(row, 'card_number'),
    month: cell(row, 'expiry_month'),
    year: cell(row, 'expiry_year'),
    name: cell(row, 'cardholder_name'),
  }
  const owner = row.onFile && OnFileRecord.parse(JSON.parse(row.onFile.json))
  return { outcome: 'row', cells, repairs: [...row.repairs], owner }
}

const noOwner = { customer: '', networkIds: '', linkId: '', standard: '', zip: '', day: '' }

/** Without the customer that has no cards. */
const ofRecords = (rows: ProfiledRow[], { kind }: Declared) => (kind === 'json' ? rows.slice(0, -1) : rows)

describe('for any profile and any rows', () => {
  it('what is read equals a straightforward reading in memory, however the bytes are cut', async () => {
    await fc.assert(
      fc.asyncProperty(declared, records, sizes, async (how, any, cut) => {
        const made = holdable(any, how)
        const rows = await readRaw(profileOf(how), fileOf(made, how), { sizes: cut })
        expect(ofRecords(rows, how).map(seen)).toEqual(made.map(record => expectedOf(record, how)))
        if (how.kind === 'json') expect(rows.at(-1)?.skipped ?? rows.at(-1)?.rejected).toMatch(/no_card|field_required/)
      }),
      { numRuns: 600 },
    )
  })

  it('the size that is found without making rows is that of the rows that are made', async () => {
    await fc.assert(
      fc.asyncProperty(declared, records, fc.integer({ min: 1, max: 4 }), async (how, any, size) => {
        const options = { format: 'csv', recordKind: 'token-create', profile: profileOf(how) } as const
        const file = fileOf(holdable(any, how), how)
        const counted = await countRows(inPieces(file), options)
        const rows = await collect(readRows(inPieces(file), options))
        expect(counted.rows).toBe(rows.length)
        expect(counted.skipped).toBe(rows.filter(({ skipped }) => skipped !== undefined).length)
        const most = Math.max(...rows.map(({ json }) => Buffer.byteLength(json)))
        expect(counted.recordBytesMax).toBeGreaterThanOrEqual(most)
        expect(extentOf(counted, size)).toEqual(await countChunks(readRows(inPieces(file), options), size))
      }),
      { numRuns: 300 },
    )
  })

  it('keeping texts changes nothing of what is read, and keeps them as they stand in the file', async () => {
    const names = ['id', 'type', 'last', 'first'] as const
    const keep = names.map((field, index) => ({ field, path: `return.columns.${index}.from` }))
    await fc.assert(
      fc.asyncProperty(declared, records, async (any, made) => {
        const how: Declared = { ...any, encoding: 'utf-8', twoNames: false, onFile: undefined }
        const given = holdable(made, how)
        // The last name is no card data as long as the profile doesn't read it.
        const by = profileOf({ ...how, too_long: 'reject' })
        const file = fileOf(given, how)
        const { cardholder_name: _, ...columns } = by.columns
        const nameless = { ...by, columns }
        const rows = await readRaw(nameless, file, { keep })
        const plain = await readRaw(nameless, file)
        expect(rows.map(row => ({ ...row, kept: undefined }))).toEqual(plain)
        expect(ofRecords(rows, how).map(({ kept }) => kept)).toEqual(given.map(one => names.map(name => one[name])))
      }),
      { numRuns: 200 },
    )
  })

  it('declared repairs are idempotent: what they made is read again without any', async () => {
    await fc.assert(
      fc.asyncProperty(declared, records, async (any, made) => {
        const how: Declared = {
          ...any,
          encoding: 'utf-8',
          twoNames: false,
          form: undefined,
          last4: false,
          where: false,
          onFile: undefined,
        }
        const file = (rows: Made[]) => readRaw(profileOf(how), fileOf(holdable(rows, how), how))
        const first = (await file(made)).filter(row => row.cells.length > 0)
        if (first.length === 0) return
        const again = first.map(row => {
          const [month, year] = [cell(row, 'expiry_month'), cell(row, 'expiry_year')]
          const name = cell(row, 'cardholder_name')
          const empty = { expiry: '', last: '', type: '', ...noOwner }
          return { ...empty, id: cell(row, 'reference'), number: cell(row, 'card_number'), month, year, first: name }
        })
        const second = ofRecords(await file(again), how)
        expect(second.map(row => row.cells)).toEqual(first.map(row => row.cells))
        expect(second.flatMap(row => row.repairs)).toEqual([])
      }),
      { numRuns: 300 },
    )
  })

  it('nothing is changed that the profile does not declare', async () => {
    await fc.assert(
      fc.asyncProperty(declared, records, async (any, made) => {
        const nothing = { trim: false, null_words: [], remove: '', too_long: 'reject', twoNames: false } as const
        const onFile = any.onFile && { ...any.onFile, zipLength: undefined }
        const how: Declared = {
          ...any,
          ...nothing,
          null_words: [],
          form: undefined,
          last4: false,
          encoding: 'utf-8',
          onFile,
        }
        const given = holdable(made, how)
        const rows = ofRecords(await readRaw(profileOf(how), fileOf(given, how)), how)
        for (const [index, row] of rows.entries()) {
          expect(row.repairs).toEqual([])
          if (row.cells.length === 0) continue
          const { id, number, first } = given[index] as Made
          expect([cell(row, 'reference'), cell(row, 'card_number'), cell(row, 'cardholder_name')]).toEqual([
            id,
            number,
            first,
          ])
        }
      }),
      { numRuns: 300 },
    )
  })
})
