// Reads results files back: what became of rows, by their references. The file of one batch doesn't say when it was written.
import { createReadStream } from 'node:fs'
import { unguarded } from '../../../src/csv-text.ts'
import { readCsv } from '../csv.ts'
import { codeOf, FileError } from '../file-error.ts'
import { FILE_OUTCOMES, type FileOutcome } from '../file-outcome.ts'

export interface WrittenEnd {
  file: string
  line: number
  outcome: FileOutcome
  reason: string | undefined
}

const NEXT = 'Give a file that migrate wrote as its results.'

/**
 * The last row of each wanted reference, in the order of the files. A skipped row says nothing against a row that was
 * sent.
 */
export async function readEnds(
  files: readonly string[],
  wanted: ReadonlySet<string>,
): Promise<Map<string, WrittenEnd>> {
  const ends = new Map<string, WrittenEnd>()
  for (const file of files) {
    for await (const { reference, ...end } of endsIn(file, wanted)) {
      const before = ends.get(reference)
      if (end.outcome !== 'SKIPPED' || !before || before.outcome === 'SKIPPED') ends.set(reference, end)
    }
  }
  return ends
}

const COLUMNS = ['line', 'reference', 'outcome', 'reason'] as const

async function* endsIn(file: string, wanted: ReadonlySet<string>): AsyncGenerator<WrittenEnd & { reference: string }> {
  let at: number[] | undefined
  try {
    for await (const rows of readCsv(createReadStream(file))) {
      for (const { fields, rejected } of rows) {
        const columns = at ?? COLUMNS.map(name => fields.indexOf(name))
        if (rejected !== undefined || columns.includes(-1))
          throw new FileError('usage', `${file} is no results file.`, NEXT)
        if (at === undefined) at = columns
        else
          yield* wantedEnd(
            file,
            columns.map(index => fields[index] ?? ''),
            wanted,
          )
      }
    }
  } catch (error) {
    if (error instanceof FileError) throw error
    throw new FileError('usage', `${file} cannot be read (${codeOf(error)}).`, NEXT, error)
  }
}

function* wantedEnd(
  file: string,
  [line = '', given = '', outcome = '', reason = '']: readonly string[],
  wanted: ReadonlySet<string>,
): Generator<WrittenEnd & { reference: string }> {
  const reference = wanted.has(given) ? given : unguarded(given)
  if (!wanted.has(reference)) return
  const known = FILE_OUTCOMES.find(word => word === outcome)
  if (!known) throw new FileError('usage', `${file} is no results file of this release.`, NEXT)
  yield { reference, file, line: Number(line), outcome: known, reason: reason || undefined }
}
