import { copyFile, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { Manifest } from '../../../producers/migrate/manifest.ts'
import { findManifests, type WantedManifests } from '../../../producers/pack/manifest-search.ts'
import { noFileCounts } from '../../../producers/rows/file-outcome.ts'

let folder: string
const path = (name: string) => join(folder, name)
const NO_FILE = { name: 'x', sha256: 'a'.repeat(64), bytes: 1 }

async function put(name: string, change: Partial<Manifest>): Promise<void> {
  const manifest: Manifest = {
    reasons: {},
    repairs: {},
    operator: { client_id: 'c' },
    pgp_keys: null,
    v: 1,
    batch_id: name,
    dry_run: false,
    input: NO_FILE,
    results: NO_FILE,
    options: {},
    rows: 0,
    counts: noFileCounts(),
    started_at: '2030-01-01T00:00:00.000Z',
    ended_at: '2030-01-01T00:00:01.000Z',
    ...change,
  }
  await writeFile(path(name), JSON.stringify(manifest))
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-found-'))
  await put('b.csv.manifest.json', { batch_id: 'b', migration: 'spring', started_at: '2030-01-02T00:00:00.000Z' })
  await put('c.csv.manifest.json', { batch_id: 'c', migration: 'spring' })
  await put('d.csv.manifest.json', { batch_id: 'd', migration: 'autumn' })
  await put('e.csv.manifest.json', { batch_id: 'e' })
  await put('c.csv.dry-run.manifest.json', { batch_id: 'dry', migration: 'spring', dry_run: true })
  await put('c.csv.replay.manifest.json', { batch_id: 'c', migration: 'spring', rows: 9 })
  await writeFile(path('e.csv'), 'anything')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

const found = async (named: readonly string[], more: Partial<WantedManifests> = {}) => {
  const manifests = await findManifests({ named, migration: undefined, folder, ...more })
  return manifests.map(({ manifest }) => manifest.batch_id)
}

describe('the manifests of a pack', () => {
  it('are all real runs of a migration in a folder, in the order in which they began', async () => {
    expect(await found([], { migration: 'spring' })).toEqual(['c', 'b'])
    expect(await found([folder], { migration: 'spring', folder: '.' })).toEqual(['c', 'b'])
  })

  it('are named by manifest, by migrated file and by batch, each once', async () => {
    expect(await found([path('e.csv'), 'd', path('c.csv.manifest.json'), 'c'])).toEqual(['c', 'd', 'e'])
  })

  it('belong to the migration, or to none', async () => {
    expect(await found(['e', 'c'], { migration: 'spring' })).toEqual(['c', 'e'])
    await expect(found(['d'], { migration: 'spring' })).rejects.toThrow(/belongs to migration autumn/)
    await expect(found([], { migration: 'winter' })).rejects.toThrow(/has no manifest of migration winter/)
    await expect(found([path('c.csv.dry-run.manifest.json')])).rejects.toThrow(/of a dry run/)
    await expect(found([])).rejects.toThrow(/No batch is named/)
  })

  it('hold each batch once: of two manifests of one batch that differ, none is chosen', async () => {
    await put('c.csv.older.json', { batch_id: 'c', migration: 'spring', rows: 7 })
    const differ = /c\.csv\.manifest\.json and .*c\.csv\.older\.json are different manifests of the batch c\./
    await expect(found([path('c.csv.manifest.json'), path('c.csv.older.json')])).rejects.toThrow(differ)
    await mkdir(path('twice'))
    for (const name of ['c.csv.manifest.json', 'c.csv.older.json'])
      await copyFile(path(name), path(join('twice', name.replace('older', 'older.manifest'))))
    const twice = { folder: path('twice') }
    await expect(found(['c'], twice)).rejects.toThrow(/are different manifests of the batch c\./)
    await expect(found([], { ...twice, migration: 'spring' })).rejects.toThrow(/are different manifests/)
    await copyFile(path('c.csv.manifest.json'), path(join('twice', 'c.csv.older.manifest.json')))
    expect(await found(['c', path('c.csv.manifest.json')], twice)).toEqual(['c'])
  })

  it('are found by batch beside files that this release cannot read, but not in place of one', async () => {
    const folder = path('newer')
    await mkdir(folder)
    await copyFile(path('c.csv.manifest.json'), join(folder, 'c.csv.manifest.json'))
    await writeFile(join(folder, 'a.csv.manifest.json'), '{"batch_id":"a","v":99}')
    await writeFile(join(folder, 'b.csv.manifest.json'), 'anything')
    expect(await found(['c'], { folder })).toEqual(['c'])
    await expect(found(['a'], { folder })).rejects.toThrow(/a\.csv\.manifest\.json is no manifest/)
    // One of them could be of this migration.
    await expect(found([], { folder, migration: 'spring' })).rejects.toThrow(/is no manifest/)
  })
})
