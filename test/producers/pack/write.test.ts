import { createHash } from 'node:crypto'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { packText } from '../../../producers/pack/pack.ts'
import { digestsIn } from '../../../producers/pack/paper/digests.ts'
import { writePack } from '../../../producers/pack/write.ts'
import { aPack } from './a-pack.ts'

let folder: string
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-pack-'))
})
afterAll(() => rm(folder, { recursive: true, force: true }))

it('a pack that is written again has no PDF of the former pack, wherever the writing ended', async () => {
  const path = join(folder, 'a.pack.json')
  await writePack(path, aPack, () => 'signed')
  const digest = digestsIn(await readFile(join(folder, 'a.pack.pdf')))
  expect(digest).toEqual({ json: createHash('sha256').update(packText(aPack)).digest('hex') })
  const next = { ...aPack, made_at: '2030-01-03T00:00:00.000Z' }
  const failsAfter = (signed: number) => () => {
    if (signed === 0) throw new Error('the disk is full')
    signed -= 1
    return 'signed'
  }
  await expect(writePack(path, next, failsAfter(1))).rejects.toThrow('the disk is full')
  expect(await readFile(path, 'utf8')).toBe(packText(next))
  expect((await readdir(folder)).sort()).toEqual(['a.pack.json', 'a.pack.json.jws'])
  await writePack(path, next, () => 'signed')
  expect(digestsIn(await readFile(join(folder, 'a.pack.pdf')))).not.toEqual(digest)
})
