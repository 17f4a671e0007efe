import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import { fileKeyProvider, makeKekFile } from '../../../src/vault/kek/file.ts'
import { openFolder } from '../bundle.ts'
import { itKeepsTheLawOfProviders } from './provider-law.ts'

let folder: Awaited<ReturnType<typeof openFolder>>
let path: string
beforeEach(async () => {
  folder = await openFolder()
  path = join(folder.path, 'kek')
})
afterEach(() => folder.close())

describe('a key-encryption key file', () => {
  it('is made for its owner only and leaves nothing beside it', async () => {
    await makeKekFile(path)
    expect((await stat(path)).mode & 0o777).toBe(0o600)
    expect(await readdir(folder.path)).toEqual(['kek'])
    expect(await readFile(path, 'utf8')).toMatch(/^tokenmill-kek-v1\n[A-Za-z0-9+/]{43}=\n$/)
  })

  it('is never overwritten', async () => {
    await makeKekFile(path)
    const before = await readFile(path, 'utf8')
    await expect(makeKekFile(path)).rejects.toThrow(ConfigError)
    expect(await readFile(path, 'utf8')).toBe(before)
    expect(await readdir(folder.path)).toEqual(['kek'])
  })

  it('says what to do where it can’t be made or read', async () => {
    await makeKekFile(path)
    await expect(makeKekFile(path)).rejects.toThrow(/a file of this name exists.*name another file/)
    await expect(makeKekFile(join(folder.path, 'none', 'kek'))).rejects.toThrow(/folder .*none does not exist; make it/)
    await expect(fileKeyProvider(join(folder.path, 'none'))).rejects.toThrow(/\(ENOENT\): there is no such file; check/)
  })

  it('is not made in the place of a link that leads nowhere', async () => {
    await symlink(join(folder.path, 'nowhere'), path)
    await expect(makeKekFile(path)).rejects.toThrow(ConfigError)
  })

  it.each(['640', '604', '620', '610', '644'])('that others may touch (%s) is refused', async mode => {
    await makeKekFile(path)
    await chmod(path, Number.parseInt(mode, 8))
    await expect(fileKeyProvider(path)).rejects.toThrow(/chmod 600/)
  })

  it.each([
    ['nothing', ''],
    ['another version', `tokenmill-kek-v2\n${Buffer.alloc(32, 1).toString('base64')}\n`],
    ['a short key', `tokenmill-kek-v1\n${Buffer.alloc(31, 1).toString('base64')}\n`],
    ['a long key', `tokenmill-kek-v1\n${Buffer.alloc(33, 1).toString('base64')}\n`],
    ['two keys', `tokenmill-kek-v1\n${`${Buffer.alloc(32, 1).toString('base64')}\n`.repeat(2)}`],
    ['no version line', `${Buffer.alloc(32, 1).toString('base64')}\n`],
  ])('that holds %s is refused and not quoted', async (_, text) => {
    await writeFile(path, text, { mode: 0o600 })
    const error = await fileKeyProvider(path).catch(caught => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(inspect(error)).not.toContain(Buffer.alloc(31, 1).toString('base64').slice(0, 20))
  })

  it('that is absent or a folder is refused', async () => {
    await expect(fileKeyProvider(path)).rejects.toThrow(ConfigError)
    await mkdir(path)
    await expect(fileKeyProvider(path)).rejects.toThrow(ConfigError)
  })
})

describe('a file key provider', () => {
  itKeepsTheLawOfProviders(async () => {
    await makeKekFile(path)
    await makeKekFile(`${path}2`)
    return {
      kek: await fileKeyProvider(path),
      again: await fileKeyProvider(path),
      other: await fileKeyProvider(`${path}2`),
    }
  })

  it('tells nothing of its key', async () => {
    await makeKekFile(path)
    const key = (await readFile(path, 'utf8')).split('\n')[1] ?? ''
    expect(inspect(await fileKeyProvider(path), { depth: 9, showHidden: true })).not.toContain(key)
  })
})
