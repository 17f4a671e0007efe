import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import { Fault } from '../../src/errors.ts'
import { fileKeyProvider, makeKekFile } from '../../src/vault/kek.ts'
import { openFolder } from './bundle.ts'

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
  it('refuses to unwrap for another purpose, with another key, or bytes that were changed', async () => {
    await makeKekFile(path)
    await makeKekFile(`${path}2`)
    const [kek, other] = [await fileKeyProvider(path), await fileKeyProvider(`${path}2`)]
    const wrapped = await kek.wrap(Buffer.from('a data key'), 'data-key/seal/1')
    const changed = Buffer.from(wrapped)
    changed[20] = (changed[20] ?? 0) ^ 1
    const attempts = [
      kek.unwrap(wrapped, 'data-key/seal/2'),
      kek.unwrap(changed, 'data-key/seal/1'),
      kek.unwrap(wrapped.subarray(0, 27), 'data-key/seal/1'),
      other.unwrap(wrapped, 'data-key/seal/1'),
    ]
    for (const attempt of attempts) await expect(attempt).rejects.toThrow(Fault)
    for (const attempt of attempts) await expect(attempt).rejects.toMatchObject({ code: 'key_unavailable' })
  })

  it('unwraps what it wrapped, and wraps the same twice differently', async () => {
    await makeKekFile(path)
    const kek = await fileKeyProvider(path)
    const [first, second] = [await kek.wrap(Buffer.from('key'), 'p'), await kek.wrap(Buffer.from('key'), 'p')]
    expect(first.equals(second)).toBe(false)
    expect((await kek.unwrap(first, 'p')).toString()).toBe('key')
  })

  it('has an id that is the key’s own and tells nothing of it', async () => {
    await makeKekFile(path)
    await makeKekFile(`${path}2`)
    const { id } = await fileKeyProvider(path)
    expect(id).toMatch(/^kek-[0-9a-f]{16}$/)
    expect((await fileKeyProvider(path)).id).toBe(id)
    expect((await fileKeyProvider(`${path}2`)).id).not.toBe(id)
    const key = (await readFile(path, 'utf8')).split('\n')[1] ?? ''
    expect(inspect(await fileKeyProvider(path), { depth: 9, showHidden: true })).not.toContain(key)
  })
})
