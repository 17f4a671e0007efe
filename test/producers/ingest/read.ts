// What the reader of a file of transactions makes of it, row after row.
import type { Row } from '../../../producers/ingest/record.ts'
import { csvSink, type RowOptions, readRows } from '../../../producers/ingest/rows.ts'
import { readCsvInto } from '../../../producers/rows/csv.ts'
import { bytesOf } from '../../../producers/transaction-batch.ts'
import { type Gathering, openGathering } from '../../../src/job/ledger/gather.ts'
import { inPieces } from '../rows/bytes.ts'

/** A row, and the upper bound of its bytes by which chunks are cut; 0 for a row that isn't sent. */
export interface ReadRow {
  row: Row
  least: number
}

type Read = { row: Row; least: number } | { gathering: Gathering; least: number }

function openTaker() {
  const read: Read[] = []
  return {
    row: (row: Row) => void read.push({ row, least: 'reason' in row ? 0 : bytesOf(row) }),
    room(least: number) {
      const gathering = openGathering(1)
      read.push({ gathering, least })
      return gathering
    },
    /** The rows, and how many of them were read as plain lines. */
    end: () => ({
      rows: read.map(
        ({ least, ...given }): ReadRow => ({ row: 'row' in given ? given.row : only(given.gathering), least }),
      ),
      plain: read.filter(given => 'gathering' in given).length,
    }),
  }
}

function only(gathering: Gathering): Row {
  const [row] = gathering.end().rows().transactions
  if (!row) throw new Error('room was made for a line that did not come')
  return row
}

export async function read(bytes: Buffer | string, options: RowOptions, sizes?: readonly number[]) {
  const taker = openTaker()
  for await (const _ of readRows(inPieces(bytes, sizes), options, taker));
  return taker.end()
}

/** Reads CSV without the way for plain lines. */
export async function readSlowly(bytes: Buffer | string, options: RowOptions): Promise<ReadRow[]> {
  const taker = openTaker()
  const { put } = csvSink(options, taker)
  for await (const _ of readCsvInto(inPieces(bytes), { put }));
  return taker.end().rows
}
