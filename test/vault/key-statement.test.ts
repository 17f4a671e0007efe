// Statements by which one signing key of the installation announces the next: which of them a reader believes.
import { createPrivateKey, generateKeyPairSync, type JsonWebKey } from 'node:crypto'
import { expect, it } from 'vitest'
import type { InstallationKey } from '../../src/job/answer/result.ts'
import { signCompact } from '../../src/job/envelope/signature.ts'
import { importPublicJwk, type Jwk, makeSigningKey } from '../../src/vault/client-key.ts'
import { type KnownKeys, learnKeys, openStatement, sealStatement } from '../../src/vault/key-statement.ts'

interface Pair {
  signer: InstallationKey
  publicJwk: Jwk
}

function makePair(): Pair {
  const { kid, alg, publicJwk, privateJwk } = makeSigningKey()
  const privateKey = createPrivateKey({ key: privateJwk.reveal() as JsonWebKey, format: 'jwk' })
  return { signer: { kid, alg, privateKey }, publicJwk }
}
const trusting = (...pairs: Pair[]): KnownKeys =>
  new Map(pairs.map(({ signer: { kid, alg }, publicJwk }) => [kid, { alg, publicKey: importPublicJwk(publicJwk).key }]))
const announce = (by: Pair, next: Pair, audience = 'tokenmill') =>
  sealStatement({ audience, publicJwk: next.publicJwk, from: 2_000, now: 1_000 }, by.signer)

const [first, second, third, stranger] = [makePair(), makePair(), makePair(), makePair()]

it('a statement by a trusted key makes its key known, with the planned time', () => {
  const keys = trusting(first)
  const statement = announce(first, second)
  expect(openStatement(statement, 'tokenmill', keys)).toMatchObject({ kid: second.signer.kid, from: 2_000 })
  expect(learnKeys(keys, [statement], 'tokenmill')).toMatchObject({ valid: [statement], added: [statement] })
  expect([...keys.keys()]).toEqual([first.signer.kid, second.signer.kid])
  expect(learnKeys(keys, [statement], 'tokenmill')).toMatchObject({ valid: [statement], added: [] })
})

it('a chain of statements is followed in any order, and only from a trusted key on', () => {
  const chain = [announce(second, third), announce(first, second)]
  const keys = trusting(first)
  expect(learnKeys(keys, chain, 'tokenmill').added).toHaveLength(2)
  expect(keys.has(third.signer.kid)).toBe(true)
  const others = trusting(stranger)
  expect(learnKeys(others, chain, 'tokenmill')).toEqual({ valid: [], added: [], last: undefined })
  expect(others.size).toBe(1)
})

it.each([
  ['by a key that nobody announced', () => announce(stranger, second)],
  ['by the key that it announces', () => announce(second, second)],
  ['for another installation', () => announce(first, second, 'elsewhere')],
  [
    'with a changed payload',
    () => {
      const [head, , signature] = announce(first, second).split('.')
      return [head, announce(first, stranger).split('.')[1], signature].join('.')
    },
  ],
  [
    'that is signed under the name of a trusted key by another one',
    () => announce({ ...stranger, signer: { ...stranger.signer, kid: first.signer.kid } }, second),
  ],
  [
    'whose key has the kid of another key',
    () => announce(first, { ...stranger, publicJwk: { ...stranger.publicJwk, kid: first.signer.kid } }),
  ],
  [
    'that holds a private half',
    () => {
      const jwk = { ...generateKeyPairSync('ed25519').privateKey.export({ format: 'jwk' }), alg: 'EdDSA' }
      return announce(first, { ...second, publicJwk: jwk })
    },
  ],
  [
    'of another type of JWS',
    () => {
      const { alg, kid, privateKey } = first.signer
      const payload = Buffer.from(announce(first, second).split('.')[1] ?? '', 'base64url')
      return signCompact({ alg, kid, typ: 'tokenmill-result+jwt' }, payload, privateKey)
    },
  ],
  ['that is no JWS', () => 'x'],
  [
    'that is too long',
    () => announce(first, { ...second, publicJwk: { ...second.publicJwk, x5c: 'x'.repeat(5_000) } }),
  ],
])('a statement %s is refused', (_, make) => {
  const keys = trusting(first)
  const before = new Map(keys)
  expect(learnKeys(keys, [make()], 'tokenmill')).toEqual({ valid: [], added: [], last: undefined })
  expect(keys).toEqual(before)
})
