// Files that hold keys and credentials: written completely or not at all, and no draft with a secret stays beside them.
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { Stop } from '../../../cli/exit.ts'
import { writePrivate } from '../../../cli/open/key-files.ts'

let folder: string
let path: string
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-key-files-'))
  path = join(folder, 'key')
})
afterEach(() => rm(folder, { recursive: true, force: true }))

describe('a private file', () => {
  it('leaves no draft if it can not take the place of what has its name', async () => {
    await mkdir(path)
    await expect(writePrivate(path, 'secret', { replace: true })).rejects.toThrow(`${path} can't be written (EISDIR)`)
    expect(await readdir(folder)).toEqual(['key'])
    expect(await readdir(path)).toEqual([])
  })

  it('is overwritten only where that is meant, and leaves no draft either way', async () => {
    await writePrivate(path, 'first')
    await expect(writePrivate(path, 'second')).rejects.toThrow(`${path} exists already`)
    expect(await readFile(path, 'utf8')).toBe('first')
    await writePrivate(path, 'third', { replace: true })
    expect(await readFile(path, 'utf8')).toBe('third')
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder)).toEqual(['key'])
  })

  it('under the name of a file is refused in words', async () => {
    await writeFile(path, '')
    for (const replace of [false, true])
      await expect(writePrivate(join(path, 'inner', 'key'), 'secret', { replace })).rejects.toThrow(Stop)
    expect(await readdir(folder)).toEqual(['key'])
  })
})
