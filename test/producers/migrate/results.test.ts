import { createHash } from 'node:crypto'
import { appendFile, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type Checkpoint,
  checkSameBatch,
  readCheckpoint,
  writeCheckpoint,
} from '../../../producers/migrate/checkpoint.ts'
import {
  checkManifestFree,
  type Manifest,
  nameFrom,
  signaturePath,
  verifyManifest,
  writeManifest,
} from '../../../producers/migrate/manifest.ts'
import { createResults, resumeResults } from '../../../producers/migrate/results.ts'
import { readCsv } from '../../../producers/rows/csv.ts'
import { FileError } from '../../../producers/rows/file-error.ts'
import { noFileCounts } from '../../../producers/rows/outcome/file-outcome.ts'
import { type ResultRow, textOf } from '../../../producers/rows/outcome/result-row.ts'
import { collect, inPieces } from '../rows/bytes.ts'

const TOKEN = 't01ABCDEFGHJKMNPQRSTVWXYZ0'
const created: ResultRow = {
  line: 2,
  reference: 'c-1',
  outcome: 'CREATED',
  code: 200,
  reuse_token: TOKEN,
  analytics_token: 'a1',
  bin: '41111111',
  last_four: '1111',
  expiry_month: 5,
  expiry_year: 2027,
  brand: 'VISA',
}
const rejected: ResultRow = { line: 3, outcome: 'REJECTED', code: 400, reason: 'pan_luhn', field: 'body.card' }

let folder: string
const path = (name: string) => join(folder, name)
const hash = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-results-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the results CSV', () => {
  it('has one line per row, in the columns of the contract', async () => {
    const file = await createResults(path('r.csv'), {})
    await file.write([created, rejected])
    await file.close()
    expect((await readFile(path('r.csv'), 'utf8')).split('\n')).toEqual([
      'line,reference,outcome,code,reuse_token,analytics_token,bin,last_four,expiry_month,expiry_year,brand,reason',
      `2,c-1,CREATED,200,${TOKEN},a1,41111111,1111,5,2027,VISA,`,
      '3,,REJECTED,400,,,,,,,,pan_luhn',
      '',
    ])
  })

  it('adds token_status, failed_facet and echoed columns where they are asked for', async () => {
    const columns = { tokenStatus: true, failedFacet: true, echo: ['city', '=x'] }
    const file = await createResults(path('r.csv'), columns)
    await file.write([{ ...created, token_status: 'ACTIVE', echo: ['Köln', '=1'] }, rejected])
    await file.close()
    const [header, first, second] = (await readFile(path('r.csv'), 'utf8')).split('\n')
    expect(header).toMatch(/,reason,token_status,failed_facet,city,'=x$/)
    expect(first).toMatch(/,ACTIVE,,Köln,'=1$/)
    expect(second).toMatch(/,pan_luhn,,token,,$/)
  })

  it.each(['=1+1', '+1', '-1', '@x', '\tx', '\rx', '\n=x', '＝1', '＋1', '－1', '＠x', '=1,"2"'])(
    'keeps a spreadsheet from taking %j for a formula, and changes nothing else',
    async reference => {
      const [row] = await collect(readCsv(inPieces(textOf([{ ...created, reference }], {}))))
      expect(row?.fields[1]).toBe(`'${reference}`)
    },
  )

  it('reads back any text that is no formula', async () => {
    const text = fc.string({ unit: 'binary', maxLength: 20 }).map(value => `x${value.replace(/\0/g, '')}`)
    await fc.assert(
      fc.asyncProperty(fc.array(text, { minLength: 1, maxLength: 4 }), async echo => {
        const written = textOf([{ ...created, reference: echo[0], echo }], { echo })
        const [row] = await collect(readCsv(inPieces(written)))
        expect([row?.fields[1], ...(row?.fields.slice(12) ?? [])]).toEqual([echo[0], ...echo])
      }),
    )
  })

  it('never overwrites a file that is there', async () => {
    await writeFile(path('r.csv'), 'somebody else’s')
    const creating = createResults(path('r.csv'), {})
    await expect(creating).rejects.toThrow(FileError)
    await expect(creating).rejects.toThrow(/exists and does not belong to this batch/)
    expect(await readFile(path('r.csv'), 'utf8')).toBe('somebody else’s')
  })

  it.each(['', 'line,refer'])('is begun anew where a run ended before its header was whole: %j', async left => {
    await writeFile(path('r.csv'), left)
    const file = await createResults(path('r.csv'), {})
    await file.write([rejected])
    await file.close()
    expect((await readFile(path('r.csv'), 'utf8')).split('\n').map(line => line.slice(0, 6))).toEqual([
      'line,r',
      '3,,REJ',
      '',
    ])
  })

  it('is cut back to its mark when a run is taken up again, and ends as if it had never stopped', async () => {
    const whole = await createResults(path('whole.csv'), {})
    await whole.write([created, rejected])
    const end = await whole.sync()
    await whole.close()

    const first = await createResults(path('r.csv'), {})
    await first.write([created])
    const mark = await first.sync()
    await first.write([rejected, rejected])
    await first.close()
    await appendFile(path('r.csv'), 'half a li')

    const again = await resumeResults(path('r.csv'), {}, mark)
    await again.write([rejected])
    expect(await again.sync()).toEqual(end)
    await again.close()
    const bytes = await readFile(path('r.csv'))
    expect([hash(bytes), bytes.length]).toEqual([end.sha256, end.bytes])
  })

  it('is not continued where it was changed, is shorter than its mark, or is gone', async () => {
    const file = await createResults(path('r.csv'), {})
    await file.write([created])
    const mark = await file.sync()
    await file.close()
    const text = await readFile(path('r.csv'), 'utf8')
    for (const changed of [text.replace('CREATED', 'UPDATED'), text.slice(0, -1)]) {
      await writeFile(path('r.csv'), changed)
      await expect(resumeResults(path('r.csv'), {}, mark)).rejects.toThrow(/was changed since the run/)
      expect(await readFile(path('r.csv'), 'utf8')).toBe(changed)
    }
    await rm(path('r.csv'))
    await expect(resumeResults(path('r.csv'), {}, mark)).rejects.toThrow(/cannot be opened/)
  })
})

describe('the checkpoint', () => {
  const digest = { sha256: hash('x'), bytes: 1 }
  const checkpoint: Checkpoint = {
    v: 2,
    batch_id: 'b-1',
    input: digest,
    options: { chunk: 500, record_kind: 'token-create' },
    next_chunk: 3,
    results: digest,
    counts: { ...noFileCounts(), CREATED: 1500 },
    started_at: '2026-01-01T00:00:00.000Z',
  }

  it('is read back as it was written, replaces the former one, and leaves nothing beside it', async () => {
    expect(await readCheckpoint(path('r.csv'))).toBeUndefined()
    await writeCheckpoint(path('r.csv'), checkpoint)
    await writeCheckpoint(path('r.csv'), { ...checkpoint, next_chunk: 4 })
    expect(await readCheckpoint(path('r.csv'))).toEqual({ ...checkpoint, next_chunk: 4 })
    expect(await readdir(folder)).toEqual(['r.csv.checkpoint.json'])
  })

  it('is read as release 0.3.0 wrote it, without rows that were skipped', async () => {
    const { SKIPPED: _, ...counts } = checkpoint.counts
    await writeFile(path('r.csv.checkpoint.json'), JSON.stringify({ ...checkpoint, v: 1, counts }))
    expect(await readCheckpoint(path('r.csv'))).toEqual({ ...checkpoint, v: 1 })
  })

  it('is refused where it is none', async () => {
    for (const text of ['', '{', '{}', JSON.stringify({ ...checkpoint, v: 3 })]) {
      await writeFile(path('r.csv.checkpoint.json'), text)
      await expect(readCheckpoint(path('r.csv'))).rejects.toThrow(/is no checkpoint of this release/)
    }
  })

  it('belongs to one batch over one file', () => {
    const check = (now: Partial<Checkpoint>) => () => checkSameBatch(checkpoint, { ...checkpoint, ...now }, 'r.csv')
    expect(check({})).not.toThrow()
    expect(check({ batch_id: 'b-2' })).toThrow(/belongs to another batch \(b-1\)/)
    expect(check({ input: { sha256: hash('y'), bytes: 1 } })).toThrow(/was begun with another file/)
  })
})

describe('the manifest', () => {
  const sign = (bytes: Buffer) => `signed..${hash(bytes)}`
  const verify = (bytes: Buffer, jws: string) => jws === sign(bytes)

  async function finish(change: Partial<Manifest> = {}): Promise<string> {
    const input = 'the input'
    await writeFile(path('cards.csv'), input)
    const results = await createResults(path('cards.csv.results.csv'), { echo: ['note'] })
    await results.write([{ ...created, echo: ['two\nlines'] }, rejected])
    const mark = await results.sync()
    await results.close()
    const manifest = path('cards.csv.manifest.json')
    await writeManifest(
      manifest,
      {
        v: 1,
        batch_id: 'b-1',
        dry_run: false,
        input: { name: nameFrom(manifest, path('cards.csv')), sha256: hash(input), bytes: input.length },
        results: { name: nameFrom(manifest, path('cards.csv.results.csv')), ...mark },
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
