// The scheme file: every mistake is a ConfigError of one line that names the field and quotes no secret.
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError, readConfig } from '../../src/config.ts'
import { openLog } from '../../src/log.ts'
import { openSchemes } from '../../src/scheme/open.ts'
import { readSchemeFile } from '../../src/scheme/scheme-file.ts'
import { CONTRACT, openKeys, writeSchemeFile } from '../../src/simulate/scheme/keys.ts'

let folder: string
let good: Record<string, Record<string, unknown>>
beforeAll(() => {
  folder = mkdtempSync(join(tmpdir(), 'scheme-file-'))
  openKeys(folder)
  const file = writeSchemeFile(folder, { url: 'http://127.0.0.1:8390', ratePerSecond: 200 })
  good = JSON.parse(readFileSync(file, 'utf8')) as typeof good
  writeFileSync(join(folder, 'empty'), '')
  writeFileSync(join(folder, 'short.secret'), 'hunter2\n')
  writeFileSync(join(folder, 'two-lines'), 'hunter2\nX-Evil: 1\n')
})
afterAll(() => rmSync(folder, { recursive: true, force: true }))

function mistake(text: string | Buffer): string {
  const file = join(folder, 'wrong.json')
  writeFileSync(file, text)
  try {
    readSchemeFile(file)
  } catch (error) {
    expect(error).toBeInstanceOf(ConfigError)
    return (error as ConfigError).message
  }
  throw new Error('it was taken')
}

const mdesWith = (change: Record<string, unknown>) => JSON.stringify({ mdes: { ...good['mdes'], ...change } })
const contractWith = (change: Record<string, unknown>, key: string = CONTRACT) =>
  JSON.stringify({ thirdParties: { [key]: { ...(good['thirdParties']?.[CONTRACT] as object), ...change } } })

describe('a mistake in the scheme file', () => {
  it.each([
    ['no JSON', () => '{', 'is not JSON'],
    ['UTF-16, as Notepad may save it', () => Buffer.from('\uFEFF{}', 'utf16le'), 'is UTF-16. Save it as UTF-8.'],
    ['Latin-1', () => Buffer.from('{"é":1}', 'latin1'), 'is not UTF-8 text'],
    ['a field that nobody knows, behind a byte order mark', () => '\uFEFF{"visa":{}}', 'Unrecognized key'],
    ['a field that nobody knows', () => '{"visa":{}}', 'Unrecognized key'],
    [
      'a requestor that is none',
      () => mdesWith({ tokenRequestorId: '123' }),
      'mdes.tokenRequestorId: must be 11 digits',
    ],
    ['a rate of nought', () => mdesWith({ ratePerSecond: 0 }), 'mdes.ratePerSecond: '],
    ['a slash at the end', () => mdesWith({ baseUrl: 'https://a/' }), 'mdes.baseUrl: must have no query'],
    ['another scheme', () => mdesWith({ baseUrl: 'ftp://a' }), 'mdes.baseUrl: '],
    [
      'a key that is not there',
      () => mdesWith({ signingKeyFile: 'gone' }),
      "mdes.signingKeyFile: can't be read (ENOENT)",
    ],
    [
      'a key that is none',
      () => mdesWith({ signingKeyFile: 'network.crt' }),
      'mdes.signingKeyFile: is not an RSA private key',
    ],
    [
      'an empty key',
      () => mdesWith({ decryptionKeyFile: 'empty' }),
      'mdes.decryptionKeyFile: is not an RSA private key',
    ],
    [
      'a certificate that is none',
      () => mdesWith({ encryptionCertFile: 'network.key' }),
      'mdes.encryptionCertFile: is not a PEM',
    ],
    [
      'a short secret',
      () => mdesWith({ notificationSecretFile: 'short.secret' }),
      'mdes.notificationSecretFile: must hold 16',
    ],
    ['a contract that is no UUID', () => contractWith({}, 'acme'), 'thirdParties.acme: '],
    [
      'two lines of credentials',
      () => contractWith({ authorization: { scheme: 'bearer', tokenFile: 'two-lines' } }),
      'authorization.tokenFile: must hold one',
    ],
    [
      'a pointer that is none',
      () => contractWith({ format: { token: 'token' } }),
      'format.token: must be a JSON pointer',
    ],
    ['a meaning that is none', () => contractWith({ format: { errors: { x: 'maybe' } } }), 'format.errors.x: '],
  ])('%s is named in one line', (_, text, expected) => {
    const message = mistake(text())
    expect(message).toMatch(/^TOKENMILL_SCHEME_FILE: /)
    expect(message).toContain(expected)
    expect(message).not.toMatch(/\n|hunter2|BEGIN|MII/)
  })

  it('and a file that is not there', () => {
    expect(() => readSchemeFile(join(folder, 'gone.json'))).toThrow("TOKENMILL_SCHEME_FILE: can't be read (ENOENT)")
  })
})

describe('the settings', () => {
  it('without a file there is no provider', async () => {
    const schemes = openSchemes({ file: undefined, privateHosts: [], log: openLog('silent'), clock: Date.now })
    expect(schemes.mdes ?? schemes.network('MASTERCARD') ?? schemes.readNotification).toBeUndefined()
    await schemes.close()
  })

  it('of brands and contracts decide who is asked', async () => {
    const file = join(folder, 'both.json')
    const entityId = '00000000-0000-4000-8000-0000000000aa'
    const contract = { ...(good['thirdParties']?.[CONTRACT] as object), entityId }
    const mdes = { ...good['mdes'], brands: undefined }
    writeFileSync(file, JSON.stringify({ mdes, thirdParties: { [CONTRACT]: contract } }))
    const schemes = openSchemes({ file, privateHosts: [], log: openLog('silent'), clock: Date.now })
    expect(schemes.network('MASTERCARD')).toBe(schemes.mdes)
    expect(schemes.network('VISA')).toBeUndefined()
    const type = 'THIRD_PARTY_1'
    const ours = schemes.thirdParty({ type, contract: CONTRACT, entityId })
    expect(ours).toMatchObject({ contract: CONTRACT, provider: { name: `third-party ${CONTRACT}` } })
    expect(schemes.named(`third-party ${CONTRACT}`)).toBe(ours?.provider)
    expect(schemes.thirdParty({ type, contract: undefined, entityId })).toEqual(ours)
    // The name of a contract alone gives no right to it.
    expect(schemes.thirdParty({ type, contract: CONTRACT, entityId: CONTRACT })).toBeUndefined()
    expect(schemes.thirdParty({ type: 'THIRD_PARTY_2', contract: CONTRACT, entityId })).toBeUndefined()
    // A contract that isn't there isn't replaced by the entity's.
    expect(schemes.thirdParty({ type, contract: entityId, entityId })).toBeUndefined()
    expect(schemes.thirdParty({ type, contract: undefined, entityId: CONTRACT })).toBeUndefined()
    await schemes.close()
  })

  it('print no secret', () => {
    const settings = readSchemeFile(join(folder, 'both.json'))
    const printed = JSON.stringify(settings.thirdParties) + JSON.stringify(settings.mdes?.notificationSecret)
    expect(printed).not.toContain(readFileSync(join(folder, 'third-party.token'), 'utf8').trim())
    expect(printed).not.toContain(readFileSync(join(folder, 'notification.secret'), 'utf8').trim())
  })
})

describe('TOKENMILL_PRIVATE_HOSTS', () => {
  it('takes hosts with and without ports, and IPv6 in brackets', () => {
    const hosts = (text: string) => readConfig({ TOKENMILL_PRIVATE_HOSTS: text }).privateHosts
    expect(hosts('127.0.0.1:8390,Jwks.Example,[::1]:9000')).toEqual(['127.0.0.1:8390', 'jwks.example', '[::1]:9000'])
    expect(hosts('')).toEqual([])
    for (const wrong of ['http://a', 'a,,b', 'a,', '::1', 'a:b', 'a b'])
      expect(() => hosts(wrong), wrong).toThrow(ConfigError)
  })
})
