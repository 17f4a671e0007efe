import { createHash } from 'node:crypto'
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import {
  type Checkpoint,
  checkSameBatch,
  readCheckpoint,
  writeCheckpoint,
} from '../../../producers/migrate/checkpoint.ts'
import { noFileCounts } from '../../../producers/rows/file-outcome.ts'

let folder: string
const path = (name: string) => join(folder, name)
const hash = (text: string | Buffer) => createHash('sha256').update(text).digest('hex')
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-checkpoint-'))
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('the checkpoint', () => {
  const digest = { sha256: hash('x'), bytes: 1 }
  const checkpoint: Checkpoint = {
    v: 1,
    batch_id: 'b-1',
    input: digest,
    options: { chunk: 500, record_kind: 'token-create' },
    next_chunk: 3,
    results: digest,
    counts: { ...noFileCounts(), CREATED: 1500 },
    reasons: {},
    repairs: {},
    started_at: '2026-01-01T00:00:00.000Z',
  }

  it('is read back as it was written, replaces the former one, and leaves nothing beside it', async () => {
    expect(await readCheckpoint(path('r.csv'))).toBeUndefined()
    await writeCheckpoint(path('r.csv'), checkpoint)
    await writeCheckpoint(path('r.csv'), { ...checkpoint, next_chunk: 4 })
    expect(await readCheckpoint(path('r.csv'))).toEqual({ ...checkpoint, next_chunk: 4 })
    expect(await readdir(folder)).toEqual(['r.csv.checkpoint.json'])
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
