// Where a run begins to write its files: each at the mark of the checkpoint, or all of them at the first row, because one of
// them is new in this run and would otherwise lack the rows that were done before. Receipts answer those rows again.
import { FileError } from '../rows/file-error.ts'
import { OUTPUTS, type OutputName, type Paths } from './batch-identity.ts'
import type { Checkpoint } from './checkpoint.ts'
import { nameFrom } from './manifest.ts'
import { checkFree, digestOf, type FileDigest } from './output-file.ts'
import type { OutputForm } from './output-files.ts'

export interface PlannedFile {
  form: OutputForm
  path: string
  /** What the file keeps of an earlier run. */
  at: FileDigest
}

export interface StartingPoint {
  files: PlannedFile[]
  /** What earlier runs came to; undefined where this one begins at the first row. */
  before: Checkpoint | undefined
  /** The options of the files for which the run begins again. */
  beganAgainFor: string[]
}

/**
 * From this age on workers take no further chunk of the batch, and the receipts of its rows may be gone: a run that
 * begins again might not reach the row at which the earlier run stopped.
 */
const BEGIN_AGAIN_MS_MAX = 7 * 86_400_000

/**
 * Throws a FileError for a file that belongs to something else, and for one that is new in a batch that is too old to begin
 * again. `now`: ms since the epoch.
 */
export async function startingPoint(
  checkpoint: Checkpoint | undefined,
  forms: readonly OutputForm[],
  { paths, now }: { paths: Paths; now: number },
): Promise<StartingPoint> {
  const files: PlannedFile[] = []
  const added: string[] = []
  for (const form of forms) {
    const path = paths[form.name] ?? ''
    const at = ownMark(checkpoint, form, path, paths.results)
    if (at === undefined) {
      await checkFree(path, OUTPUTS[form.name])
      added.push(OUTPUTS[form.name])
    }
    files.push({ form, path, at: at ?? digestOf('') })
  }
  if (checkpoint === undefined || checkpoint.next_chunk === 0 || added.length === 0)
    return { files, before: checkpoint, beganAgainFor: [] }
  if (now - Date.parse(checkpoint.started_at) > BEGIN_AGAIN_MS_MAX) throw tooOld(added, checkpoint)
  const cutBack = files.map(file => (file.at.bytes === 0 ? file : { ...file, at: digestOf(file.form.header) }))
  return { files: cutBack, before: undefined, beganAgainFor: added }
}

function tooOld(added: readonly string[], { batch_id: batchId, started_at: startedAt }: Checkpoint): FileError {
  const options = added.join(' and ')
  return new FileError(
    'usage',
    `${options} is new in this run, but batch ${batchId} was begun on ${startedAt.slice(0, 10)}, more than 7 days ago: its rows may no longer be answered, and its results would be lost.`,
    `Leave ${options} out, or run the file with --again.`,
  )
}

/** Undefined where the checkpoint doesn't name this file. */
function ownMark(
  checkpoint: Checkpoint | undefined,
  { name, shapeSha256 }: OutputForm,
  path: string,
  results: string,
): FileDigest | undefined {
  if (name === 'results' || checkpoint === undefined) return checkpoint?.results
  const found = checkpoint[name]
  if (found?.name !== nameFrom(results, path)) return undefined
  if (found.shape_sha256 === shapeSha256) return found
  const next = `Put the member back, or give another name with ${OUTPUTS[name]} FILE.`
  throw new FileError('usage', `The member ${name} of the profile was changed since ${path} was begun.`, next)
}

/** What the checkpoint says of a file beside the results. */
export function entryOf(files: readonly PlannedFile[], name: Exclude<OutputName, 'results'>, results: string) {
  const file = files.find(({ form }) => form.name === name)
  if (file === undefined) return undefined
  const { form, path, at } = file
  return { name: nameFrom(results, path), shape_sha256: form.shapeSha256, ...at }
}
