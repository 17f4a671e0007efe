// The settings of sign-in by OpenID: all or none, and an issuer that is a plain URL.
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { openOpenId } from '../../../../cli/process/openid.ts'
import { readConsoleSettings } from '../../../../producers/console/settings.ts'
import { openLog } from '../../../../src/log.ts'

const ALL = {
  TOKENMILL_OIDC_ISSUER: 'https://login.example.com/realms/main',
  TOKENMILL_OIDC_CLIENT_ID: 'tokenmill-console',
  TOKENMILL_OIDC_CLIENT_SECRET_FILE: '/etc/tokenmill/openid-client-secret',
}

describe('the settings of OpenID', () => {
  it('are all set or none', () => {
    expect(readConsoleSettings({}).openid).toBeUndefined()
    expect(readConsoleSettings({ TOKENMILL_OIDC_ISSUER: '', TOKENMILL_OIDC_NAME: '' }).openid).toBeUndefined()
    const { TOKENMILL_OIDC_CLIENT_SECRET_FILE: secretFile } = ALL
    const read = { issuer: ALL.TOKENMILL_OIDC_ISSUER, clientId: 'tokenmill-console', secretFile }
    expect(readConsoleSettings(ALL).openid).toEqual({ ...read, name: 'OpenID' })
    expect(readConsoleSettings({ ...ALL, TOKENMILL_OIDC_NAME: 'Müller & Söhne' }).openid?.name).toBe('Müller & Söhne')
    for (const key of Object.keys(ALL))
      expect(() => readConsoleSettings({ ...ALL, [key]: '' })).toThrow(new RegExp(`^${key}: must be set`))
    expect(() => readConsoleSettings({ TOKENMILL_OIDC_NAME: 'Keycloak' })).toThrow(
      /^TOKENMILL_OIDC_ISSUER: must be set/,
    )
  })

  it.each([
    ['TOKENMILL_OIDC_ISSUER', 'login.example.com'],
    ['TOKENMILL_OIDC_ISSUER', 'https://login.example.com/?tenant=1'],
    ['TOKENMILL_OIDC_ISSUER', 'https://login.example.com/#main'],
    ['TOKENMILL_OIDC_ISSUER', 'https://user:secret@login.example.com'],
    ['TOKENMILL_OIDC_ISSUER', 'javascript:alert(1)'],
    ['TOKENMILL_OIDC_CLIENT_ID', 'two words'],
    ['TOKENMILL_OIDC_NAME', '<b>Keycloak</b>'],
    ['TOKENMILL_OIDC_NAME', 'K'.repeat(33)],
  ])('%s can’t be %s', (key, value) => {
    expect(() => readConsoleSettings({ ...ALL, [key]: value })).toThrow(new RegExp(`^${key}: `))
  })

  it('name a file that its owner alone may read, and a provider with TLS or a private host', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'tokenmill-openid-'))
    const file = async (name: string, text: string, mode: number) => {
      await writeFile(join(folder, name), text, { mode })
      return join(folder, name)
    }
    const open = (secretFile: string, issuer = ALL.TOKENMILL_OIDC_ISSUER, privateHosts: string[] = []) => {
      const lifetime = { onClose: () => {} }
      const opened = { config: { privateHosts }, lifetime, log: openLog('silent') }
      return openOpenId(opened, { issuer, clientId: 'console', secretFile, name: 'OpenID' })
    }
    const right = await file('right', 'a secret\n', 0o600)
    const secret = /^TOKENMILL_OIDC_CLIENT_SECRET_FILE: /
    await expect(open(join(folder, 'missing'))).rejects.toThrow(secret)
    await expect(open(await file('open', 'a secret', 0o644))).rejects.toThrow(
      /^TOKENMILL_OIDC_CLIENT_SECRET_FILE: .*600/,
    )
    await expect(open(await file('empty', '\n', 0o600))).rejects.toThrow(secret)
    await expect(open(await file('lines', 'a\nb', 0o600))).rejects.toThrow(secret)
    expect(await open(right)).toMatchObject({ name: 'OpenID' })
    const plain = 'http://login.example.com:8080/realms/main'
    const https = /^TOKENMILL_OIDC_ISSUER: must be https/
    await expect(open(right, plain)).rejects.toThrow(https)
    await expect(open(right, plain, ['login.example.com:8081'])).rejects.toThrow(https)
    expect(await open(right, plain, ['login.example.com:8080'])).toMatchObject({ issuer: plain })
    await rm(folder, { recursive: true })
  })
})
