// Reads a results file of `migrate` once: its digest, and of each row what a sign-off pack counts. It holds no row in
// memory.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { basename } from 'node:path'
import { readCsv } from '../rows/csv.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { FILE_OUTCOMES, type FileOutcome } from '../rows/file-outcome.ts'
import { RESULT_COLUMNS } from '../rows/outcome/result-row.ts'
import type { InputDigest } from '../rows/segments.ts'

export interface ResultLine {
  line: number
  /** In nested JSON: which card of the file the row is. Several may have one line. */
  item: string | null
  /** The number by which the vault knows the row: the line, but in nested JSON the row's place in the results. */
  number: number
  reference: string | null
  outcome: FileOutcome
  reason: string | null
  brand: string | null
  /** Four digits. */
  expiryYear: string | null
}

const AT = Object.fromEntries(RESULT_COLUMNS.map((name, index) => [name, index])) as Record<
  (typeof RESULT_COLUMNS)[number],
  number
>

const PROFILE_COLUMNS = ['item', 'repairs']

/** Hands every row to `see`. Throws a FileError if the file can't be read or isn't a results file. */
export async function readResults(path: string, see: (row: ResultLine) => void): Promise<InputDigest> {
  const hash = createHash('sha256')
  let bytes = 0
  async function* digested() {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      bytes += chunk.length
      yield chunk
    }
  }
  let header = true
  let place = 0
  let hasItems = false
  try {
    for await (const rows of readCsv(digested())) {
      for (const { fields, rejected, line } of rows) {
        if (header) {
          checkHeader(path, fields)
          hasItems = PROFILE_COLUMNS.every((name, index) => fields[RESULT_COLUMNS.length + index] === name)
        } else {
          place += 1
          const row = lineOf(fields, rejected === undefined, () => notResults(path, line))
          const item = (hasItems && fields[RESULT_COLUMNS.length]) || null
          see({ ...row, item, number: item === null ? row.line : place })
        }
        header = false
      }
    }
  } catch (error) {
    if (error instanceof FileError) throw error
    throw new FileError('input', `${basename(path)} cannot be read (${codeOf(error)}).`, 'Check it.', error)
  }
  if (header) throw notResults(path, 1)
  return { sha256: hash.digest('hex'), bytes }
}

function checkHeader(path: string, fields: readonly string[]): void {
  if (RESULT_COLUMNS.some((name, index) => fields[index] !== name)) throw notResults(path, 1)
}

function lineOf(
  fields: readonly string[],
  whole: boolean,
  wrong: () => FileError,
): Omit<ResultLine, 'item' | 'number'> {
  const outcome = FILE_OUTCOMES.find(name => name === fields[AT.outcome])
  const line = Number(fields[AT.line])
  if (!whole || outcome === undefined || !Number.isSafeInteger(line)) throw wrong()
  const cell = (name: keyof typeof AT) => fields[AT[name]] || null
  return {
    line,
    reference: cell('reference'),
    outcome,
    reason: cell('reason'),
    brand: cell('brand'),
    expiryYear: cell('expiry_year'),
  }
}

function notResults(path: string, line: number): FileError {
  const next = 'Give the results as migrate wrote them; fetch them again if they were changed.'
  return new FileError('input', `${basename(path)} is no results file of migrate (line ${line}).`, next)
}
