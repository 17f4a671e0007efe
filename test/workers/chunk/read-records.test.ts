// Reading a chunk's block: what is wrong with one record refuses that record alone.
import { describe, expect, it } from 'vitest'
import { type BlockForm, columnLines } from '../../../src/job/record-columns.ts'
import { CHUNK, RECORD_REQUESTS } from '../../../src/job/token-batch.ts'
import { readRecords } from '../../../workers/chunk/chunk.ts'
import { testPan } from '../../support/test-pan.ts'

const card = { cardNumber: testPan(1), expiryMonth: 12, expiryYear: 2030 }
const recordOf = (line: number, more = {}) => JSON.stringify({ line, request: { card }, ...more })

function read(lines: readonly (string | Buffer)[], records = lines.length, form: BlockForm = 'rows') {
  const newline = Buffer.from('\n')
  const plaintext = Buffer.concat(lines.flatMap(line => [Buffer.from(line), newline]))
  const block = { sha256: '', records, public_key_alias: '' }
  return readRecords(plaintext, { block }, RECORD_REQUESTS['token-create'], form)
}

describe('a record of a chunk', () => {
  it('of 64 KiB is taken, and one that is a byte longer is refused alone', () => {
    const filler = (bytes: number) => {
      const empty = recordOf(2, { filler: '' }).length
      return recordOf(2, { filler: 'x'.repeat(bytes - empty) })
    }
    const long = read([recordOf(1), filler(CHUNK.lineBytesMax + 1), recordOf(3)])
    expect(long).toMatchObject({
      records: [
        { line: 1, request: { card } },
        { line: 2, reason: 'record_too_large' },
        { line: 3, request: { card } },
      ],
    })
    const whole = read([filler(CHUNK.lineBytesMax)])
    expect(whole).toMatchObject({ records: [{ line: 2 }] })
    expect(whole).not.toMatchObject({ records: [{ reason: 'record_too_large' }] })
  })

  it('that is no JSON or no UTF-8 is refused by its place in the chunk', () => {
    expect(read([recordOf(7), '{"line":', Buffer.from([0x7b, 0xff, 0x7d])])).toMatchObject({
      records: [{ line: 7 }, { line: 2, reason: 'row_json' }, { line: 3, reason: 'row_utf8' }],
    })
  })

  it('in columns is the record of a row; a worker that knows rows only refuses such a chunk as a whole', () => {
    const column = (line: number) => ({ line, reference: '', ...card, cardholderName: '' })
    const others = [recordOf(7), '{"line":8,"rejected":{"reason":"row_fields"}}']
    for (const given of [
      [column(1), column(2)],
      [column(1)],
      others,
      [column(1), ...others, column(9)],
      [column(1), ...others],
    ]) {
      const rows = given.map(record => (typeof record === 'string' ? record : recordOf(record.line)))
      const lines = columnLines(given)
      expect(read(lines, given.length, 'columns')).toEqual(read(rows))
      expect(read(lines, given.length)).toMatchObject({ refused: true, reason: 'block_records' })
    }
    expect(read([recordOf(1)], 1, 'columns')).toMatchObject({ refused: true, reason: 'field_format' })
    const two = columnLines([column(1), column(2)])
    expect(read(two, 3, 'columns')).toMatchObject({ refused: true, reason: 'field_format' })
  })

  it('too many, or one too few, refuses the whole chunk', () => {
    expect(read([recordOf(1)], 2)).toMatchObject({ refused: true, reason: 'block_records' })
    expect(read([recordOf(1), recordOf(2)], 1)).toMatchObject({ refused: true, reason: 'block_records' })
  })
})
