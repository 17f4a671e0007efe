// The places of files: the same tests for a folder and a bucket.
import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { pathToFileURL } from 'node:url'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import { readReport } from '../../src/report/files/download.ts'
import { fileName, isKey, storageKey } from '../../src/report/files/file-name.ts'
import type { ReportFiles } from '../../src/report/files/files.ts'
import { openFiles } from '../../src/report/files/open.ts'
import { type S3Server, startS3 } from '../support/s3-server.ts'

const TEXT = 'line one\r\nline two\r\n'.repeat(20_000)
const sha256 = createHash('sha256').update(TEXT).digest('hex')

async function* pieces(text = TEXT): AsyncGenerator<string, void, void> {
  for (let start = 0; start < text.length; start += 7_000) yield text.slice(start, start + 7_000)
}
async function* broken(pieces = 1): AsyncGenerator<string, void, void> {
  for (let n = 0; n < pieces; n += 1) yield 'half a '
  throw new Error('the reader broke off')
}
const keyOf = (digest: string) => storageKey('INVOICE_2026-03-05_x.csv', digest)
const all = async (stream: Readable | undefined) => (stream ? (await buffer(stream)).toString() : undefined)

describe('a name', () => {
  const uid = '11111111-1111-4111-8111-111111111111'
  const plan = {
    parameters: {},
    filter: { from: null, to: null, percent: '0', batchId: null, clientId: null },
    shares: [],
    notes: [],
  }

  it('is plain, whatever a parameter holds', () => {
    for (const word of ['../../etc/passwd', '..\\x', 'a/b', '\0', '%2e%2e', 'x'.repeat(500), '', '.', 'ä=1;"'])
      expect(fileName('BATCH_REPORT', { ...plan, period: undefined, word }, 'text/csv', uid)).toMatch(
        /^BATCH_REPORT_[A-Za-z0-9-]{0,64}_1{8}-1{4}-41{3}-81{3}-1{12}\.csv$/,
      )
    expect(
      fileName('INVOICE', { ...plan, period: { from: '2026-01-01', to: '2026-01-31' } }, 'application/pdf', uid),
    ).toBe(`INVOICE_2026-01-01-2026-01-31_${uid}.pdf`)
  })

  it('is no key where it could leave its folder', () => {
    const tricks = ['..', '../x', 'a/../b', 'a/b', '/a', 'a\\b', '.hidden', '', 'a\0b', 'x'.repeat(300), 'a..b', 'ä']
    expect(tricks.filter(isKey)).toEqual([])
  })
})

describe('REPORTS_URL', () => {
  it('is a folder or a bucket', () => {
    expect(() => openFiles({ url: 'https://example.com/x' })).toThrow(ConfigError)
    expect(() => openFiles({ url: 's3:///x' })).toThrow(ConfigError)
  })
})

describe.each(['a folder', 'a bucket'] as const)('%s', place => {
  let folder: string
  let server: S3Server | undefined
  let files: ReportFiles
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-files-'))
    if (place === 'a folder') files = openFiles({ url: pathToFileURL(folder).href })
    else {
      server = await startS3()
      Object.assign(process.env, server.env)
      files = openFiles({ url: 's3://reports/tokenmill/', endpoint: server.url })
    }
  })
  afterAll(async () => {
    files?.close()
    await server?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const keys = async () => {
    const found: string[] = []
    for await (const { key } of files.list()) found.push(key)
    return found.toSorted()
  }

  it('shows nothing of a file that broke off', async () => {
    await expect(files.put(broken(), keyOf)).rejects.toThrow('the reader broke off')
    // Also where it broke off before its file was open.
    for (let n = 0; n < 20; n += 1) await expect(files.put(broken(0), keyOf)).rejects.toThrow('the reader broke off')
    expect(await keys()).toEqual([])
    if (place === 'a folder') expect(await readdir(folder)).toEqual([])
  })

  it('gives back what it was given, whole or in part', async () => {
    const stored = await files.put(pieces(), keyOf)
    expect(stored).toEqual({ key: keyOf(sha256), bytes: TEXT.length, sha256 })
    expect(await keys()).toEqual([stored.key])
    expect(await all(await files.get(stored.key))).toBe(TEXT)
    expect(await all(await files.get(stored.key, { start: 5, end: 9 }))).toBe(TEXT.slice(5, 10))
    const recorded = { storageKey: stored.key, bytes: stored.bytes, sha256 }
    expect(await all(await readReport(files, recorded))).toBe(TEXT)
    expect(await all(await readReport(files, recorded, { start: 0, end: 3 }))).toBe('line')
    expect(await files.put(pieces(), keyOf)).toEqual(stored)
    expect(await keys()).toEqual([stored.key])
  })

  it('never gives a spoilt file whole', async () => {
    const { key, bytes } = await files.put(pieces(), keyOf)
    const wrong = { storageKey: key, bytes, sha256: sha256.replace(/./g, '0') }
    await expect(all(await readReport(files, wrong))).rejects.toMatchObject({ code: 'report_spoilt' })
    await expect(readReport(files, wrong, { start: 0, end: 3 })).rejects.toMatchObject({ code: 'report_spoilt' })
    for (const lie of [bytes - 1, bytes + 1]) {
      const short = { storageKey: key, bytes: lie, sha256 }
      await expect(all(await readReport(files, short))).rejects.toMatchObject({ code: 'report_spoilt' })
    }
  })

  it('knows no file that it has not, and forgets one that is removed', async () => {
    const { key, bytes } = await files.put(pieces(), keyOf)
    await files.remove(key)
    await files.remove(key)
    expect(await files.get(key)).toBeUndefined()
    const recorded = { storageKey: key, bytes, sha256 }
    await expect(readReport(files, recorded)).rejects.toMatchObject({ code: 'report_missing' })
    await expect(readReport(files, recorded, { start: 0, end: 3 })).rejects.toMatchObject({ code: 'report_missing' })
    expect(await keys()).toEqual([])
  })

  it('takes no key that could be another place', async () => {
    await expect(async () => files.get('../secret')).rejects.toThrow('broken law')
    await expect(async () => files.remove('a/b')).rejects.toThrow('broken law')
  })

  it('lists files of crashed writers, too, and nothing that is not its own', async () => {
    if (place !== 'a folder') return
    await writeFile(join(folder, 'part_1'), 'half')
    await writeFile(join(folder, '.hidden'), 'x')
    expect(await keys()).toEqual(['part_1'])
  })
})

describe('a place that is away', () => {
  it('is a fault that is tried again', async () => {
    const url = 's3://reports'
    const files = openFiles({ url, endpoint: 'http://127.0.0.1:9' })
    await expect(files.get('a.csv')).rejects.toMatchObject({ code: 'files_away' })
    files.close()
    const disk = openFiles({ url: `${import.meta.url}/reports` })
    await expect(disk.put(pieces(), keyOf)).rejects.toMatchObject({ code: 'files_away' })
    await expect(disk.get('a.csv')).rejects.toMatchObject({ code: 'files_away' })
  })
})
