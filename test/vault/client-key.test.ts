import { createPrivateKey, generateKeyPairSync } from 'node:crypto'
import { inspect } from 'node:util'
import { CompactSign, calculateJwkThumbprint, compactVerify } from 'jose'
import { describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import {
  importPublicJwk,
  importRegisteredJwk,
  type Jwk,
  makeApiKey,
  makeSigningKey,
} from '../../src/vault/client-key.ts'

const jwkOf = (key: { export(options: { format: 'jwk' }): Jwk }): Jwk => key.export({ format: 'jwk' })
const ed = () => jwkOf(generateKeyPairSync('ed25519').publicKey)
const p256 = () => jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-256' }).publicKey)
const rsa = (modulusLength = 2048, publicExponent = 0x10001) =>
  jwkOf(generateKeyPairSync('rsa', { modulusLength, publicExponent }).publicKey)

describe('a signing key', () => {
  it('is Ed25519, named by its thumbprint, and verifies by its public half', async () => {
    const { alg, kid, publicJwk, privateJwk } = makeSigningKey()
    expect(kid).toBe(await calculateJwkThumbprint(publicJwk as never))
    expect(publicJwk).toEqual({ kty: 'OKP', crv: 'Ed25519', x: expect.any(String), kid, alg, use: 'sig' })
    const privateKey = createPrivateKey({ key: privateJwk.reveal() as never, format: 'jwk' })
    const jws = await new CompactSign(Buffer.from('{}')).setProtectedHeader({ alg, kid }).sign(privateKey)
    const known = importPublicJwk(publicJwk)
    expect(known).toMatchObject({ alg: 'EdDSA', kid })
    await compactVerify(jws, known.key, { algorithms: [known.alg] })
  })

  it('hides its private half from whoever prints it', () => {
    const pair = makeSigningKey()
    const { d } = pair.privateJwk.reveal()
    expect(typeof d).toBe('string')
    expect(inspect(pair, { depth: 9, showHidden: true })).not.toContain(String(d))
    expect(JSON.stringify(pair)).not.toContain(String(d))
  })
})

describe('a client’s public key', () => {
  it('is taken with the algorithm that its kind fixes; RSA has to say which', async () => {
    expect(importPublicJwk(ed()).alg).toBe('EdDSA')
    expect(importPublicJwk(p256()).alg).toBe('ES256')
    const key = rsa()
    expect(importPublicJwk({ ...key, alg: 'PS256' }).alg).toBe('PS256')
    expect(importPublicJwk({ ...key, alg: 'RS256' }).alg).toBe('RS256')
    for (const jwk of [ed(), p256(), { ...key, alg: 'PS256' }]) {
      expect(importPublicJwk(jwk).kid).toBe(await calculateJwkThumbprint(jwk as never))
    }
    expect(importPublicJwk({ ...ed(), kid: 'theirs' }).kid).toBe('theirs')
    expect(importRegisteredJwk({ ...ed(), key_ops: ['verify'] }).alg).toBe('EdDSA')
  })

  it.each<[string, () => Jwk]>([
    ['RSA without alg', () => rsa()],
    ['RSA of 1024 bits', () => ({ ...rsa(1024), alg: 'PS256' })],
    ['RSA with exponent 3', () => ({ ...rsa(2048, 3), alg: 'RS256' })],
    ['RSA with exponent 1', () => ({ ...rsa(), e: 'AQ', alg: 'RS256' })],
    ['RSA for ES256', () => ({ ...rsa(), alg: 'ES256' })],
    ['Ed25519 for RS256', () => ({ ...ed(), alg: 'RS256' })],
    ['alg none', () => ({ ...ed(), alg: 'none' })],
    ['alg HS256', () => ({ ...ed(), alg: 'HS256' })],
    ['P-384', () => jwkOf(generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey)],
    ['secp256k1', () => jwkOf(generateKeyPairSync('ec', { namedCurve: 'secp256k1' }).publicKey)],
    ['X25519', () => jwkOf(generateKeyPairSync('x25519').publicKey)],
    ['a point off the curve', () => ({ ...p256(), y: p256()['y'] })],
    ['a symmetric key', () => ({ kty: 'oct', k: 'c2VjcmV0' })],
    ['a private half', () => jwkOf(generateKeyPairSync('ed25519').privateKey)],
    ['a private half of RSA', () => ({ ...rsa(), alg: 'PS256', p: 'AQAB' })],
    ['a key for encryption', () => ({ ...p256(), use: 'enc' })],
    ['a key for signing alone', () => ({ ...ed(), key_ops: ['sign'] })],
    ['a key for nothing', () => ({ ...ed(), key_ops: [] })],
    ['key_ops with a repeat', () => ({ ...ed(), key_ops: ['verify', 'verify'] })],
    ['key_ops that is no list', () => ({ ...ed(), key_ops: 'verify' })],
    ['key_ops that holds no words', () => ({ ...ed(), key_ops: ['verify', 7] })],
    ['a kid with a line break', () => ({ ...ed(), kid: 'a\nb' })],
    ['a kid that is no text', () => ({ ...ed(), kid: 7 })],
    ['nothing', () => ({})],
  ])('is refused: %s', (_, make) => {
    const jwk = make()
    expect(() => importRegisteredJwk(jwk)).toThrow(ConfigError)
  })
})

describe('an API key', () => {
  it('is 32 random bytes, and prints a mask', () => {
    const keys = Array.from({ length: 100 }, () => makeApiKey())
    expect(new Set(keys.map(key => key.reveal())).size).toBe(100)
    for (const key of keys) expect(key.reveal()).toMatch(/^[A-Za-z0-9_-]{43}$/)
    expect(`${keys[0]} ${inspect(keys[0])} ${JSON.stringify(keys[0])}`).toBe('[secret] [secret] "[secret]"')
  })
})
