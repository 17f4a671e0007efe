import {
  createCipheriv,
  createPrivateKey,
  generateKeyPairSync,
  type KeyObject,
  publicEncrypt,
  randomBytes,
} from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { inspect } from 'node:util'
import { CompactEncrypt, compactDecrypt } from 'jose'
import { beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { importCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { encryptCard } from '../../src/vault/capture/encrypt.ts'
import { formOf, JWE_CARD_BYTES_MAX, openCard, openJweCard } from '../../src/vault/capture/open-card.ts'
import { openJwe, sealJwe } from '../../src/vault/jwe.ts'
import type { PrivateHalves } from '../../src/vault/private-half.ts'
import { CARD, CARD_TEXT, openHalves, openKek, openPairs, PAN, type Pair, pairOf, revealed } from './bundle.ts'

const REFUSED = { refused: true, reason: 'card_undecryptable', field: 'body.encrypted_card' }

let halves: PrivateHalves
let rsa: Pair
let ec: Pair
let x25519: Pair
let pgp: Pair
beforeAll(async () => {
  halves = await openHalves(await openKek())
  const pairs = await openPairs(halves)
  rsa = pairs['jwe-rsa']
  ec = pairs['jwe-ec']
  pgp = pairs.pgp
  const pem = generateKeyPairSync('x25519').privateKey.export({ format: 'pem', type: 'pkcs8' })
  x25519 = await pairOf(await importCaptureKey(new Secret(String(pem)), 'key-x25519', undefined, halves), halves)
})

const jweKey = (pair: Pair): KeyObject => {
  if (pair.to.type === 'pgp') throw new Error('not a JWE key')
  return pair.to.publicKey
}
const privateKey = (pair: Pair): KeyObject => {
  if (pair.key.type === 'pgp') throw new Error('not a JWE key')
  return pair.key.privateKey
}
const seal = (pair: Pair, header: Record<string, unknown>, text = CARD_TEXT) =>
  new CompactEncrypt(Buffer.from(text)).setProtectedHeader(header as never).encrypt(jweKey(pair))
/** As single jobs are opened, which must come to the same as how a chunk's are. */
const open = async (text: string, pair: Pair) => {
  const opened = revealed(await openCard(text, pair.key))
  if (formOf(text) === 'jwe') expect(revealed(openJweCard(text, pair.key))).toEqual(opened)
  return opened
}
const b64 = (value: unknown) => Buffer.from(JSON.stringify(value)).toString('base64url')
const parts = (text: string) => text.split('.') as [string, string, string, string, string]
/** The token with one part replaced. */
const withPart = (text: string, index: number, part: string) => parts(text).with(index, part).join('.')

describe('an encrypted card as JWE', () => {
  it('leaves the limit of stack traces as it was, opened or not', async () => {
    const text = await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256GCM' })
    const limit = Error.stackTraceLimit
    expect(openJwe(text, privateKey(rsa), 'RSA-OAEP-256', 4_096)?.plain.toString()).toBe(CARD_TEXT)
    expect(Error.stackTraceLimit).toBe(limit)
    expect(openJwe(withPart(text, 1, b64('no key')), privateKey(rsa), 'RSA-OAEP-256', 4_096)).toBeUndefined()
    expect(Error.stackTraceLimit).toBe(limit)
    expect(limit).toBeGreaterThan(0)
  })

  it('is opened in every permitted pair of algorithms', async () => {
    for (const enc of ['A256GCM', 'A128GCM']) {
      expect(await open(await seal(rsa, { alg: 'RSA-OAEP-256', enc }), rsa)).toBe(CARD_TEXT)
      expect(await open(await seal(ec, { alg: 'ECDH-ES', enc }), ec)).toBe(CARD_TEXT)
      expect(await open(await seal(x25519, { alg: 'ECDH-ES', enc }), x25519)).toBe(CARD_TEXT)
    }
    for (const pair of [rsa, ec, x25519]) expect(await open(await encryptCard(CARD, pair.to), pair)).toBe(CARD_TEXT)
  })

  it('is opened with a sender’s own header parameters, agreement parties among them', async () => {
    const header = { alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: 'theirs', iat: 1, typ: 'JOSE' }
    expect(await open(await seal(rsa, header), rsa)).toBe(CARD_TEXT)
    const parties = new CompactEncrypt(Buffer.from(CARD_TEXT))
      .setProtectedHeader({ alg: 'ECDH-ES', enc: 'A128GCM' })
      .setKeyManagementParameters({ apu: Buffer.from('Alice'), apv: Buffer.from('Bob') })
    expect(await open(await parties.encrypt(jweKey(ec)), ec)).toBe(CARD_TEXT)
  })

  it('is refused under every other algorithm, whatever key it names', async () => {
    const good = await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256GCM' })
    for (const alg of [
      'none',
      'dir',
      'RSA1_5',
      'RSA-OAEP',
      'RSA-OAEP-512',
      'A256KW',
      'A256GCMKW',
      'PBES2-HS256+A128KW',
      'ECDH-ES',
      'ECDH-ES+A256KW',
      '',
      null,
      7,
      ['RSA-OAEP-256'],
    ]) {
      expect(await open(withPart(good, 0, b64({ alg, enc: 'A256GCM' })), rsa)).toEqual(REFUSED)
    }
    for (const enc of ['A128CBC-HS256', 'A256CBC-HS512', 'A192GCM', 'none', '', null, 'toString', '__proto__']) {
      expect(await open(withPart(good, 0, b64({ alg: 'RSA-OAEP-256', enc })), rsa)).toEqual(REFUSED)
    }
    expect(await open(await seal(rsa, { alg: 'RSA-OAEP', enc: 'A256GCM' }), rsa)).toEqual(REFUSED)
    expect(await open(await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256CBC-HS512' }), rsa)).toEqual(REFUSED)
    expect(await open(await seal(ec, { alg: 'ECDH-ES+A256KW', enc: 'A256GCM' }), ec)).toEqual(REFUSED)
    expect(await open(await symmetric('dir', randomBytes(32)), rsa)).toEqual(REFUSED)
    expect(await open(await symmetric('PBES2-HS256+A128KW', randomBytes(32)), rsa)).toEqual(REFUSED)
    // A token with `alg: none` is refused, although it has five parts, too.
    expect(await open(`${b64({ alg: 'none', enc: 'A256GCM' })}....`, rsa)).toEqual(REFUSED)
  })

  it('is checked in full behind a header that was read before', async () => {
    const header = { alg: 'RSA-OAEP-256', enc: 'A256GCM', kid: 'read twice' }
    const first = await seal(rsa, header)
    expect(await open(first, rsa)).toBe(CARD_TEXT)
    const second = await seal(rsa, header, '{"cardNumber":"other"}')
    expect(parts(second)[0]).toBe(parts(first)[0])
    expect(await open(second, rsa)).toBe('{"cardNumber":"other"}')
    expect(await open(withPart(first, 3, parts(second)[3]), rsa)).toEqual(REFUSED)
    // The header alone, with no key of its algorithm, in another spelling, and with a member more.
    expect(await open(first, ec)).toEqual(REFUSED)
    expect(await open(withPart(first, 0, `${parts(first)[0]}=`), rsa)).toEqual(REFUSED)
    expect(await open(withPart(first, 0, b64({ ...header, more: 1 })), rsa)).toEqual(REFUSED)
  })

  it('is refused compression, extensions and keys of the sender’s choice, though sealed correctly', async () => {
    const jwk = jweKey(rsa).export({ format: 'jwk' })
    for (const extra of [
      { zip: 'DEF' },
      { crit: ['exp'], exp: 1 },
      { jwk },
      { jku: 'https://example.com/' },
      { x5c: [] },
      { x5u: 'https://example.com/' },
      { p2c: 1 },
      { zip: null },
    ]) {
      // sealJwe writes into the header what jose would refuse to write.
      const sealed = sealJwe(Buffer.from(CARD_TEXT), jweKey(rsa), extra as unknown as Record<string, string>)
      expect(await open(sealed, rsa)).toEqual(REFUSED)
    }
  })

  it('is refused under another alias of the same type, of another type, and as another form', async () => {
    const [sealed, agreed, message] = await Promise.all([
      encryptCard(CARD, rsa.to),
      encryptCard(CARD, ec.to),
      encryptCard(CARD, pgp.to),
    ])
    const stranger = (await openPairs(halves))['jwe-rsa']
    expect(await open(sealed, stranger)).toEqual(REFUSED)
    for (const pair of [ec, x25519, pgp]) expect(await open(sealed, pair)).toEqual(REFUSED)
    for (const pair of [rsa, x25519, pgp]) expect(await open(agreed, pair)).toEqual(REFUSED)
    for (const pair of [rsa, ec]) expect(await open(message, pair)).toEqual(REFUSED)
  })

  it('is refused once any part was changed, cut short or lengthened', async () => {
    for (const pair of [rsa, ec]) {
      const good = await encryptCard(CARD, pair.to)
      const [header, key, iv, body, tag] = parts(good)
      for (const [i, part] of [header, key, iv, body, tag].entries()) {
        const flipped = Buffer.from(part === '' ? 'AAAA' : part, 'base64url')
        flipped[0] = (flipped[0] ?? 0) ^ 1
        expect(await open(withPart(good, i, flipped.toString('base64url')), pair)).toEqual(REFUSED)
        expect(await open(withPart(good, i, `${part}AAAA`), pair)).toEqual(REFUSED)
        if (part !== '') expect(await open(withPart(good, i, ''), pair)).toEqual(REFUSED)
      }
      // GCM also knows tags of 12 bytes, which are easier to forge.
      expect(await open(withPart(good, 4, tag.slice(0, 16)), pair)).toEqual(REFUSED)
    }
  })

  it('is refused a content key of another length than its cipher’s', async () => {
    const good = await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256GCM' })
    const short = publicEncrypt({ key: jweKey(rsa), oaepHash: 'sha256' }, randomBytes(16)).toString('base64url')
    expect(await open(withPart(good, 1, short), rsa)).toEqual(REFUSED)
  })

  it('is refused in any other spelling of the same bytes', async () => {
    const good = await encryptCard(CARD, rsa.to)
    const [header, , , , tag] = parts(good)
    const spellings = [
      `${good}\n`,
      `${good} `,
      ` ${good}`,
      `${good}=`,
      `${good}==`,
      `\ufeff${good}`,
      `${good}.`,
      `${good}\0`,
      good.replaceAll('.', ' .'),
      `${header.slice(0, 4)}\n${good.slice(4)}`,
    ]
    for (const spelling of spellings) expect(await open(spelling, rsa)).toEqual(REFUSED)
    // 16 bytes leave four bits unused in the last character; the decoder ignores them.
    const alphabet = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_'
    const last = alphabet.indexOf(tag.slice(-1))
    const twin = `${tag.slice(0, -1)}${alphabet[last + 1]}`
    expect(Buffer.from(twin, 'base64url')).toEqual(Buffer.from(tag, 'base64url'))
    expect(await open(withPart(good, 4, twin), rsa)).toEqual(REFUSED)
    const standard = parts(good)
      .map(part => part.replaceAll('-', '+').replaceAll('_', '/'))
      .join('.')
    expect(standard).not.toBe(good)
    expect(await open(standard, rsa)).toEqual(REFUSED)
  })

  it('is refused a header that is not a JSON object', async () => {
    const good = await encryptCard(CARD, rsa.to)
    for (const header of ['null', '[]', '"x"', '{', '', '\ufeff{}']) {
      expect(await open(withPart(good, 0, Buffer.from(header).toString('base64url')), rsa)).toEqual(REFUSED)
    }
    expect(await open(withPart(good, 0, Buffer.from([0xff, 0xfe]).toString('base64url')), rsa)).toEqual(REFUSED)
  })

  it('may have 16 KiB and not one character more', async () => {
    const head = await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256GCM' }, '')
    const room = Math.floor(((JWE_CARD_BYTES_MAX - head.length) * 3) / 4)
    const full = await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256GCM' }, 'x'.repeat(room))
    expect(full.length).toBeGreaterThan(JWE_CARD_BYTES_MAX - 4)
    expect(await open(full, rsa)).toBe('x'.repeat(room))
    const over = await seal(rsa, { alg: 'RSA-OAEP-256', enc: 'A256GCM' }, 'x'.repeat(room + 3))
    expect(over.length).toBeGreaterThan(JWE_CARD_BYTES_MAX)
    expect(await open(over, rsa)).toEqual(REFUSED)
    expect(await open('.'.repeat(20_000_000), rsa)).toEqual(REFUSED)
  })

  it('is refused an ephemeral key off the curve, on another, of low order, or with a private half', async () => {
    const good = await encryptCard(CARD, ec.to)
    const header = JSON.parse(Buffer.from(parts(good)[0], 'base64url').toString())
    const p384 = generateKeyPairSync('ec', { namedCurve: 'P-384' }).publicKey.export({ format: 'jwk' })
    const zeros = Buffer.alloc(32).toString('base64url')
    const epks = [
      { ...header.epk, y: header.epk.x },
      { kty: 'EC', crv: 'P-256', x: zeros, y: zeros },
      { ...header.epk, x: `${header.epk.x}A` },
      { ...header.epk, x: '' },
      { ...header.epk, d: header.epk.x },
      { ...header.epk, crv: 'P-384' },
      { kty: 'OKP', crv: 'X25519', x: header.epk.x },
      p384,
      {},
      null,
      'P-256',
      undefined,
    ]
    for (const epk of epks) expect(await open(withPart(good, 0, b64({ ...header, epk })), ec)).toEqual(REFUSED)
    const okp = parts(await encryptCard(CARD, x25519.to)).join('.')
    for (const x of [zeros, Buffer.alloc(32, 0).fill(1, 0, 1).toString('base64url')]) {
      const low = { alg: 'ECDH-ES', enc: 'A256GCM', epk: { kty: 'OKP', crv: 'X25519', x } }
      expect(await open(withPart(okp, 0, b64(low)), x25519)).toEqual(REFUSED)
    }
  })

  it('that holds no UTF-8 is malformed, which only its sender can bring about', async () => {
    const sealed = sealJwe(Buffer.from([0x7b, 0xff]), jweKey(rsa), {})
    expect(await open(sealed, rsa)).toEqual({ ...REFUSED, reason: 'card_malformed' })
  })

  it('comes out as a secret that prints a mask', async () => {
    const opened = await openCard(await encryptCard(CARD, rsa.to), rsa.key)
    for (const shown of [inspect(opened), `${opened}`, JSON.stringify(opened)]) expect(shown).not.toContain(PAN)
    expect(inspect(rsa.key, { depth: 9, showHidden: true })).not.toContain(privateKey(rsa).export({ format: 'jwk' }).d)
  })

  it('by the hundred lets others have the event loop in between', async () => {
    const sealed = await encryptCard(CARD, rsa.to)
    let turns = 0
    let done = false
    const others = (async () => {
      for (; !done; turns++) await setImmediate()
    })()
    const opened = await Promise.all(Array.from({ length: 300 }, () => open(sealed, rsa)))
    done = true
    await others
    expect(new Set(opened)).toEqual(new Set([CARD_TEXT]))
    // 300 RSA operations take at least 45 ms, and one turn 5 ms.
    expect(turns).toBeGreaterThan(5)
  })
})

describe('our JWE', () => {
  it('is opened by another implementation, and the other way round', async () => {
    for (const pair of [rsa, ec, x25519]) {
      const sealed = sealJwe(Buffer.from(CARD_TEXT), jweKey(pair), { kid: 'k', iss: 'c' })
      const { plaintext, protectedHeader } = await compactDecrypt(sealed, privateKey(pair))
      expect(Buffer.from(plaintext).toString()).toBe(CARD_TEXT)
      expect(protectedHeader).toMatchObject({ enc: 'A256GCM', kid: 'k', iss: 'c' })
    }
  })

  it('agrees on the key of RFC 7518, appendix C', () => {
    // Appendix C gives Alice's ephemeral key, Bob's static key, apu, apv and the derived key; the content is ours.
    const bob = {
      kty: 'EC',
      crv: 'P-256',
      x: 'weNJy2HscCSM6AEDTDg04biOvhFhyyWvOHQfeF_PxMQ',
      y: 'e8lnCO-AlStT-NJVX-crhB7QRYhiix03illJOVAOyck',
      d: 'VEmDZpDXXK8p8N0Cndsxs924q6nS1RXFASRl6BfUqdw',
    }
    const epk = {
      kty: 'EC',
      crv: 'P-256',
      x: 'gI0GAILBdu7T53akrFmMyGcsF3n5dO7MmwNBHKW5SV0',
      y: 'SLW_xSffzlPWrHEVI30DHM_4egVwt3NQqeUD7nMFpps',
    }
    const header = b64({ alg: 'ECDH-ES', enc: 'A128GCM', apu: 'QWxpY2U', apv: 'Qm9i', epk })
    const sealed = gcmParts('VqqN6vgjbSBcIijNcacQGg', header, CARD_TEXT)
    const key = createPrivateKey({ key: bob, format: 'jwk' })
    expect(openJwe(sealed, key, 'ECDH-ES', 16_384)?.plain.toString()).toBe(CARD_TEXT)
  })
})

async function symmetric(alg: string, key: Buffer): Promise<string> {
  return new CompactEncrypt(Buffer.from(CARD_TEXT)).setProtectedHeader({ alg, enc: 'A256GCM' }).encrypt(key)
}

/** A compact JWE without encrypted key, its content sealed with `key` (base64url). */
function gcmParts(key: string, header: string, text: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-128-gcm', Buffer.from(key, 'base64url'), iv).setAAD(Buffer.from(header))
  const body = Buffer.concat([cipher.update(text), cipher.final()])
  return [header, '', ...[iv, body, cipher.getAuthTag()].map(part => part.toString('base64url'))].join('.')
}
