// Reads a whole file by a profile: its first rows for a person to look at, and what the columns show together. Nothing is
// sent.
import { FileError } from '../file-error.ts'
import { readRows } from '../file-rows.ts'
import { KEPT } from '../kept.ts'
import { type Preview, previewOf } from '../outcome/preview.ts'
import type { Profile } from '../profile/profile.ts'
import { idFieldsOf } from '../profile/spreadsheet-cells.ts'
import { type FileCount, openFileCount } from './column-count.ts'

/** How many rows are shown. */
const ROWS_SHOWN = 10

/** Throws a FileError if the file is unusable, or if the profile finds no card in it. */
export async function checkRows(
  bytes: AsyncIterable<Buffer>,
  profile: Profile,
): Promise<{ rows: Preview[]; count: FileCount }> {
  const fields = idFieldsOf(profile)
  const counting = openFileCount(fields)
  const first: Preview[] = []
  const keep = fields.map(field => ({ field, path: KEPT }))
  const options = { format: 'csv', recordKind: 'token-create', profile, keep, owners: true } as const
  for await (const rows of readRows(bytes, options)) {
    first.push(...rows.slice(0, ROWS_SHOWN - first.length).map(previewOf))
    for (const row of rows) counting.see(row)
  }
  const count = counting.end()
  if (count.skipped < count.rows) return { rows: first, count }
  const next = 'Check the path of the records, the field of the number, and the conditions of where.'
  throw new FileError('input', `By this profile none of the ${count.rows} records has a card.`, next)
}
