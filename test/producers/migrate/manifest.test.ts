import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { appendFile, mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  checkManifestFree,
  type Manifest,
  nameFrom,
  signaturePath,
  verifyManifest,
  writeManifest,
} from '../../../producers/migrate/manifest.ts'
import { digestOf } from '../../../producers/migrate/output-file.ts'
import { FileError } from '../../../producers/rows/file-error.ts'
import { noFileCounts } from '../../../producers/rows/file-outcome.ts'
import { headerOf, textOf } from '../../../producers/rows/outcome/result-row.ts'
import { created, rejected } from '../rows/outcome/ended-rows.ts'

let folder: string
const path = (name: string) => join(folder, name)
const hash = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-manifest-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the manifest', () => {
  const sign = (bytes: Buffer) => `signed..${hash(bytes)}`
  const verify = (bytes: Buffer, jws: string) => jws === sign(bytes)

  async function finish(change: Partial<Manifest> = {}): Promise<string> {
    const input = 'the input'
    await writeFile(path('cards.csv'), input)
    const columns = { echo: ['note'] }
    const results = headerOf(columns) + textOf([{ ...created, echo: ['two\nlines'] }, rejected], columns)
    await writeFile(path('cards.csv.results.csv'), results)
    const manifest = path('cards.csv.manifest.json')
    await writeManifest(
      manifest,
      {
        v: 1,
        reasons: {},
        repairs: {},
        operator: { client_id: 'c' },
        pgp_keys: null,
        batch_id: 'b-1',
        dry_run: false,
        input: { name: nameFrom(manifest, path('cards.csv')), sha256: hash(input), bytes: input.length },
        results: { name: nameFrom(manifest, path('cards.csv.results.csv')), ...digestOf(results) },
        options: { chunk: 500 },
        rows: 2,
        counts: { ...noFileCounts(), CREATED: 1, REJECTED: 1 },
        started_at: '2026-01-01T00:00:00.000Z',
        ended_at: '2026-01-01T00:00:01.000Z',
        ...change,
      },
      sign,
    )
    return manifest
  }
  const failing = async (manifest: string, by = verify) => {
    const { checks, holds } = await verifyManifest(manifest, by)
    const fails = Object.entries(checks).flatMap(([name, verdict]) => (verdict === 'fails' ? [name] : []))
    expect(holds).toBe(fails.length === 0)
    return fails
  }

  it('is not written where rows and outcomes differ', async () => {
    await expect(finish({ rows: 3 })).rejects.toThrow('3 rows were read and 2 outcomes written')
    expect(await readdir(folder)).not.toContain('cards.csv.manifest.json')
  })

  it('holds as it was written, with names relative to itself', async () => {
    const manifest = await finish()
    expect(await failing(manifest)).toEqual([])
    expect(await readFile(manifest, 'utf8')).not.toContain(folder)
  })

  it('fails where a directory or a pipe stands for a file, and makes the other checks', async () => {
    const manifest = await finish()
    await rm(path('cards.csv'))
    await mkdir(path('cards.csv'))
    expect(await failing(manifest)).toEqual(['input_digest'])
    await rm(path('cards.csv'), { recursive: true })
    await rm(path('cards.csv.results.csv'))
    execFileSync('mkfifo', [path('cards.csv.results.csv')])
    expect(await failing(manifest)).toEqual(['results_digest', 'results_counts'])
  })

  it('holds without the input, which may have been shredded, and never without the results', async () => {
    const manifest = await finish()
    await rm(path('cards.csv'))
    expect((await verifyManifest(manifest, verify)).checks.input_digest).toBe('absent')
    expect(await failing(manifest)).toEqual([])
    await rm(path('cards.csv.results.csv'))
    expect(await failing(manifest)).toEqual(['results_digest', 'results_counts'])
  })

  it('tells what was changed: input, results, manifest or signature', async () => {
    const manifest = await finish()
    await appendFile(path('cards.csv'), 'x')
    expect(await failing(manifest)).toEqual(['input_digest'])
    await writeFile(path('cards.csv'), 'the input')

    const results = await readFile(path('cards.csv.results.csv'), 'utf8')
    await writeFile(path('cards.csv.results.csv'), results.replace('VISA', 'JCB'))
    expect(await failing(manifest)).toEqual(['results_digest'])
    await writeFile(path('cards.csv.results.csv'), results.replace('REJECTED', 'CREATED'))
    expect(await failing(manifest)).toEqual(['results_digest', 'results_counts'])
    await writeFile(path('cards.csv.results.csv'), results)

    const text = await readFile(manifest, 'utf8')
    await writeFile(manifest, text.replace('"rows": 2', '"rows": 3'))
    expect(await failing(manifest)).toEqual(['signature', 'rows'])
    await writeFile(manifest, text)
    expect(await failing(manifest, () => false)).toEqual(['signature'])
    await rm(signaturePath(manifest))
    expect(await failing(manifest)).toEqual(['signature'])
  })

  it('is never written over another batch’s', async () => {
    const manifest = await finish()
    await expect(checkManifestFree(manifest, 'b-2')).rejects.toThrow(/belongs to another batch \(b-1\)/)
    await checkManifestFree(manifest, 'b-1')
    await checkManifestFree(path('none.json'), 'b-2')
    await rm(path('cards.csv.results.csv'))
    await expect(finish({ batch_id: 'b-2' })).rejects.toThrow(FileError)
  })
})
