import { inspect } from 'node:util'
import { deflateRawSync } from 'node:zlib'
import {
  type AnyPacket,
  CompressedDataPacket,
  config,
  createMessage,
  decrypt,
  encrypt,
  encryptSessionKey,
  enums,
  generateKey,
  type KeyOptions,
  Message,
  PacketList,
  type PartialConfig,
  type PublicKey,
  readKey,
  readMessage,
  SymmetricallyEncryptedDataPacket,
} from 'openpgp'
import { beforeAll, describe, expect, it } from 'vitest'
import { Secret } from '../../src/secret.ts'
import { importCaptureKey, openCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { encryptCard } from '../../src/vault/capture/encrypt.ts'
import { openCard, PGP_CARD_BYTES_MAX } from '../../src/vault/capture/open-card.ts'
import { PGP_PLAIN_BYTES_MAX } from '../../src/vault/pgp/pgp-config.ts'
import type { PrivateHalves } from '../../src/vault/private-half.ts'
import { CARD, CARD_TEXT, openHalves, openKek, openPairs, PAN, type Pair, revealed } from './bundle.ts'
import { IDEA_MESSAGE, OLD_CARD, OLD_KEY, OLD_MESSAGE } from './old-client.ts'

const REFUSED = { refused: true, reason: 'card_undecryptable', field: 'body.encrypted_card' }

let halves: PrivateHalves
let pgp: Pair
let jwe: Pair
beforeAll(async () => {
  halves = await openHalves(await openKek())
  const pairs = await openPairs(halves)
  pgp = pairs.pgp
  jwe = pairs['jwe-ec']
})

const open = async (text: string, pair = pgp) => revealed(await openCard(text, pair.key))
const base64 = (data: string | Uint8Array) => Buffer.from(data as string).toString('base64')

function publicKey(pair = pgp): PublicKey {
  if (pair.to.type !== 'pgp') throw new Error('not an OpenPGP key')
  return pair.to.publicKey
}

const write = async (data: string | Uint8Array, to = publicKey(), options: PartialConfig = {}): Promise<Uint8Array> =>
  encrypt({
    message: await createMessage({ binary: new Uint8Array(Buffer.from(data as string)) }),
    encryptionKeys: to,
    format: 'binary',
    config: { ...config, rejectCurves: new Set(), ...options },
  })

describe('an encrypted card as OpenPGP message', () => {
  it('is opened as base64 of armor, base64 of binary, and bare armor', async () => {
    const encoded = await encryptCard(CARD, pgp.to)
    const armored = Buffer.from(encoded, 'base64').toString()
    expect(armored).toMatch(/^-----BEGIN PGP MESSAGE-----/)
    const forms = [
      encoded,
      armored,
      armored.replaceAll('\n', '\r\n'),
      `\n${armored}\n\n`,
      base64(await write(CARD_TEXT)),
      base64(await write(CARD_TEXT)).replace(/=+$/, ''),
      encoded.replace(/.{76}/g, '$&\r\n'),
      base64(`\n${armored}`),
    ]
    for (const form of forms) expect(await open(form)).toBe(CARD_TEXT)
  })

  it.each<[string, Partial<KeyOptions>]>([
    ['RSA 2048', { type: 'rsa', rsaBits: 2048 }],
    ['NIST P-256', { type: 'ecc', curve: 'nistP256' }],
    ['NIST P-384', { type: 'ecc', curve: 'nistP384' }],
    ['NIST P-521', { type: 'ecc', curve: 'nistP521' }],
    ['curve25519 in its old form', { type: 'ecc', curve: 'curve25519Legacy' }],
    ['curve25519 in its new form', { type: 'curve25519' }],
    [
      'secp256k1 below another primary key',
      { type: 'ecc', curve: 'curve25519Legacy', subkeys: [{ type: 'ecc', curve: 'secp256k1' }] },
    ],
  ])('is opened with a key of %s', async (_, options) => {
    const pair = await generate(options)
    for (const each of [
      {},
      { preferredCompressionAlgorithm: enums.compression.zlib },
      { preferredSymmetricAlgorithm: enums.symmetric.aes128 },
    ]) {
      expect(await open(base64(await write(CARD_TEXT, pair.publicKey, each)), pair)).toBe(CARD_TEXT)
    }
  })

  it('is opened with a key that lies on secp256k1 altogether, as old clients have', async () => {
    const record = await importCaptureKey(new Secret(OLD_KEY), 'old', 'pgp', halves)
    const key = await openCaptureKey(record, halves)
    expect(revealed(await openCard(OLD_MESSAGE, key))).toBe(OLD_CARD)
    expect(revealed(await openCard(base64(OLD_MESSAGE), key))).toBe(OLD_CARD)
  })

  it('is opened with padding behind its compressed data, as sq writes it, within the same bounds', async () => {
    const padded = async (text: string, padding: number) => {
      const literal = (await createMessage({ binary: new Uint8Array(Buffer.from(text)) })).write()
      const compressed = Buffer.concat([deflateRawSync(literal), Buffer.alloc(padding)])
      const packets = new PacketList<AnyPacket>()
      packets.push(Object.assign(new CompressedDataPacket(), { algorithm: enums.compression.zip, compressed }))
      const message = new Message(packets)
      return base64(
        (await encrypt({ message, encryptionKeys: publicKey(), format: 'binary' })) as unknown as Uint8Array,
      )
    }
    for (const padding of [0, 1, 500]) expect(await open(await padded(CARD_TEXT, padding))).toBe(CARD_TEXT)
    expect(await open(await padded('0'.repeat(20_000_000), 10))).toEqual(REFUSED)
  })

  it('under IDEA is refused by a reason of its own', async () => {
    const key = await openCaptureKey(await importCaptureKey(new Secret(OLD_KEY), 'old', 'pgp', halves), halves)
    expect(await openCard(IDEA_MESSAGE, key)).toEqual({ ...REFUSED, reason: 'cipher_unsupported' })
    for (const options of [
      { type: 'rsa', rsaBits: 2048 },
      { type: 'ecc', curve: 'nistP256' },
    ] as const) {
      const pair = await generate(options)
      const sessionKey = await encryptSessionKey({
        data: new Uint8Array(16).fill(3),
        algorithm: 'idea',
        encryptionKeys: pair.publicKey,
        format: 'binary',
      })
      const sealed = packet(18, Buffer.concat([Buffer.from([1]), Buffer.alloc(60, 9)]))
      expect(await open(base64(Buffer.concat([sessionKey, sealed])), pair)).toEqual({
        ...REFUSED,
        reason: 'cipher_unsupported',
      })
    }
  })

  it('is refused when a password, not the key, protects it, or nothing does', async () => {
    const message = await createMessage({ text: CARD_TEXT })
    const locked = await encrypt({ message, passwords: 'password', format: 'armored' })
    expect(await open(locked)).toEqual(REFUSED)
    expect(await open(base64(locked))).toEqual(REFUSED)
    const clear = await createMessage({ text: CARD_TEXT })
    expect(await open(base64(clear.write() as Uint8Array))).toEqual(REFUSED)
    expect(await open(clear.armor())).toEqual(REFUSED)
  })

  it('is refused when it was encrypted to another key, or the alias is a JWE key’s', async () => {
    const other = await generate({ type: 'ecc', curve: 'curve25519Legacy' })
    expect(await open(base64(await write(CARD_TEXT, other.publicKey)))).toEqual(REFUSED)
    expect(await open(await encryptCard(CARD, pgp.to), jwe)).toEqual(REFUSED)
    expect(await open(Buffer.from(await encryptCard(CARD, pgp.to), 'base64').toString(), jwe)).toEqual(REFUSED)
  })

  it('is refused once any byte of it was changed, or it was cut short', async () => {
    const good = Buffer.from(await write(CARD_TEXT))
    for (let i = 0; i < good.length; i += 7) {
      const changed = Buffer.from(good)
      changed[i] = (changed[i] ?? 0) ^ 0x10
      expect(await open(base64(changed))).toMatchObject({ refused: true, field: 'body.encrypted_card' })
      expect(await open(base64(good.subarray(0, i)))).toEqual(REFUSED)
    }
  })

  it('is refused without integrity protection', async () => {
    const data = new Uint8Array(32).fill(5)
    const session = await encryptSessionKey({
      data,
      algorithm: 'aes256',
      encryptionKeys: publicKey(),
      format: 'binary',
    })
    const message = await createMessage({ text: CARD_TEXT })
    // No public function writes such a packet any more; the library's classes can.
    const sealed = new SymmetricallyEncryptedDataPacket() as unknown as {
      packets: unknown
      encrypted: Uint8Array
      encrypt(algorithm: number, key: Uint8Array, options: typeof config): Promise<void>
    }
    sealed.packets = message.packets
    await sealed.encrypt(enums.symmetric.aes256, data, config)
    const bytes = Buffer.concat([session, packet(9, Buffer.from(sealed.encrypted))])
    const lax = { ...config, allowUnauthenticatedMessages: true }
    const binaryMessage = new Uint8Array(bytes)
    if (pgp.key.type !== 'pgp') throw new Error('not an OpenPGP key')
    const decryptionKeys = pgp.key.privateKey.reveal()
    const control = await decrypt({
      message: await readMessage({ binaryMessage, config: lax }),
      decryptionKeys,
      config: lax,
    })
    expect(control.data).toBe(CARD_TEXT)
    expect(await open(base64(bytes))).toEqual(REFUSED)
  })

  it('is refused when it is small but unpacks to more than 8 KiB', async () => {
    const bombs = [20_000_000, PGP_PLAIN_BYTES_MAX + 1].map(size =>
      write('0'.repeat(size), publicKey(), { preferredCompressionAlgorithm: enums.compression.zlib }),
    )
    for (const bomb of await Promise.all(bombs)) expect(await open(base64(bomb))).toEqual(REFUSED)
    expect(await open(base64(await write('0'.repeat(PGP_PLAIN_BYTES_MAX + 1))))).toEqual(REFUSED)
    // A message that is compressed outside of the encryption is refused without being unpacked.
    const outside = packet(8, Buffer.concat([Buffer.from([1]), deflateRawSync(Buffer.alloc(20_000_000))]))
    expect(await open(base64(outside))).toEqual(REFUSED)
  })

  it('holds up to 8 KiB within what an encrypted card may have', async () => {
    const text = 'x'.repeat(PGP_PLAIN_BYTES_MAX - 100)
    expect(await open(base64(await write(text)))).toBe(text)
    expect(await open(' '.repeat(PGP_CARD_BYTES_MAX + 1))).toEqual(REFUSED)
    expect(await open(`-----BEGIN PGP MESSAGE-----\n\n${'A'.repeat(PGP_CARD_BYTES_MAX)}`)).toEqual(REFUSED)
  })

  it('is refused as anything else that is no message', async () => {
    const good = base64(await write(CARD_TEXT))
    const texts = [
      '',
      '=',
      'AAAA',
      CARD_TEXT,
      '-----BEGIN PGP MESSAGE-----',
      `${good}*`,
      `${good} x`,
      good.replaceAll('+', '-').replaceAll('/', '_').concat('-_'),
      base64('not a message'),
      publicKey().armor(),
      base64(publicKey().write()),
      base64(good),
    ]
    for (const text of texts) expect(await open(text)).toEqual(REFUSED)
  })

  it('shows neither card nor key to whoever prints what it came from', async () => {
    const opened = await openCard(await encryptCard(CARD, pgp.to), pgp.key)
    expect(inspect(opened, { depth: 9, showHidden: true })).not.toContain(PAN)
    expect(inspect(pgp.key, { depth: 9, showHidden: true })).toContain('[secret]')
    expect(inspect(pgp.key, { depth: 9, showHidden: true })).not.toMatch(/privateParams|Uint8Array/)
  })
})

async function generate(options: Partial<KeyOptions>): Promise<Pair & { publicKey: PublicKey }> {
  const { privateKey, publicKey: armored } = await generateKey({
    ...options,
    userIDs: [{ name: 'test' }],
    format: 'armored',
    config: { rejectCurves: new Set() },
  })
  const record = await importCaptureKey(new Secret(privateKey), 'generated', 'pgp', halves)
  return {
    record,
    key: await openCaptureKey(record, halves),
    to: pgp.to,
    publicKey: await readKey({ armoredKey: armored }),
  }
}

/** An OpenPGP packet in the new format, of up to 2^32 bytes. */
function packet(tag: number, body: Buffer): Buffer {
  const head = Buffer.from([0xc0 | tag, 0xff, 0, 0, 0, 0])
  head.writeUInt32BE(body.length, 2)
  return Buffer.concat([head, body])
}
