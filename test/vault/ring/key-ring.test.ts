import { createHmac } from 'node:crypto'
import { inspect } from 'node:util'
import { beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { Secret } from '../../../src/secret.ts'
import { type KeyProvider, keksOf } from '../../../src/vault/kek/provider.ts'
import { type KeyRing, makeDataKeys, openKeyRing, PURPOSES, type WrappedKey } from '../../../src/vault/ring/key-ring.ts'
import { openKek, PAN } from '../bundle.ts'

const pan = new Secret(PAN)
const other = new Secret('5555555555554444')
const tokenId = '01890a5d-ac96-774b-bcce-b302099a8057'
const otherId = '01890a5d-ac96-774b-bcce-b302099a8058'
const scope = '3f2504e0-4f89-41d3-9a0c-0305e82c3301'
const otherScope = '3f2504e0-4f89-41d3-9a0c-0305e82c3302'

let kek: KeyProvider
let keys: WrappedKey[]
let ring: KeyRing
beforeAll(async () => {
  kek = await openKek()
  keys = await makeDataKeys(kek, PURPOSES)
  ring = await openKeyRing(keksOf(kek), keys)
})

describe('a sealed card', () => {
  it('opens for no other token, no other scope, and not with the two exchanged', () => {
    const { sealed, keyVersion } = ring.seal(pan, tokenId, scope)
    for (const [id, of] of [
      [otherId, scope],
      [tokenId, otherScope],
      [scope, tokenId],
    ] as const) {
      expect(() => ring.open(sealed, keyVersion, id, of)).toThrow(expect.objectContaining({ code: 'defect' }))
    }
  })

  it('does not open once any byte was changed or cut off', () => {
    const { sealed, keyVersion } = ring.seal(pan, tokenId, scope)
    for (let i = 0; i < sealed.length; i++) {
      const changed = Buffer.from(sealed)
      changed[i] = (changed[i] ?? 0) ^ 1
      expect(() => ring.open(changed, keyVersion, tokenId, scope)).toThrow(Fault)
      expect(() => ring.open(sealed.subarray(0, i), keyVersion, tokenId, scope)).toThrow(Fault)
    }
  })

  it('says nothing of the card when it does not open', () => {
    const { sealed, keyVersion } = ring.seal(pan, tokenId, scope)
    try {
      ring.open(sealed, keyVersion, otherId, scope)
    } catch (error) {
      expect(inspect(error, { depth: 9 })).not.toContain(PAN)
      expect(inspect(error, { depth: 9 })).not.toContain(sealed.toString('hex'))
    }
    expect.assertions(2)
  })

  it('opens to the card, masked, and holds nonce, as many bytes as digits, and tag', () => {
    const { sealed, keyVersion } = ring.seal(pan, tokenId, scope)
    expect(sealed.length).toBe(12 + 16 + 16)
    const opened = ring.open(sealed, keyVersion, tokenId.toUpperCase(), scope)
    expect(opened.reveal()).toBe(PAN)
    expect(inspect(opened)).toBe('[secret]')
  })

  it('uses the nonce handed in, and another for each card without one', () => {
    const nonce = Buffer.alloc(12, 7)
    expect(ring.seal(pan, tokenId, scope, nonce).sealed.subarray(0, 12)).toEqual(nonce)
    const drawn = Array.from({ length: 100 }, () => ring.seal(pan, tokenId, scope).sealed.toString('hex', 0, 12))
    expect(new Set(drawn).size).toBe(100)
  })

  it('is refused a malformed id and a nonce of another length: the caller is wrong', () => {
    const broken = [
      '',
      'x'.repeat(36),
      tokenId.replaceAll('-', ''),
      `${tokenId}0`,
      tokenId.replace('-', '0'),
      tokenId.replace('a', 'é'),
    ]
    for (const id of broken) expect(() => ring.seal(pan, id, scope)).toThrow(/broken law/)
    expect(() => ring.seal(pan, tokenId, scope, Buffer.alloc(16))).toThrow(/broken law/)
  })
})

describe('a fingerprint', () => {
  it('is equal for one card in one scope only, whatever the case of the scope’s letters', () => {
    const one = ring.fingerprint(pan, scope)
    expect(one.length).toBe(32)
    expect(ring.fingerprint(new Secret(PAN), scope.toUpperCase())).toEqual(one)
    expect(ring.fingerprint(other, scope)).not.toEqual(one)
    expect(ring.fingerprint(pan, otherScope)).not.toEqual(one)
  })

  it('shares no key with the analytics token', () => {
    const one = ring.fingerprint(pan, scope)
    expect(ring.analyticsToken(pan, scope)).not.toBe(`a${one.toString('base64url')}`)
  })

  it('is not the bare hash of anything, and differs between installations', async () => {
    const elsewhere = await openKeyRing(keksOf(kek), await makeDataKeys(kek, PURPOSES))
    expect(elsewhere.fingerprint(pan, scope)).not.toEqual(ring.fingerprint(pan, scope))
  })

  it('is HMAC-SHA-256 of the scope’s 16 bytes and the whole PAN', async () => {
    const raw = await kek.unwrap(keyOf('fingerprint').wrapped ?? Buffer.alloc(0), 'data-key/fingerprint/1')
    const expected = createHmac('sha256', raw)
      .update(Buffer.from(scope.replaceAll('-', ''), 'hex'))
      .update(PAN)
      .digest()
    expect(ring.fingerprint(pan, scope)).toEqual(expected)
    for (const text of ['4111 1111 1111 1111', '', '41111111111', `${PAN}\n`]) {
      expect(() => ring.fingerprint(new Secret(text), scope)).toThrow(/broken law/)
    }
  })

  it('of a chunk is not disturbed by the ones taken after it', () => {
    const taken = [pan, other, pan].map(each => ring.fingerprint(each, scope))
    expect(taken[0]).toEqual(taken[2])
    expect(taken[0]).not.toEqual(taken[1])
  })
})

describe('the ring', () => {
  it('makes analytics tokens of an a and 43 base64url characters, the same for one card and scope', () => {
    expect(ring.analyticsToken(pan, scope)).toMatch(/^a[A-Za-z0-9_-]{43}$/)
    expect(ring.analyticsToken(pan, scope)).toBe(ring.analyticsToken(pan, scope))
    expect(ring.analyticsToken(pan, otherScope)).not.toBe(ring.analyticsToken(pan, scope))
  })

  it('hashes requests and API keys under keys of their own', () => {
    const key = new Secret('api key')
    expect(ring.requestDigest('{"a":1}')).toEqual(ring.requestDigest('{"a":1}'))
    expect(ring.requestDigest('{"a":1}')).not.toEqual(ring.requestDigest('{"a":2}'))
    expect(ring.apiKeyHash(tokenId, key)).toEqual(ring.apiKeyHash(tokenId.toUpperCase(), key))
    expect(ring.apiKeyHash(tokenId, key)).not.toEqual(ring.apiKeyHash(otherId, key))
    expect(ring.apiKeyHash(tokenId, key).hash).not.toEqual(ring.requestDigest(`${tokenId}\napi key`).hash)
  })

  it('opens a before-image for its own token only, and no card as one', () => {
    const image = Buffer.from('{"expiry_month":12}')
    const { sealed, keyVersion } = ring.sealBeforeImage(image, tokenId)
    expect(ring.openBeforeImage(sealed, keyVersion, tokenId)).toEqual(image)
    expect(() => ring.openBeforeImage(sealed, keyVersion, otherId)).toThrow(Fault)
    const card = ring.seal(pan, tokenId, scope)
    expect(() => ring.openBeforeImage(card.sealed, card.keyVersion, tokenId)).toThrow(Fault)
  })

  it('seals with the active version and still opens what an older one sealed, until that is destroyed', async () => {
    const old = ring.seal(pan, tokenId, scope)
    const next = await makeDataKeys(kek, ['seal'], 2)
    const retired = keys.map(key => (key.purpose === 'seal' ? { ...key, state: 'DECRYPT_ONLY' as const } : key))
    const rotated = await openKeyRing(keksOf(kek), [...retired, ...next])
    expect(rotated.seal(pan, tokenId, scope).keyVersion).toBe(2)
    expect(rotated.open(old.sealed, old.keyVersion, tokenId, scope).reveal()).toBe(PAN)
    expect(() => rotated.open(old.sealed, 2, tokenId, scope)).toThrow(Fault)
    const destroyed = retired.map(key =>
      key.purpose === 'seal' ? { ...key, wrapped: Buffer.alloc(0), state: 'DESTROYED' as const } : key,
    )
    const after = await openKeyRing(keksOf(kek), [...destroyed, ...next])
    expect(() => after.open(old.sealed, old.keyVersion, tokenId, scope)).toThrow(
      expect.objectContaining({ code: 'key_unavailable' }),
    )
  })

  it('is not opened without exactly one active key for each purpose, nor with keys exchanged', async () => {
    const unavailable = expect.objectContaining({ code: 'key_unavailable' })
    for (const purpose of PURPOSES) {
      await expect(
        openKeyRing(
          keksOf(kek),
          keys.filter(key => key.purpose !== purpose),
        ),
      ).rejects.toEqual(unavailable)
    }
    await expect(openKeyRing(keksOf(kek), [...keys, ...(await makeDataKeys(kek, ['seal'], 2))])).rejects.toEqual(
      unavailable,
    )
    const exchanged = keys.map(key =>
      key.purpose === 'seal' ? { ...key, wrapped: keyOf('fingerprint').wrapped } : key,
    )
    await expect(openKeyRing(keksOf(kek), exchanged)).rejects.toEqual(unavailable)
    await expect(openKeyRing(keksOf(await openKek()), keys)).rejects.toEqual(unavailable)
  })

  it('shows none of its keys', async () => {
    const shown = inspect(ring, { depth: 9, showHidden: true })
    for (const { purpose, wrapped } of keys) {
      const raw = await kek.unwrap(wrapped ?? Buffer.alloc(0), `data-key/${purpose}/1`)
      expect(shown).not.toContain(raw.toString('hex'))
    }
  })
})

function keyOf(purpose: string): WrappedKey {
  const key = keys.find(each => each.purpose === purpose)
  if (!key) throw new Error(`no key ${purpose}`)
  return key
}
