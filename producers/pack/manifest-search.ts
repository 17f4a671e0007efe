// Finds the manifests of a pack: those that are named, by file or by batch, or those of a migration in a folder.
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { type Manifest, readManifest } from '../migrate/manifest.ts'
import { codeOf, FileError } from '../rows/file-error.ts'

export interface FoundManifest {
  path: string
  manifest: Manifest
  bytes: Buffer
}

export interface WantedManifests {
  /** Files of manifests, files that were migrated, folders of them, or ids of batches in `folder`. */
  named: readonly string[]
  migration: string | undefined
  folder: string
}

/** In the order in which the batches began. Throws a FileError if one is missing or isn't of this migration. */
export async function findManifests({ named, migration, folder }: WantedManifests): Promise<FoundManifest[]> {
  if (named.length === 0 && migration === undefined)
    throw new FileError('usage', 'No batch is named.', 'Name manifests, or a migration with --migration NAME.')
  const found = named.length === 0 ? await ofFolder(folder, migration) : await allOf(named, { migration, folder })
  if (found.length === 0)
    throw new FileError(
      'usage',
      `${folder} has no manifest of migration ${migration}.`,
      'Name the manifests, or give the folder in place of them.',
    )
  for (const { path, manifest } of found) refuseUnfit(path, manifest, migration)
  return eachOnce(found).sort((a, b) => (orderOf(a) < orderOf(b) ? -1 : 1))
}

/**
 * Each manifest once. Throws a FileError for two different manifests of one batch id: two clients may have run the same
 * file, or one manifest is an older copy.
 */
function eachOnce(found: readonly FoundManifest[]): FoundManifest[] {
  const byBatch = new Map<string, FoundManifest>()
  for (const one of found) {
    const { batch_id: id } = one.manifest
    const before = byBatch.get(id)
    if (before && !before.bytes.equals(one.bytes))
      throw new FileError(
        'usage',
        `${before.path} and ${one.path} are different manifests of the batch ${id}.`,
        'Move an older copy away. If both are of runs, make a pack of each: a pack holds a batch once.',
      )
    if (!before) byBatch.set(id, one)
  }
  return [...byBatch.values()]
}

const orderOf = ({ manifest }: FoundManifest) => `${manifest.started_at} ${manifest.batch_id}`

function refuseUnfit(path: string, manifest: Manifest, migration: string | undefined): void {
  if (manifest.dry_run)
    throw new FileError('usage', `${path} is the manifest of a dry run.`, 'Give that of the real run.')
  if (migration !== undefined && (manifest.migration ?? migration) !== migration)
    throw new FileError(
      'usage',
      `${path} belongs to migration ${manifest.migration}.`,
      `Leave it out, or give --migration ${manifest.migration}.`,
    )
}

async function allOf(names: readonly string[], within: Omit<WantedManifests, 'named'>): Promise<FoundManifest[]> {
  const found: FoundManifest[] = []
  for (const name of names) found.push(...(await named(name, within)))
  return found
}

async function named(name: string, { migration, folder }: Omit<WantedManifests, 'named'>): Promise<FoundManifest[]> {
  const kind = await kindOf(name)
  if (kind === 'folder') return ofFolder(name, migration)
  if (kind === 'file') {
    const beside = `${name}.manifest.json`
    const path = (await kindOf(beside)) === 'file' ? beside : name
    return [{ path, ...(await readManifest(path)) }]
  }
  const ofBatch = await ofId(folder, name)
  if (ofBatch.length > 0) return ofBatch
  const next = 'Give the manifest that migrate wrote, the file that was migrated, or --folder with the manifests.'
  throw new FileError('usage', `${name} is neither a file nor a batch with a manifest in ${folder}.`, next)
}

async function kindOf(path: string): Promise<'file' | 'folder' | undefined> {
  const found = await stat(path).catch(() => undefined)
  return found?.isDirectory() ? 'folder' : found?.isFile() ? 'file' : undefined
}

async function ofFolder(folder: string, migration: string | undefined): Promise<FoundManifest[]> {
  const all = await readAll(await inFolder(folder))
  return migration === undefined ? all : all.filter(({ manifest }) => manifest.migration === migration)
}

async function ofId(folder: string, id: string): Promise<FoundManifest[]> {
  const ofBatch: string[] = []
  for (const path of await inFolder(folder)) if ((await idIn(path)) === id) ofBatch.push(path)
  return readAll(ofBatch)
}

const Identified = z.object({ batch_id: z.string() })

/** The batch of a manifest, also of one that this release can't read; undefined for another file. */
async function idIn(path: string): Promise<string | undefined> {
  try {
    return Identified.parse(JSON.parse(await readFile(path, 'utf8'))).batch_id
  } catch {
    return undefined
  }
}

/** Reads the manifests, and leaves out those of dry runs. */
async function readAll(paths: readonly string[]): Promise<FoundManifest[]> {
  const found: FoundManifest[] = []
  for (const path of paths) found.push({ path, ...(await readManifest(path)) })
  return found.filter(({ manifest }) => !manifest.dry_run)
}

/** The paths of manifests in a folder, without those of dry runs and replays: a replay repeats a batch's results. */
async function inFolder(folder: string): Promise<string[]> {
  const names = await readdir(folder).catch(error => {
    throw new FileError('usage', `${folder} cannot be read (${codeOf(error)}).`, 'Give --folder a folder.', error)
  })
  const manifests = names.filter(name => /\.manifest\.json$/.test(name) && !/\.(dry-run|replay)\.manifest/.test(name))
  return manifests.sort().map(name => join(folder, name))
}
