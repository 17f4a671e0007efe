// The keys of one host: those that its settings name, read again while it runs.
import { chmod, unlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { KEK_OPENERS } from '../../../cli/open/kek-openers.ts'
import { ConfigError } from '../../../src/config.ts'
import { Fault } from '../../../src/errors.ts'
import { fileKeyProvider, makeKekFile } from '../../../src/vault/kek/file.ts'
import { openHostKeks, readKekList } from '../../../src/vault/kek/host.ts'
import { fileKeks, type KekOpener, openKek, shownUri } from '../../../src/vault/kek/openers.ts'
import { makeProbe, prove } from '../../../src/vault/kek/probe.ts'
import { openFolder } from '../bundle.ts'

let folder: Awaited<ReturnType<typeof openFolder>>
let paths: { old: string; anew: string; list: string }
let ids: { old: string; anew: string }
beforeEach(async () => {
  folder = await openFolder()
  paths = { old: join(folder.path, 'old'), anew: join(folder.path, 'a new'), list: join(folder.path, 'list') }
  await makeKekFile(paths.old)
  await makeKekFile(paths.anew)
  ids = { old: (await fileKeyProvider(paths.old)).id, anew: (await fileKeyProvider(paths.anew)).id }
})
afterEach(() => folder.close())

const uri = (path: string) => `file:${path.replaceAll(' ', '%20')}`
const write = (...lines: string[]) => writeFile(paths.list, lines.join('\n'), { mode: 0o600 })
const open = (currentId?: string) => openHostKeks(() => readKekList(paths.list), { currentId, openers: KEK_OPENERS })
const idsOf = (host: Awaited<ReturnType<typeof open>>) => host.all().map(({ id }) => id)

describe('the keys of a host', () => {
  it('are those of its list, without comments, and follow it without a restart', async () => {
    await write('# the first', '', uri(paths.old))
    const host = await open(ids.old)
    expect(idsOf(host)).toEqual([ids.old])
    await write(uri(paths.old), `file://${paths.anew.replaceAll(' ', '%20')}`)
    await host.reload()
    expect(idsOf(host)).toEqual([ids.old, ids.anew])
    expect(host.named(uri(paths.anew))?.id).toBe(ids.anew)
    await write(uri(paths.anew))
    await host.reload()
    expect(idsOf(host)).toEqual([ids.anew])
    expect(() => host.current).toThrow(Fault)
    host.follow(ids.anew)
    expect(host.current.id).toBe(ids.anew)
  })

  it('wrap by the one that the store names, and by the first while it names none', async () => {
    await write(uri(paths.old), uri(paths.anew))
    expect((await open()).current.id).toBe(ids.old)
    const opened = await open(ids.anew)
    expect(opened.current.id).toBe(ids.anew)
    expect(() => opened.find('kek-0000000000000000')).toThrow(Fault)
  })

  it('stay usable beside one that can not be opened, which is tried again', async () => {
    await write(uri(paths.old), uri(paths.anew))
    await chmod(paths.anew, 0o644)
    const host = await open(ids.old)
    expect(idsOf(host)).toEqual([ids.old])
    expect(host.failures()).toEqual([
      { uri: expect.stringContaining('a%20new'), shown: paths.anew, error: expect.any(ConfigError) },
    ])
    await chmod(paths.anew, 0o600)
    await host.reload()
    expect(idsOf(host)).toEqual([ids.old, ids.anew])
    expect(host.failures()).toEqual([])
  })

  it('stay as they are while the list can not be read', async () => {
    await write(uri(paths.old))
    const host = await open(ids.old)
    await unlink(paths.list)
    await expect(host.reload()).rejects.toThrow(ConfigError)
    expect(host.current.id).toBe(ids.old)
  })

  it('may be away, and come back', async () => {
    let away = true
    const token: KekOpener = {
      open: async wanted => {
        if (away) throw new Fault('key_unavailable')
        return fileKeks.open(wanted)
      },
      canonical: fileKeks.canonical,
    }
    const host = await openHostKeks(async () => [uri(paths.old)], { currentId: ids.old, openers: { file: token } })
    expect(host.failures()).toEqual([
      { uri: uri(paths.old).replace('file:', 'file://'), shown: paths.old, error: expect.any(Fault) },
    ])
    away = false
    await host.reload()
    expect(host.current.id).toBe(ids.old)
  })
})

describe('a list of keys', () => {
  it('that others may read is refused', async () => {
    await write(uri(paths.old))
    await chmod(paths.list, 0o640)
    await expect(readKekList(paths.list)).rejects.toThrow(/chmod 600/)
  })
})

describe('a URI', () => {
  it.each([
    ['file:kek', /does not name a file/],
    ['file://elsewhere/kek', /does not name a file/],
    ['file:/kek?mode=1', /does not name a file/],
    ['vault:secret/kek', /unknown scheme; known are file:, pkcs11:, aws-kms:/],
    ['pkcs11:token=a?pin-value=9876', /pin-value= is not accepted/],
    ['aws-kms://arn:aws:kms:eu-west-1:111122223333:key/a', /not the ARN of a key/],
  ])('%s is refused, and no secret of it is told', async (wrong, message) => {
    const error = await openKek(wrong, KEK_OPENERS).catch((caught: Error) => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(String(error)).toMatch(message)
    expect(`${error}${shownUri(wrong, KEK_OPENERS)}`).not.toMatch(/9876|secret/)
  })
})

describe('a probe', () => {
  it('is opened by the key that made it alone', async () => {
    const [old, anew] = [await fileKeyProvider(paths.old), await fileKeyProvider(paths.anew)]
    const probe = await makeProbe(old)
    await expect(prove(old, probe)).resolves.toBeUndefined()
    await expect(prove(anew, probe)).rejects.toThrow(Fault)
    await expect(prove(old, probe.subarray(1))).rejects.toThrow(Fault)
    await expect(prove({ ...old, id: anew.id }, probe)).rejects.toThrow(Fault)
  })
})
