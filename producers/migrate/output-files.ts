// The files that a run writes, row by row: the results, and where they are asked for the rejected rows and the file
// that goes back to the provider. Each has a name, a header and a text for each row; output-file.ts writes them.
import { createHash } from 'node:crypto'
import { FileError } from '../rows/file-error.ts'
import type { KeptField } from '../rows/kept.ts'
import { headerOfRejects, textOfRejects } from '../rows/outcome/reject-row.ts'
import { type FileRow, headerOf, textOf } from '../rows/outcome/result-row.ts'
import { returnWriter } from '../rows/outcome/return-row.ts'
import { type CardDetector, cardDetector } from '../rows/pan-lookalikes.ts'
import { keptFieldsOf, rejectsFieldsOf } from '../rows/row-texts.ts'
import type { Row } from '../rows/rows.ts'
import type { OutputName, Variant } from './batch-identity.ts'
import type { MigrateOptions } from './options.ts'

export interface OutputForm {
  name: OutputName
  header: string
  /** The digest of the form, if the form may change between two runs of a batch. */
  shapeSha256?: string | undefined
  /** `rows`: the results of the rows `given`, in the same order. `showsCard`: knows the cards of their whole chunk. */
  textOf(rows: readonly FileRow[], given: readonly Row[], showsCard: CardDetector): string
}

/** The text of a whole chunk could be longer than a string may be. */
const PART_ROWS = 100

/** The text of a chunk in parts. `rows`: the results of the rows `given`, in the same order. */
export function* textsOf(form: OutputForm, rows: readonly FileRow[], given: readonly Row[]): Generator<string> {
  const showsCard = cardDetector(given)
  for (let from = 0; from < rows.length; from += PART_ROWS) {
    const part = [from, from + PART_ROWS] as const
    yield form.textOf(rows.slice(...part), given.slice(...part), showsCard)
  }
}

/** What each row must keep for these files. */
export function keptOf(options: MigrateOptions): KeptField[] | undefined {
  return keptFieldsOf(options, { rejects: options.rejects !== undefined, back: options.return !== undefined })
}

/** The results are the first. Throws a FileError for a file that goes back without a shape. */
export function outputForms(options: MigrateOptions, variant: Variant): OutputForm[] {
  return [
    resultsForm(options, variant),
    ...(options.rejects === undefined ? [] : [rejectsForm(options)]),
    ...(options.return === undefined ? [] : [returnForm(options)]),
  ]
}

function resultsForm({ profile, schemeTokens, echo }: MigrateOptions, variant: Variant): OutputForm {
  const columns = {
    profile: profile !== undefined,
    owners: profile?.on_file !== undefined,
    tokenStatus: variant === 'replay',
    failedFacet: schemeTokens,
    echo: echo.length === 0 ? undefined : echo,
  }
  return { name: 'results', header: headerOf(columns), textOf: rows => textOf(rows, columns) }
}

function rejectsForm(options: MigrateOptions): OutputForm {
  const columns = { profile: options.profile !== undefined, fields: rejectsFieldsOf(options) }
  return {
    name: 'rejects',
    header: headerOfRejects(columns),
    textOf: (rows, given) => textOfRejects(rows, given, columns),
  }
}

function returnForm(options: MigrateOptions): OutputForm {
  const shape = options.profile?.return
  if (shape === undefined) {
    const next = 'Give --from a profile that has return; docs/schema/profile.json describes it.'
    throw new FileError('usage', '--return needs a profile that says the shape of the file that goes back.', next)
  }
  const { header, textOf } = returnWriter(shape, options.rejects === undefined ? 0 : rejectsFieldsOf(options).length)
  const shapeSha256 = createHash('sha256').update(JSON.stringify(shape)).digest('hex')
  return { name: 'return', header, textOf, shapeSha256 }
}
