// The files of one migration (`--migration`): each is a batch of its own, and the same command continues where the last
// run stopped. It reads files and sends nothing.
import { access, stat } from 'node:fs/promises'
import { codeOf, FileError } from '../rows/file-error.ts'
import { batchIdOf, type Paths, pathsOf } from './batch-identity.ts'
import { readCheckpoint } from './checkpoint.ts'
import { checkDigest, digestFile, type Manifest, nameFrom, readManifest } from './manifest.ts'
import type { MigrateOptions } from './options.ts'

/** Stands for the path of the part in the name of a file. */
const PART = '{}'

const PER_PART = ['results', 'manifest', 'rejects', 'return', 'expect'] as const
const PER_FILE = { batchId: '--batch-id', again: '--again' } as const

type GivenForParts = Partial<Pick<MigrateOptions, 'migration' | (typeof PER_PART)[number] | keyof typeof PER_FILE>>

/** Refuses options that can't be for several parts, before a file is read. */
export function refuseForParts(files: readonly string[], options: GivenForParts): void {
  if (options.migration === undefined) {
    const next = 'Give --migration NAME, or migrate them one by one.'
    throw new FileError('usage', 'Several files are the parts of one migration, which needs a name.', next)
  }
  if (files.includes('-'))
    throw new FileError('usage', 'Standard input is no part of a migration.', 'Give files, or migrate it by itself.')
  for (const [name, option] of Object.entries(PER_FILE) as [keyof typeof PER_FILE, string][])
    if (options[name])
      throw new FileError(
        'usage',
        `${option} is for one file.`,
        `Run that part by itself, with --migration and ${option}.`,
      )
  for (const name of PER_PART) {
    const given = options[name]
    if (given === undefined || given.includes(PART)) continue
    const next = `Write {} for the part: --${name} '{}.${name}.csv' makes part-1.csv.${name}.csv.`
    throw new FileError('usage', `--${name} names one file, and each part has its own.`, next)
  }
}

/** The options of one part. */
export function optionsOfPart(options: MigrateOptions): MigrateOptions {
  const own = { ...options }
  for (const name of PER_PART) own[name] = options[name]?.replaceAll(PART, options.file)
  return own
}

/**
 * Refuses files of the same content: they would be the same batch. Only files of the same size are read.
 */
export async function refuseSameContent(files: readonly string[]): Promise<void> {
  const bySize = Map.groupBy(
    await Promise.all(files.map(async file => ({ file, size: await sizeOf(file) }))),
    ({ size }) => size,
  )
  for (const alike of bySize.values()) {
    if (alike.length < 2) continue
    const seen = new Map<string, string>()
    for (const { file } of alike) {
      const sha256 = (await digestFile(file))?.sha256 ?? ''
      const before = seen.get(sha256)
      if (before !== undefined)
        throw new FileError('usage', `${before} and ${file} have the same content.`, 'Name each part once.')
      seen.set(sha256, file)
    }
  }
}

async function sizeOf(file: string): Promise<number> {
  const found = await stat(file).catch((error: unknown) => {
    throw new FileError('usage', `${file} cannot be read (${codeOf(error)}).`, 'Check its name and permissions.', error)
  })
  return found.size
}

/**
 * The manifest of a part that is finished and whose rows all have their last outcome. Such a part isn't sent again.
 * Undefined for any other file: also for a file that was migrated without `--migration`, whose manifest doesn't name
 * the migration. Throws a FileError if a file of the part isn't the one that the manifest names.
 */
export async function finishedPart(options: MigrateOptions): Promise<Manifest | undefined> {
  if (options.dryRun) return undefined
  const paths = pathsOf(options, 'run')
  if (!(await isThere(paths.manifest)) || (await readCheckpoint(paths.results))) return undefined
  const { manifest } = await readManifest(paths.manifest)
  if (manifest.migration !== options.migration || manifest.counts.FAILED > 0) return undefined
  if (!(await hasItsFiles(manifest, paths))) return undefined
  const digest = await digestFile(options.file)
  if (manifest.batch_id !== batchIdOf(options, digest)) return undefined
  await refuseChanged(manifest, paths)
  return manifest
}

const WRITTEN = ['results', 'rejects', 'return'] as const

/** Whether its results are there, and the files beside them that the options ask for now. */
async function hasItsFiles(manifest: Manifest, paths: Paths): Promise<boolean> {
  for (const name of WRITTEN) {
    const path = paths[name]
    if (path === undefined) continue
    if (manifest[name]?.name !== nameFrom(paths.manifest, path) || !(await isThere(path))) return false
  }
  return true
}

/** Files that were cut or changed since must not count as the part's: their name alone doesn't show it. */
async function refuseChanged(manifest: Manifest, paths: Paths): Promise<void> {
  for (const name of WRITTEN) {
    const path = paths[name]
    if (path === undefined || (await checkDigest(paths.manifest, manifest[name])) === 'holds') continue
    const wrong = `${path} is not the file that the finished part wrote.`
    const next = `Put back the one whose digest ${paths.manifest} names; or move this one away, and the same command answers the part again from its receipts.`
    throw new FileError('output', wrong, next)
  }
}

function isThere(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  )
}
