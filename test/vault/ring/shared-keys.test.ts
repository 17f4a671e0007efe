// A role without the key-encryption key gets the data keys that it may know, encrypted to its key pair; only the vault
// can make them.
import { createSecretKey, randomBytes } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { Secret } from '../../../src/secret.ts'
import { hashApiKey } from '../../../src/vault/ring/api-key.ts'
import { openRoleRing, type SharedRow } from '../../../src/vault/ring/role-ring.ts'
import {
  makeRoleKeyText,
  openSharedKey,
  type RoleKey,
  type RoleKeyFile,
  readRoleKey,
  readRolePublicKey,
  shareKey,
} from '../../../src/vault/ring/shared-keys.ts'

const makeKey = () => createSecretKey(randomBytes(32))
const NAME = { purpose: 'api-key', version: 2 } as const
const UNAVAILABLE = new Fault('key_unavailable')

async function makeFile(): Promise<RoleKeyFile> {
  const file = await readRoleKey(makeRoleKeyText())
  if (!file) throw new Error('a file that was just made can be read')
  return file
}

async function vaultsSideOf({ kid, publicJwk, secret }: RoleKeyFile): Promise<RoleKey> {
  const publicKey = await readRolePublicKey(publicJwk, kid)
  if (!publicKey) throw new Error('the public half is the one of the file')
  return { kid, publicKey, secret }
}

describe('a shared key', () => {
  it('is opened by the file to which it was encrypted, under its name alone', async () => {
    const file = await makeFile()
    const key = makeKey()
    const jwe = await shareKey(key, NAME, await vaultsSideOf(file))
    expect((await openSharedKey(jwe, NAME, file)).equals(key)).toBe(true)
    for (const other of [
      { ...NAME, version: 3 },
      { ...NAME, purpose: 'intake' as const },
    ])
      await expect(openSharedKey(jwe, other, file)).rejects.toThrow(UNAVAILABLE)
    await expect(openSharedKey(jwe, NAME, await makeFile())).rejects.toThrow(UNAVAILABLE)
    const header = JSON.parse(Buffer.from(jwe.split('.')[0] ?? '', 'base64url').toString())
    expect(header).toMatchObject({ alg: 'ECDH-ES+A256KW', enc: 'A256GCM', kid: file.kid })
  })

  it('from somebody who knows the public half only is refused', async () => {
    const file = await makeFile()
    const forger = { ...(await vaultsSideOf(file)), secret: new Secret(randomBytes(32)) }
    await expect(openSharedKey(await shareKey(makeKey(), NAME, forger), NAME, file)).rejects.toThrow(UNAVAILABLE)
  })

  it('is encrypted to no public half of another thumbprint', async () => {
    const [one, other] = [await makeFile(), await makeFile()]
    expect(await readRolePublicKey(other.publicJwk, one.kid)).toBeUndefined()
    expect(await readRoleKey(new Secret('{}'))).toBeUndefined()
  })
})

describe('the ring of a gateway', () => {
  const row = (purpose: string, version: number, state: SharedRow['state'], jwe: string | null = null): SharedRow => {
    return { purpose, version, state, jwe }
  }
  const user = 'e5a5b1d6-0000-4000-8000-000000000000'
  const secret = new Secret('an API key')

  it('follows the versions that are encrypted to its file, keeps the former ones, and fails none that it has', async () => {
    const roleKey = await makeFile()
    const to = await vaultsSideOf(roleKey)
    const first = makeKey()
    const second = makeKey()
    const shared = async (purpose: 'api-key' | 'intake' | 'network-token', version: number, key = makeKey()) =>
      shareKey(key, { purpose, version }, to)
    let rows = [
      row('api-key', 1, 'ACTIVE', await shared('api-key', 1, first)),
      row('intake', 1, 'ACTIVE', await shared('intake', 1)),
      row('network-token', 1, 'ACTIVE', await shared('network-token', 1)),
    ]
    const ring = await openRoleRing(async () => rows, roleKey, { onLeftOut: () => {} })
    expect(() => ring.apiKeyHashBy(user, secret, 2)).toThrow(UNAVAILABLE)
    rows = [...rows, row('api-key', 2, 'PENDING', await shared('api-key', 2, second))]
    await ring.refresh()
    expect(ring.names()).toContain('api-key/2')
    expect(ring.apiKeyHash(user, secret).keyVersion).toBe(1)
    rows = rows.map(one =>
      one.purpose === 'api-key' ? { ...one, state: one.version === 2 ? 'ACTIVE' : 'DECRYPT_ONLY' } : one,
    )
    await ring.refresh()
    expect(ring.apiKeyHash(user, secret)).toEqual({ hash: hashApiKey(second, user, secret), keyVersion: 2 })
    expect(ring.apiKeyHashBy(user, secret, 1)).toEqual(hashApiKey(first, user, secret))
  })

  it('leaves a former version out that it can not open, and says so once; without one in use it does not begin', async () => {
    const roleKey = await makeFile()
    const to = await vaultsSideOf(roleKey)
    const active = async (purpose: 'api-key' | 'network-token', version: number) =>
      row(purpose, version, 'ACTIVE', await shareKey(makeKey(), { purpose, version }, to))
    const rows = [
      row('api-key', 1, 'DECRYPT_ONLY'),
      await active('api-key', 2),
      await active('network-token', 1),
      row('intake', 1, 'ACTIVE'),
    ]
    const left: string[] = []
    const options = { onLeftOut: (name: string) => left.push(name) }
    await expect(openRoleRing(async () => rows, roleKey, options)).rejects.toThrow(UNAVAILABLE)
    expect(left).toEqual(['api-key/1'])
  })
})
