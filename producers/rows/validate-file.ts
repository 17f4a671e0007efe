// The first reading of a file: integrity, digests, header and number of rows, before anything is sent. No record is
// made of it.
import { formatOf } from './input-format.ts'
import { checkColumns } from './layout.ts'
import { countRows, type RowOptions } from './rows.ts'
import type { Marks } from './segments.ts'
import { proveSource, type SourceOptions } from './source.ts'

export interface Proof {
  marks: Marks
  /** Rejected ones included: what the conservation law counts. */
  rows: number
}

export async function proveFile(source: SourceOptions, rows: RowOptions): Promise<Proof> {
  checkColumns(rows)
  const format = formatOf(source.path, rows.format)
  const { marks, checked } = await proveSource(source, bytes => countRows(bytes, { ...rows, format }))
  return { marks, rows: checked }
}
