// Decides which run a command is: a new one, the continuation of one, or the replay of a complete one. It reads the
// files of earlier runs and removes those of the last dry run or replay. It sends nothing.
import { access, rm } from 'node:fs/promises'
import { CHUNK } from '../../src/job/choices.ts'
import { FileError } from '../rows/file-error.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'
import { layoutOf, type Paths, pathsOf, type Variant } from './batch-identity.ts'
import { checkSameBatch, readCheckpoint, removeCheckpoint } from './checkpoint.ts'
import { checkManifestFree, type Manifest, readManifest } from './manifest.ts'
import type { MigrateOptions } from './options.ts'

export interface Run {
  batchId: string
  variant: Variant
  paths: Paths
  chunkRecords: number
  /** When the batch was first run, ms since the epoch. */
  startedAt: number
  checkpoint: Awaited<ReturnType<typeof readCheckpoint>>
  done(): boolean
  finish(): void
}

/** Returns a new run, the continuation of one, or, if its manifest exists, the replay of a complete one. */
export async function openRun(
  options: MigrateOptions,
  batchId: string,
  validated: ValidatedFile | undefined,
  began: number,
): Promise<Run> {
  let done = false
  const finish = () => {
    done = true
  }
  const state = { batchId, done: () => done, finish }
  const { chunk = CHUNK.recordsDefault } = options
  const fresh = { ...state, chunkRecords: chunk, startedAt: began, checkpoint: undefined }
  if (options.dryRun) return { ...fresh, variant: 'dry-run', paths: await cleared(options, 'dry-run') }
  const paths = pathsOf(options, 'run')
  const checkpoint = await readCheckpoint(paths.results)
  if (options.again) await refuseTakenNames(options, paths, checkpoint?.batch_id)
  if (checkpoint) {
    checkSameBatch(
      checkpoint,
      { batch_id: batchId, input: validated && { sha256: validated.digests.sha256, bytes: validated.digests.bytes } },
      paths.results,
    )
    const layout = JSON.stringify(layoutOf(options))
    const { chunk_records: chunkRecords, ...before } = checkpoint.options
    if (JSON.stringify(before) !== layout) {
      throw new FileError(
        'usage',
        `Batch ${batchId} was begun with other options.`,
        'Run it with the options it was begun with, or leave --batch-id out.',
      )
    }
    return {
      ...state,
      variant: 'run',
      paths,
      chunkRecords: Number(chunkRecords),
      startedAt: Date.parse(checkpoint.started_at),
      checkpoint,
    }
  }
  const finished = await finishedRun(paths.manifest, batchId)
  if (!finished) {
    await checkManifestFree(paths.manifest, batchId)
    return { ...fresh, variant: 'run', paths }
  }
  return {
    ...fresh,
    chunkRecords: Number(finished.options['chunk_records'] ?? chunk),
    startedAt: Date.parse(finished.started_at),
    variant: 'replay',
    paths: await cleared(options, 'replay'),
  }
}

/**
 * Refuses a new batch over a file that was migrated before, unless it has names of its own: the results of the first
 * batch are kept.
 */
async function refuseTakenNames(options: MigrateOptions, paths: Paths, unfinished: string | undefined): Promise<void> {
  const { file, results } = options
  const own = await freeNames(file === '-' ? (results ?? 'stdin') : file)
  const named = `--results ${results === undefined || unfinished ? own.results : results} --manifest ${own.manifest}`
  if (unfinished !== undefined) {
    const next = `Finish that batch with --batch-id ${unfinished} in place of --again, or give the new batch files of its own: ${named}`
    throw new FileError('usage', `${paths.results} belongs to batch ${unfinished}, which is not finished.`, next)
  }
  if (await isThere(paths.manifest))
    throw new FileError(
      'usage',
      `${paths.manifest} belongs to an earlier batch over this file, and is not overwritten.`,
      `Give the new batch files of its own: ${named}`,
    )
}

/** Free names beside the file, `FILE.again.…`, numbered from the second on, as for a replay. */
async function freeNames(stem: string): Promise<Paths> {
  for (let number = 1; ; number++) {
    const word = number === 1 ? 'again' : `again-${number}`
    const paths = { results: `${stem}.${word}.results.csv`, manifest: `${stem}.${word}.manifest.json` }
    const taken = await Promise.all([isThere(paths.results), isThere(paths.manifest)])
    if (!taken.includes(true)) return paths
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}

async function finishedRun(path: string, batchId: string): Promise<Manifest | undefined> {
  if (!(await isThere(path))) return undefined
  const { manifest } = await readManifest(path)
  return manifest.batch_id === batchId ? manifest : undefined
}

/** Removes the files that the last dry run or replay has written. */
async function cleared(options: MigrateOptions, variant: 'dry-run' | 'replay'): Promise<Paths> {
  const { results, rejects, return: back, manifest } = pathsOf({ ...options, rejects: '-', return: '-' }, variant)
  for (const path of [results, rejects, back, manifest, `${manifest}.jws`]) if (path) await rm(path, { force: true })
  await removeCheckpoint(results)
  return pathsOf(options, variant)
}
