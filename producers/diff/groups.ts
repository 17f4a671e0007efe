// Which rows of a file are about the same card or the same owner: they are planned together, because which of them stands
// depends on all of them. The dry run doesn't say so of each: chunks are decided beside one another.
import {
  DIGEST_BYTES,
  digestIn,
  keyedDigest,
  openPartitions,
  PARTITIONS,
  type SpillOptions,
} from '../rows/partitions.ts'
import type { RowChanges } from './changes.ts'

const ROW_BYTES = 4

export interface RowGroups {
  /** `texts` identify the row's card and owner. Rows with a common text are in one group. */
  add(row: number, texts: readonly string[]): void
  /**
   * Plans each row that belongs together with a planned row, and the rows that belong together with those, until it
   * finds no more.
   */
  spread(changes: RowChanges): void
  close(): void
}

export function openGroups(options: SpillOptions = {}): RowGroups {
  const digestOf = keyedDigest()
  const partitions = openPartitions(ROW_BYTES, options)
  const beside = Buffer.alloc(ROW_BYTES)
  return {
    add(row, texts) {
      beside.writeUInt32LE(row)
      for (const text of texts) partitions.add(digestOf(text), beside)
    },
    spread(changes) {
      for (let planned = true; planned; ) {
        planned = false
        for (let part = 0; part < PARTITIONS; part++)
          planned = spreadWithin(partitions.recordsOf, part, changes) || planned
      }
    },
    close: partitions.close,
  }
}

/** Whether it planned a row. */
function spreadWithin(recordsOf: (part: number) => Iterable<Buffer>, part: number, changes: RowChanges): boolean {
  const touched = new Set<string>()
  for (const record of recordsOf(part)) if (changes.isPlanned(rowIn(record))) touched.add(digestIn(record))
  let planned = false
  for (const record of recordsOf(part)) {
    const row = rowIn(record)
    if (changes.isPlanned(row) || !touched.has(digestIn(record))) continue
    changes.plan(row)
    planned = true
  }
  return planned
}

function rowIn(record: Buffer): number {
  return record.readUInt32LE(DIGEST_BYTES)
}
