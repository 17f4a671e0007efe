import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { fileKeyProvider, makeKekFile } from '../../../src/vault/kek/file.ts'
import { type KeyProvider, keksOf } from '../../../src/vault/kek/provider.ts'
import { makeDataKeys, unwrapKey } from '../../../src/vault/ring/key-ring.ts'
import { rewrap } from '../../../src/vault/ring/rewrap.ts'
import { openFolder } from '../bundle.ts'

describe('a data key that is wrapped anew', () => {
  let folder: Awaited<ReturnType<typeof openFolder>>
  let old: KeyProvider
  let anew: KeyProvider
  let key: Awaited<ReturnType<typeof makeDataKeys>>[number] & { wrapped: Buffer }
  beforeAll(async () => {
    folder = await openFolder()
    const make = async (name: string) => {
      await makeKekFile(join(folder.path, name))
      return fileKeyProvider(join(folder.path, name))
    }
    old = await make('old')
    anew = await make('new')
    const [made] = await makeDataKeys(old, ['seal'])
    if (!made?.wrapped) throw new Error('no key was made')
    key = { ...made, wrapped: made.wrapped }
  })
  afterAll(() => folder.close())

  it('is the same key, and opens with the new key-encryption key alone', async () => {
    const wrapped = await rewrap(keksOf(old), key, anew)
    const moved = { ...key, kekId: anew.id, wrapped }
    const [before, after] = [await unwrapKey(keksOf(old), key), await unwrapKey(keksOf(anew), moved)]
    expect(after.equals(before)).toBe(true)
    await expect(unwrapKey(keksOf(old), { ...moved, kekId: old.id })).rejects.toThrow(Fault)
  })

  it.each<[string, (kek: KeyProvider) => Partial<KeyProvider>]>([
    ['refuses to open it', kek => ({ unwrap: () => kek.unwrap(Buffer.alloc(60), 'other') })],
    ['opens something else', () => ({ unwrap: async () => Buffer.alloc(32) })],
    ['wraps something else', kek => ({ wrap: (_, purpose) => kek.wrap(Buffer.alloc(32), purpose) })],
  ])('stays as it is if the new one %s', async (_, broken) => {
    await expect(rewrap(keksOf(old), key, { ...anew, ...broken(anew) })).rejects.toThrow(Fault)
    expect(key.kekId).toBe(old.id)
  })

  it('is not touched by a host that lacks the old one', async () => {
    await expect(rewrap(keksOf(anew), key, anew)).rejects.toThrow(Fault)
  })
})
