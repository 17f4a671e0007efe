import { readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { inspect } from 'node:util'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../../src/config.ts'
import type { Fault } from '../../../src/errors.ts'
import type { KeyProvider } from '../../../src/vault/kek/provider.ts'
import { openPkcs11 } from '../../../src/vault/pkcs11/open.ts'
import { codeOf, itKeepsTheLawOfProviders } from '../kek/provider-law.ts'
import { missingSoftHsm, openSoftHsm, type SoftHsm } from './softhsm.ts'

const PIN = '0451-7702'
const SECRET = Buffer.from('a data key of thirty-two bytes..')

describe.skipIf(missingSoftHsm().length > 0)('a key in a token', () => {
  let hsm: SoftHsm
  let pinFile: string
  let shimPath: string
  beforeAll(async () => {
    hsm = await openSoftHsm()
    shimPath = hsm.compileShim()
    pinFile = await hsm.pinFile(PIN)
    hsm.makeToken('cards', PIN, [
      { object: 'kek' },
      { object: 'kek-2', id: Buffer.from([0, 255]) },
      { object: 'twins', id: Buffer.from([1]) },
      { object: 'twins', id: Buffer.from([2]) },
      { object: 'seals-only', without: ['CKA_DECRYPT', 'CKA_UNWRAP'] },
    ])
  })
  afterAll(() => hsm.close())

  const uriOf = (mech: string, path = 'token=cards;object=kek', pin = pinFile) => {
    const module = mech === 'gcm-token-iv' ? shimPath : hsm.modulePath
    return `pkcs11:${path}?module-path=${module}&pin-source=file:${pin}&mech=${mech}`
  }

  describe.each(['gcm', 'gcm-token-iv', 'kwp'])('with mech=%s', mech => {
    let kek: KeyProvider
    beforeAll(async () => {
      kek = await openPkcs11(uriOf(mech), { awayMs: 0 })
    })

    itKeepsTheLawOfProviders(
      async () => ({
        kek,
        again: await openPkcs11(uriOf(mech)),
        other: await openPkcs11(uriOf(mech, 'token=cards;id=%00%ff')),
      }),
      { isFixed: mech === 'kwp' },
    )

    it('is away while the token is, and then opens what it wrapped before', async () => {
      const wrapped = await kek.wrap(SECRET, 'p')
      await rename(hsm.tokens, `${hsm.tokens}-away`)
      try {
        expect(await codeOf(kek.unwrap(wrapped, 'p'))).toBe('kek_away')
      } finally {
        await rename(`${hsm.tokens}-away`, hsm.tokens)
      }
      expect((await kek.unwrap(wrapped, 'p')).equals(SECRET)).toBe(true)
    })

    it('is refused where it can’t open what it wraps', async () => {
      await expect(openPkcs11(uriOf(mech, 'token=cards;object=seals-only'))).rejects.toThrow(/needs CKA_/)
    })
  })

  it('has one id and one form in both ways of AES-GCM', async () => {
    const [ours, theirs] = [await openPkcs11(uriOf('gcm')), await openPkcs11(uriOf('gcm-token-iv'))]
    expect(ours.id).toBe(theirs.id)
    expect((await ours.unwrap(await theirs.wrap(SECRET, 'p'), 'p')).equals(SECRET)).toBe(true)
  })

  it('is refused with mech=gcm-token-iv in a token that draws no nonce', async () => {
    const uri = uriOf('gcm').replace('mech=gcm', 'mech=gcm-token-iv')
    await expect(openPkcs11(uri)).rejects.toThrow(/write mech=gcm in place/)
  })

  it.each([
    ['that is not there', 'token=cards;object=absent', /no such AES key/],
    ['of which there are two', 'token=cards;object=twins', /several such keys/],
  ])('%s is refused', async (_, path, text) => {
    await expect(openPkcs11(uriOf('gcm', path))).rejects.toThrow(text)
  })

  it('waits for its token to come, and says for which', async () => {
    const fault = await openPkcs11(uriOf('gcm', 'token=none;object=kek')).catch((error: Fault) => error)
    expect(fault).toMatchObject({ code: 'kek_away', cause: { message: 'no token of this name is present: none' } })
  })

  it('is refused with a wrong PIN, which no error shows', async () => {
    const wrong = '9999-1234'
    const file = await hsm.pinFile(wrong)
    const error = await openPkcs11(uriOf('gcm', undefined, file)).catch(caught => caught)
    expect(error).toBeInstanceOf(ConfigError)
    expect(error.message).toContain(`refuses the PIN of ${file} (CKR_PIN_INCORRECT)`)
    expect(inspect(error, { depth: 9, showHidden: true })).not.toContain(wrong)
  })

  describe('behind a module that makes trouble', () => {
    const shim = (file: string) => join(hsm.shimFolder, file)

    it('never has a refused PIN tried twice, however often it is opened, until the file of the PIN changes', async () => {
      const file = await hsm.pinFile('9999-1234')
      const uri = uriOf('gcm-token-iv', undefined, file)
      await rm(shim('logins'), { force: true })
      for (let opened = 0; opened < 3; opened += 1) await expect(openPkcs11(uri)).rejects.toThrow(ConfigError)
      expect(await readFile(shim('logins'), 'utf8')).toBe('login\n')
      await writeFile(file, PIN)
      await openPkcs11(uri)
    })

    it('survives that module’s crash', async () => {
      const kek = await openPkcs11(uriOf('gcm-token-iv'))
      const wrapped = await kek.wrap(SECRET, 'p')
      await writeFile(shim('crash'), '')
      expect((await kek.unwrap(wrapped, 'p')).equals(SECRET)).toBe(true)
      await expect(readFile(shim('crash'))).rejects.toThrow(/ENOENT/)
    })

    it('is away, and no wrong key, where that module fails in a new session, too', async () => {
      const kek = await openPkcs11(uriOf('gcm-token-iv'), { awayMs: 0 })
      const wrapped = await kek.wrap(SECRET, 'p')
      await writeFile(shim('break'), '')
      try {
        expect(await codeOf(kek.unwrap(wrapped, 'p'))).toBe('kek_away')
      } finally {
        await rm(shim('break'))
      }
      expect((await kek.unwrap(wrapped, 'p')).equals(SECRET)).toBe(true)
    })

    it('is asked in another session when that module hangs, which holds up nothing else', async () => {
      const kek = await openPkcs11(uriOf('gcm-token-iv'), { answerMs: 500 })
      const wrapped = await kek.wrap(SECRET, 'p')
      await writeFile(shim('hang'), '')
      const unwrapped = kek.unwrap(wrapped, 'p')
      expect(await turnsUntil(unwrapped)).toBeGreaterThan(10)
      expect((await unwrapped).equals(SECRET)).toBe(true)
      await expect(readFile(shim('hang'))).rejects.toThrow(/ENOENT/)
    })
  })

  it.runIf(process.platform === 'linux')('shows no PIN and no password in the list of processes', async () => {
    process.env['TOKENMILL_CANARY'] = 'canary-7702'
    const kek = await openPkcs11(uriOf('gcm'), { awayMs: 1 })
    await kek.wrap(SECRET, 'p')
    delete process.env['TOKENMILL_CANARY']
    const shown = await tokenProcesses()
    expect(shown.length).toBeGreaterThan(0)
    expect(shown.join('\n')).not.toMatch(/0451|canary/)
  })
})

/** Command lines and environments of the processes that speak to tokens for this one. */
async function tokenProcesses(): Promise<string[]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name))
  const read = (pid: string, file: string) => readFile(join('/proc', pid, file), 'utf8').catch(() => '')
  const all = await Promise.all(
    pids.map(async pid => ({
      stat: await read(pid, 'stat'),
      words: await read(pid, 'cmdline'),
      env: await read(pid, 'environ'),
    })),
  )
  const ours = all.filter(
    ({ stat, words }) => /token-process/.test(words) && new RegExp(`\\) \\w ${process.pid} `).test(stat),
  )
  return ours.map(({ words, env }) => `${words}\n${env}`)
}

/** How often the event loop of this process turned. */
async function turnsUntil(end: Promise<unknown>): Promise<number> {
  let turns = 0
  const timer = setInterval(() => {
    turns += 1
  }, 5)
  await end
  clearInterval(timer)
  return turns
}
