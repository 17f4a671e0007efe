// `--only FILE`: the references of the rows that are wanted, one a line. Rows with another reference are skipped.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { createInterface } from 'node:readline'
import { codeOf, FileError } from './file-error.ts'
import { type Row, skipRow } from './record.ts'

export interface OnlyList {
  references: ReadonlySet<string>
  /** Hex digest of the sorted references: the same list in another order is the same list. */
  sha256: string
}

/**
 * Reads the list. Throws a FileError, which says `wanted`, if the file can't be read or lists nothing. A first line
 * `reference` counts as a header.
 */
export async function readOnly(path: string, wanted = 'Give --only a text file.'): Promise<OnlyList> {
  const references = new Set<string>()
  let first = true
  try {
    for await (const line of createInterface({ input: createReadStream(path, 'utf8'), crlfDelay: Infinity })) {
      const reference = first ? line.replace(/^\uFEFF/, '') : line
      if (reference !== '' && !(first && reference === 'reference')) references.add(reference)
      first = false
    }
  } catch (error) {
    throw new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, wanted, error)
  }
  if (references.size === 0)
    throw new FileError('usage', `${path} names no reference.`, 'Write one reference on each line.')
  const hash = createHash('sha256')
  for (const reference of [...references].sort()) hash.update(`${reference}\n`)
  return { references, sha256: hash.digest('hex') }
}

/**
 * Marks a row as skipped unless its reference is listed. A row whose reference can't be read isn't skipped, because it
 * may be wanted.
 */
export function keepOnly(row: Row, { references }: OnlyList): Row {
  const isUnread = row.rejected !== undefined && row.reference === undefined
  if (row.skipped !== undefined || isUnread) return row
  if (row.reference !== undefined && references.has(row.reference)) return row
  // The number stays, so that no text that looks like it is shown.
  const { line, reference, number, fileLine, item, repairs, kept } = row
  return { ...skipRow(line, 'not_listed', reference), number, fileLine, item, repairs: repairs && [], kept }
}
