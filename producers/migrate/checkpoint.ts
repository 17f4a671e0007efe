// The checkpoint beside the results of a run: enough to continue the run after a crash, and nothing of a card. It is
// written after the results that it names are durable. The receipts of the batch, not this file, decide outcomes.
import { readFile, rm } from 'node:fs/promises'
import { z } from 'zod'
import { writeAtomically } from '../rows/atomic-file.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { FILE_OUTCOMES } from '../rows/file-outcome.ts'
import { ownerCounts } from './owners.ts'

const hex = z.string().regex(/^[0-9a-f]{64}$/)
const count = z.int().min(0)

export const DigestOfFile = z.strictObject({ sha256: hex, bytes: count })
/** A file of rows beside the results; `name` is relative to the file that names it. */
const FileBeside = DigestOfFile.extend({
  name: z.string(),
  /** The digest of the file's shape, if the shape may change between two runs. */
  shape_sha256: hex.optional(),
})
export const OutcomeCounts = z.record(z.enum(FILE_OUTCOMES), count)

/** Outcome → reason → number of rows. */
export const OutcomeReasons = z.partialRecord(z.enum(FILE_OUTCOMES), z.record(z.string(), count))

/** Repair → number of rows. */
export const RepairCounts = z.record(z.string(), count)

export const Checkpoint = z.strictObject({
  v: z.literal(1),
  batch_id: z.string().min(1).max(64),
  /** Undefined for standard input, whose digest is known only at its end. */
  input: DigestOfFile.optional(),
  /** All options that decide what the batch does: chunk size, record kind, policies, map, echo. */
  options: z.record(z.string(), z.json()),
  /** The position of the first chunk whose rows aren't in the results yet. */
  next_chunk: count,
  results: DigestOfFile,
  rejects: FileBeside.optional(),
  return: FileBeside.optional(),
  counts: OutcomeCounts,
  reasons: OutcomeReasons,
  repairs: RepairCounts,
  ...ownerCounts,
  started_at: z.iso.datetime(),
})
export type Checkpoint = z.infer<typeof Checkpoint>

export function checkpointPath(results: string): string {
  return `${results}.checkpoint.json`
}

/** The checkpoint beside these results, if there is one. */
export async function readCheckpoint(results: string): Promise<Checkpoint | undefined> {
  const path = checkpointPath(results)
  let text: string
  try {
    text = await readFile(path, 'utf8')
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw new FileError('output', `${path} cannot be read (${codeOf(error)}).`, 'Check its permissions.', error)
  }
  try {
    return Checkpoint.parse(JSON.parse(text))
  } catch (error) {
    const next = 'Move it and the results away: the same command then starts over, and receipts answer what was done.'
    throw new FileError('output', `${path} is no checkpoint of this release.`, next, error)
  }
}

export async function writeCheckpoint(results: string, checkpoint: Checkpoint): Promise<void> {
  await writeAtomically(checkpointPath(results), `${JSON.stringify(Checkpoint.parse(checkpoint))}\n`)
}

export async function removeCheckpoint(results: string): Promise<void> {
  await rm(checkpointPath(results), { force: true })
}

/**
 * Refuses to continue another batch, or a batch over another file. Standard input isn't compared: its digest is known at its
 * end.
 */
export function checkSameBatch(found: Checkpoint, now: Pick<Checkpoint, 'batch_id' | 'input'>, results: string): void {
  const path = checkpointPath(results)
  if (found.batch_id !== now.batch_id) {
    const next = 'Give another name with --results FILE, or finish that batch first.'
    throw new FileError('usage', `${path} belongs to another batch (${found.batch_id}).`, next)
  }
  const { input } = found
  if (input === undefined || now.input === undefined) return
  if (input.sha256 === now.input.sha256 && input.bytes === now.input.bytes) return
  const next = 'Continue with the file it was begun with, or leave --batch-id out.'
  throw new FileError('usage', `Batch ${found.batch_id} was begun with another file.`, next)
}
