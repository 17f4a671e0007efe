import { createHash } from 'node:crypto'
import { appendFile, mkdtemp, open, readdir, readFile, rm, truncate, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { deflateRawSync, gzipSync } from 'node:zlib'
import {
  type AnyPacket,
  CompressedDataPacket,
  createMessage,
  encrypt,
  encryptKey,
  enums,
  generateKey,
  Message,
  PacketList,
  readKey,
  readPrivateKey,
  readPrivateKeys,
  revokeKey,
  type SecretSubkeyPacket,
  unarmor,
} from 'openpgp'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { FileError } from '../../../producers/rows/file-error.ts'
import { encryptOpenpgp } from '../../../producers/rows/openpgp/decrypt.ts'
import { readRecipient } from '../../../producers/rows/openpgp/recipient.ts'
import { SEGMENT_BYTES } from '../../../producers/rows/segments.ts'
import { openSource, type SourceOptions, validateSource } from '../../../producers/rows/source.ts'
import { validateFile } from '../../../producers/rows/validate-file.ts'
import { Secret } from '../../../src/secret.ts'
import { concat, inPieces } from './bytes.ts'
import { samples } from './openpgp-samples.ts'

const HEADER = 'reference,card_number,expiry\n'
const ROWS = `${HEADER}${Array.from({ length: 4_000 }, (_, index) => `c-${index},4111111111111111,0527\n`).join('')}`
const CSV = { format: 'csv', recordKind: 'token-create' } as const

let folder: string
const path = (name: string) => join(folder, name)
const put = async (name: string, bytes: Buffer | string) => {
  await writeFile(path(name), bytes)
  return path(name)
}
interface KeyPair {
  publicKey: string
  privateKey: string
  file: string
}
const keys: Record<string, KeyPair> = {}

/** v1: integrity by MDC, as gpg writes it; v2: AEAD. */
async function makeKey(name: string, aead: boolean, passphrase?: string): Promise<void> {
  const { publicKey, privateKey } = await generateKey({
    type: 'curve25519',
    userIDs: [{ name }],
    format: 'armored',
    config: { aeadProtect: aead },
    ...(passphrase === undefined ? {} : { passphrase }),
  })
  keys[name] = { publicKey, privateKey, file: await put(`${name}.key`, privateKey) }
}
const key = (name: string) => keys[name] as KeyPair

async function encryptTo(name: string, text: string, signer?: string): Promise<Buffer> {
  const encrypted = await encrypt({
    message: await createMessage({ binary: Buffer.from(text) }),
    encryptionKeys: await readKey({ armoredKey: key(name).publicKey }),
    ...(signer === undefined ? {} : { signingKeys: await readPrivateKey({ armoredKey: key(signer).privateKey }) }),
    format: 'binary',
    config: { aeadProtect: name === 'v2' },
  })
  return Buffer.from(encrypted as Uint8Array)
}

async function readTwice(options: SourceOptions): Promise<Buffer> {
  const { digests } = await validateSource(options, concat)
  return concat((await openSource(options, digests)).bytes)
}

async function failure(options: SourceOptions, check = (bytes: AsyncIterable<Buffer>) => concat(bytes)) {
  const error: unknown = await validateSource(options, check).then(
    () => undefined,
    thrown => thrown,
  )
  expect(error).toBeInstanceOf(FileError)
  return error as FileError
}

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'tokenmill-source-'))
  await makeKey('v1', false)
  await makeKey('v2', true)
  await makeKey('other', false)
  await makeKey('locked', false, 'open sesame')
})
afterAll(() => rm(folder, { recursive: true, force: true }))

describe('a source', () => {
  it('is read twice to the same bytes through every order of layers', async () => {
    const zipped = gzipSync(ROWS)
    const files: readonly (readonly [string, Buffer])[] = [
      ['a.csv', Buffer.from(ROWS)],
      ['a.csv.gz', zipped],
      ['a.csv.pgp', await encryptTo('v1', ROWS)],
      ['a.csv.gz.gpg', await concat(encryptOpenpgp(inPieces(zipped), key('v1').publicKey))],
      ['a.csv.pgp.gz', gzipSync(await encryptTo('v1', ROWS))],
    ]
    for (const [name, bytes] of files) {
      const options = { path: await put(name, bytes), decryptKeyFile: key('v1').file }
      expect([name, (await readTwice(options)).equals(Buffer.from(ROWS))]).toEqual([name, true])
      const { digests } = await validateSource(options, concat)
      expect([name, digests.sha256]).toEqual([name, createHash('sha256').update(bytes).digest('hex')])
    }
  })

  it('reads an armored message, whatever its name says, and AEAD', async () => {
    const armored = await encrypt({
      message: await createMessage({ binary: Buffer.from(ROWS) }),
      encryptionKeys: await readKey({ armoredKey: key('v1').publicKey }),
    })
    for (const name of ['b.csv.asc', 'b.csv.pgp']) {
      const got = await readTwice({ path: await put(name, armored), decryptKeyFile: key('v1').file })
      expect(got.toString()).toBe(ROWS)
    }
    const aead = await put('c.csv.pgp', await encryptTo('v2', ROWS))
    expect((await readTwice({ path: aead, decryptKeyFile: key('v2').file })).toString()).toBe(ROWS)
  })

  it('is proven with the digest that sha256sum prints, its size and its number of rows', async () => {
    const file = await put('d.csv', ROWS)
    const { digests, rows } = await validateFile({ path: file }, CSV)
    expect(rows).toBe(4_000)
    expect(digests).toEqual({
      sha256: createHash('sha256').update(ROWS).digest('hex'),
      bytes: ROWS.length,
      segments: [digests.sha256],
    })
  })

  it('gives not a byte of a segment that changed between its readings, nor of what was put behind it', async () => {
    const whole = Buffer.alloc(SEGMENT_BYTES * 2 + 1000, 'x')
    const changes: readonly (readonly [string, number, (file: string) => Promise<void>])[] = [
      ['changed at the start', 0, file => overwrite(file, 10)],
      ['changed in the second segment', SEGMENT_BYTES, file => overwrite(file, SEGMENT_BYTES * 2 - 1)],
      ['changed at the end', SEGMENT_BYTES * 2, file => overwrite(file, whole.length - 1)],
      ['cut off', SEGMENT_BYTES * 2, file => truncate(file, whole.length - 1)],
      ['cut off between segments', SEGMENT_BYTES * 2, file => truncate(file, SEGMENT_BYTES * 2)],
      ['made longer', SEGMENT_BYTES * 2, file => appendFile(file, 'y')],
    ]
    for (const [what, released, change] of changes) {
      const file = await put('e.csv', whole)
      const { digests } = await validateSource({ path: file }, async bytes => {
        for await (const _ of bytes);
      })
      await change(file)
      let count = 0
      const reading = (async () => {
        for await (const piece of (await openSource({ path: file }, digests)).bytes) count += piece.length
      })()
      await expect(reading, what).rejects.toThrow(/changed between its two readings/)
      expect([what, count]).toEqual([what, released])
    }
  })

  it('stops within a gzip bomb', async () => {
    const file = await put('f.csv.gz', Buffer.concat([gzipSync(HEADER), gzipSync(Buffer.alloc(150_000_000, 'x'))]))
    const before = process.memoryUsage().rss
    await expect(validateFile({ path: file }, CSV)).rejects.toThrow('Line 2: the row is longer than 16 MiB')
    expect(process.memoryUsage().rss - before).toBeLessThan(80 * 1024 * 1024)
  })

  it('closes the file when its reader leaves early', async () => {
    const file = await put('g.csv.gz.pgp', await encryptTo('v1', gzipSync(ROWS.repeat(20)).toString('latin1')))
    const open = async () => (await readdir('/proc/self/fd').catch(() => [])).length
    const { digests } = await validateSource({ path: file.replace('g.csv.gz.pgp', 'd.csv') }, concat)
    const before = await open()
    for await (const _ of (await openSource({ path: path('d.csv') }, digests)).bytes) break
    await validateFile({ path: await put('h.csv', `reference,card\n${ROWS.repeat(50)}`) }, CSV).catch(() => {})
    await expect.poll(open).toBeLessThanOrEqual(before)
  })
})

async function overwrite(file: string, at: number): Promise<void> {
  const handle = await open(file, 'r+')
  await handle.write(Buffer.from('y'), 0, 1, at)
  await handle.close()
}

describe('gzip', () => {
  it.each([
    ['cut off', (bytes: Buffer) => bytes.subarray(0, -9), /ends too early/],
    ['cut off in its trailer', (bytes: Buffer) => bytes.subarray(0, -4), /ends too early/],
    ['damaged', (bytes: Buffer) => flipped(bytes, bytes.length >> 1), /damaged gzip data|ends too early/],
    ['of another checksum', (bytes: Buffer) => flipped(bytes, bytes.length - 6), /damaged gzip data/],
    [
      'with a damaged second member',
      (bytes: Buffer) => Buffer.concat([bytes, flipped(bytes, 0)]),
      /damaged gzip data|goes on after/,
    ],
    ['with text behind it', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('more')]), /goes on after|damaged/],
    [
      'with zeros behind it',
      (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(2_000_000)]),
      /goes on after|damaged/,
    ],
    ['that is none', () => Buffer.from(ROWS), /damaged gzip data/],
  ])('refuses a file %s', async (_, spoil, words) => {
    const error = await failure({ path: await put('x.csv.gz', spoil(gzipSync(ROWS))) })
    expect([error.kind, error.status]).toEqual(['input', 1])
    expect(error.message).toMatch(words)
  })

  it('reads all members of a file', async () => {
    const file = await put('y.csv.gz', Buffer.concat([gzipSync('a'), gzipSync(''), gzipSync('b')]))
    expect((await readTwice({ path: file })).toString()).toBe('ab')
  })
})

function flipped(bytes: Buffer, at: number): Buffer {
  const copy = Buffer.from(bytes)
  copy[at] = (copy[at] as number) ^ 0x10
  return copy
}

describe('OpenPGP', () => {
  it.each(['v1', 'v2'])('(%s) is refused wherever a bit is flipped, or gives what was encrypted', async name => {
    const genuine = await encryptTo(name, ROWS)
    const places = Array.from({ length: 60 }, (_, index) => Math.floor((index * genuine.length) / 60))
    const head = Array.from({ length: 40 }, (_, index) => index * 5)
    for (const at of [...places, ...head, genuine.length - 1]) {
      const file = await put('flip.csv.pgp', flipped(genuine, at))
      const outcome = await validateSource({ path: file, decryptKeyFile: key(name).file }, concat).then(
        ({ checked }) => checked.equals(Buffer.from(ROWS)),
        error => error instanceof FileError,
      )
      // The key id of an AEAD message may be changed without harm: what it protects comes out whole or not at all.
      expect([at, outcome]).toEqual([at, true])
    }
    // The long limit is needed because a changed byte may make the library wait until its watch ends it.
  })

  it.each(['v1', 'v2'])('(%s) is refused wherever it is cut off', async name => {
    const genuine = await encryptTo(name, ROWS)
    for (const cut of [
      1,
      2,
      16,
      17,
      22,
      23,
      40,
      1_000,
      genuine.length >> 1,
      genuine.length - 200,
      genuine.length - 20,
    ]) {
      const file = await put('cut.csv.pgp', genuine.subarray(0, genuine.length - cut))
      const error = await failure({ path: file, decryptKeyFile: key(name).file })
      expect([cut, error.kind]).toEqual([cut, 'input'])
      expect(error.message).toMatch(/too early|integrity check|no OpenPGP message/)
    }
  })

  it('is refused when anything stands behind the message, a second message above all', async () => {
    const genuine = await encryptTo('v1', ROWS)
    const armored = await encrypt({
      message: await createMessage({ binary: Buffer.from(ROWS) }),
      encryptionKeys: await readKey({ armoredKey: key('v1').publicKey }),
    })
    const files = [
      Buffer.concat([genuine, genuine]),
      Buffer.concat([genuine, Buffer.from('more')]),
      Buffer.from(`${armored}${armored}`),
      Buffer.from(`${armored}\nmore\n`),
    ]
    for (const [index, bytes] of files.entries()) {
      const file = await put('behind.csv.pgp', bytes)
      const outcome = await validateSource({ path: file, decryptKeyFile: key('v1').file }, concat).then(
        () => 'taken',
        error => error instanceof FileError && error.kind,
      )
      expect([index, outcome]).toEqual([index, 'input'])
    }
  })

  it('tells a wrong key, a missing key, a locked key and a wrong passphrase from damage', async () => {
    const file = await put('key.csv.pgp', await encryptTo('v1', ROWS))
    const locked = await put('locked.csv.pgp', await encryptTo('locked', ROWS))
    const cases: readonly (readonly [SourceOptions, RegExp])[] = [
      [{ path: file }, /Give its private key with --decrypt-key/],
      [
        { path: file, decryptKeyFile: key('other').file },
        /is encrypted to the key [0-9A-F]{16}, and --decrypt-key holds the keys [0-9A-F]{16}, [0-9A-F]{16}\./,
      ],
      [{ path: file, decryptKeyFile: path('absent.key') }, /cannot be read/],
      [{ path: file, decryptKeyFile: await put('no.key', 'nothing') }, /holds no OpenPGP private key/],
      [{ path: file, decryptKeyFile: await put('public.key', key('v1').publicKey) }, /holds no OpenPGP private key/],
      [{ path: locked, decryptKeyFile: key('locked').file }, /has a passphrase/],
      [{ path: locked, decryptKeyFile: key('locked').file, passphrase: new Secret('x') }, /does not open the key/],
      [{ path: path('d.csv'), verifyKeyFile: key('v1').file }, /bears no signature/],
      [{ path: path('absent.csv') }, /cannot be read \(ENOENT\)/],
      [{ path: folder }, /is no regular file/],
      [{ path: '-' }, /cannot be read twice/],
    ]
    for (const [options, words] of cases) {
      const error = await failure(options)
      expect(error.message).toMatch(words)
      expect([error.kind, error.status]).toEqual(['usage', 64])
    }
    const passphrase = new Secret('open sesame')
    const opened = await readTwice({ path: locked, decryptKeyFile: key('locked').file, passphrase })
    expect(opened.toString()).toBe(ROWS)
  })

  it('is taken only with a valid signature where --verify-key asks for one', async () => {
    const options = { decryptKeyFile: key('v1').file, verifyKeyFile: await put('signer.pub', key('other').publicKey) }
    const signed = await put('signed.csv.pgp', await encryptTo('v1', ROWS, 'other'))
    expect((await readTwice({ path: signed, ...options })).toString()).toBe(ROWS)
    for (const signer of [undefined, 'v1']) {
      const file = await put('unsigned.csv.pgp', await encryptTo('v1', ROWS, signer))
      expect((await failure({ path: file, ...options })).message).toMatch(/is not signed\.|is signed by the key/)
    }
    // No key was given to check the signature, so a signature by any key is accepted.
    expect((await readTwice({ path: signed, decryptKeyFile: key('v1').file })).toString()).toBe(ROWS)
  })

  it('lets a forged file say nothing: what its rows would complain of is told only of a genuine one', async () => {
    const options = { decryptKeyFile: key('v1').file }
    const genuine = await encryptTo('v1', `unknown_column\n${ROWS}`)
    const file = await put('genuine.csv.pgp', genuine)
    await expect(validateFile({ path: file, ...options }, CSV)).rejects.toThrow(/unknown column "unknown_column"/)
    const forged = await put('forged.csv.pgp', flipped(genuine, genuine.length - 2_000))
    await expect(validateFile({ path: forged, ...options }, CSV)).rejects.toThrow(/integrity check fails/)
  })
})

/** A literal packet, compressed by deflate, with so many bytes of padding behind the deflate data. */
async function paddedTo(name: string, text: string, padding: number): Promise<Buffer> {
  const literal = (await createMessage({ binary: Buffer.from(text) })).write()
  const packet = Object.assign(new CompressedDataPacket(), {
    algorithm: enums.compression.zip,
    compressed: Buffer.concat([deflateRawSync(literal, { level: 0 }), Buffer.alloc(padding)]),
  })
  const packets = new PacketList<AnyPacket>()
  packets.push(packet)
  const encrypted = await encrypt({
    message: new Message(packets),
    encryptionKeys: await readKey({ armoredKey: key(name).publicKey }),
    format: 'binary',
    config: { aeadProtect: name === 'v2' },
  })
  return Buffer.from(encrypted as unknown as Uint8Array)
}

describe('a file of OpenPGP keys', () => {
  const DAY_MS = 86_400_000
  const optionsOf = async (armored: string | Buffer, message: string | Buffer, passphrase?: string) => ({
    path: await put('keyed.csv.asc', message),
    decryptKeyFile: await put('keyed.key', armored),
    ...(passphrase === undefined ? {} : { passphrase: new Secret(passphrase) }),
  })
  const read = async (armored: string | Buffer, message: string | Buffer) =>
    (await readTwice(await optionsOf(armored, message))).toString()
  const binary = async (armored: string) => Buffer.from((await unarmor(armored)).data as Uint8Array)

  it('may hold several keys, in one block, one after the other, or binary', async () => {
    const { RING, OFFLINE, KEY, TO_FIRST, TO_SECOND, HIDDEN, ONE_ROW } = samples
    for (const message of [TO_FIRST, TO_SECOND, HIDDEN]) {
      expect(await read(RING, message)).toBe(ONE_ROW)
      expect(await read(await binary(RING), message)).toBe(ONE_ROW)
      expect(await read(`exported on Monday\n${KEY}\n${RING}`, message)).toBe(ONE_ROW)
    }
    const { pgpKeys } = await validateSource(await optionsOf(`${KEY}${RING}`, TO_SECOND), concat)
    expect(pgpKeys?.decryption).toBe('7FFA86F9FBD0454836DDA7D0A886AAA0CFDF0BE8')
    expect(await read(`${OFFLINE}${key('v1').publicKey}`, TO_FIRST)).toBe(ONE_ROW)
  })

  it('may lack the secret part of the primary key, and of subkeys that are not needed', async () => {
    expect(await read(samples.OFFLINE, samples.TO_FIRST)).toBe(samples.ONE_ROW)
    const ring = await readPrivateKey({ armoredKey: samples.OFFLINE })
    const locked = await encryptKey({ privateKey: ring, passphrase: 'sesame' })
    const options = await optionsOf(locked.armor(), samples.TO_FIRST, 'sesame')
    expect((await readTwice(options)).toString()).toBe(samples.ONE_ROW)
    for (const { keyPacket } of ring.subkeys) (keyPacket as SecretSubkeyPacket).makeDummy()
    expect((await failure(await optionsOf(ring.armor(), samples.TO_FIRST))).message).toMatch(
      /is encrypted to the key A0054882A5093239, of which .* no secret part\. .*--export-secret-subkeys/,
    )
  })

  it('says which key is needed where none of it fits', async () => {
    const other = await failure(await optionsOf(samples.OFFLINE, samples.TO_SECOND))
    expect([other.kind, other.message]).toEqual([
      'usage',
      expect.stringMatching(
        /is encrypted to the key 8E844DA039776817, and --decrypt-key holds the keys 98F699E275B51F4E, A0054882A5093239, 2124EDBA04CCC4AF\. Give the key it was encrypted to\./,
      ),
    ])
    const hidden = await failure(await optionsOf(samples.OFFLINE, samples.HIDDEN))
    expect(hidden.message).toMatch(/is encrypted to a key that it does not name, and --decrypt-key holds/)
    // One key of the file has another passphrase.
    const ring = await readPrivateKeys({ armoredKeys: samples.RING })
    const [first, second] = await Promise.all(
      ring.map((privateKey, index) => encryptKey({ privateKey, passphrase: `pass ${index}` })),
    )
    const both = `${first?.armor()}${second?.armor()}`
    expect((await readTwice(await optionsOf(both, samples.TO_FIRST, 'pass 0'))).toString()).toBe(samples.ONE_ROW)
    expect((await failure(await optionsOf(both, samples.TO_SECOND, 'pass 0'))).message).toMatch(
      /is encrypted to the key 8E844DA039776817, which the passphrase does not open\. .*TOKENMILL_PGP_PASSPHRASE/,
    )
    expect((await failure(await optionsOf(both, samples.TO_SECOND, 'none'))).message).toMatch(
      /^The passphrase does not open the key in /,
    )
  })

  it('may hold keys that have expired or were revoked since: what was encrypted or signed before counts', async () => {
    const then = new Date(Date.now() - 10 * DAY_MS)
    const made = await generateKey({
      type: 'curve25519',
      userIDs: [{ name: 'old' }],
      format: 'object',
      date: then,
      keyExpirationTime: DAY_MS / 1000,
    })
    const date = new Date(then.getTime() + 1_000)
    const bytes = await encrypt({
      message: await createMessage({ binary: Buffer.from(samples.ONE_ROW), date }),
      encryptionKeys: made.publicKey,
      signingKeys: made.privateKey,
      date,
      format: 'binary',
    })
    const message = Buffer.from(bytes as Uint8Array)
    const revoke = async (flag: number) =>
      (await revokeKey({ key: made.privateKey, reasonForRevocation: { flag }, format: 'object' })).privateKey
    const { keyRetired, keyCompromised } = enums.reasonForRevocation
    for (const held of [made.privateKey, await revoke(keyRetired)]) {
      const verifyKeyFile = await put('old.pub', `${key('v1').publicKey}${held.toPublic().armor()}`)
      const options = { ...(await optionsOf(held.armor(), message)), path: await put('old.csv.pgp', message) }
      expect((await readTwice({ ...options, verifyKeyFile })).toString()).toBe(samples.ONE_ROW)
      const { pgpKeys } = await validateSource({ ...options, verifyKeyFile }, concat)
      expect(pgpKeys?.verification).toBe(made.publicKey.getFingerprint().toUpperCase())
    }
    const stolen = await revoke(keyCompromised)
    const options = { ...(await optionsOf(stolen.armor(), message)), path: await put('old.csv.pgp', message) }
    expect((await readTwice(options)).toString()).toBe(samples.ONE_ROW)
    const verifyKeyFile = await put('old.pub', stolen.toPublic().armor())
    expect((await failure({ ...options, verifyKeyFile })).message).toMatch(
      /is signed by the key [0-9A-F]{16}, which its owner has revoked\./,
    )
  })

  it('of a sender says who signed instead, or that nobody did', async () => {
    const signed = await put('by-other.csv.pgp', await encryptTo('v1', ROWS, 'other'))
    const plain = await put('by-nobody.csv.pgp', await encryptTo('v1', ROWS))
    const options = { decryptKeyFile: key('v1').file, verifyKeyFile: await put('sender.pub', key('v2').publicKey) }
    expect((await failure({ path: signed, ...options })).message).toMatch(
      /is signed by the key [0-9A-F]{16}, and --verify-key holds the keys [0-9A-F]{16}, [0-9A-F]{16}\./,
    )
    expect((await failure({ path: plain, ...options })).message).toMatch(/is not signed\./)
  })

  it('of a recipient is refused where it has no key that can encrypt, or several', async () => {
    const then = new Date(Date.now() - 10 * DAY_MS)
    const made = await generateKey({
      type: 'curve25519',
      userIDs: [{ name: 'old' }],
      format: 'object',
      date: then,
      keyExpirationTime: DAY_MS / 1000,
    })
    const gone = await revokeKey({ key: await readPrivateKey({ armoredKey: key('v1').privateKey }), format: 'object' })
    const signing = await generateKey({
      type: 'ecc',
      curve: 'ed25519Legacy',
      userIDs: [{ name: 's' }],
      format: 'object',
      subkeys: [{ sign: true }],
    })
    const refusal = async (armored: string) =>
      readRecipient(await put('recipient.pub', armored)).then(
        () => 'taken',
        (error: Error) => error.message,
      )
    expect(await refusal(made.publicKey.armor())).toMatch(/No key in .* can encrypt: [0-9A-F]{16} expired on 20/)
    expect(await refusal(gone.publicKey.armor())).toMatch(/can encrypt: [0-9A-F]{16} was revoked/)
    expect(await refusal(signing.publicKey.armor())).toMatch(/has no subkey for encryption/)
    expect(await refusal(samples.OFFLINE)).toMatch(/holds a private key/)
    // The one of a file that can is taken; two that can are not told apart.
    expect(await refusal(`${made.publicKey.armor()}${key('v2').publicKey}`)).toBe('taken')
    expect(await refusal(`${key('v1').publicKey}${key('v2').publicKey}`)).toMatch(/holds several keys that can encrypt/)
  })
})

describe('OpenPGP of other programs', () => {
  const failureOf = async (bytes: Buffer | string) => {
    const decryptKeyFile = await put('samples.key', samples.KEY)
    return failure({ path: await put('other.csv.pgp', bytes), decryptKeyFile })
  }

  it.each([
    ['sq, with padded compression', samples.PADDED],
    ['sq, padded and signed', samples.PADDED_SIGNED],
    ['gpg', samples.COMPRESSED],
  ])('is read: %s', async (_, armored) => {
    const decryptKeyFile = await put('samples.key', samples.KEY)
    const { data } = await unarmor(armored)
    for (const bytes of [Buffer.from(armored), Buffer.from(data as Uint8Array)])
      expect((await readTwice({ path: await put('other.csv.pgp', bytes), decryptKeyFile })).toString()).toBe(
        samples.ROWS,
      )
  })

  it.each(['v1', 'v2'])('(%s) is proven to its end, padding included', async name => {
    const text = ROWS.repeat(20)
    const genuine = await paddedTo(name, text, 3_000_000)
    const options = { decryptKeyFile: key(name).file }
    expect((await readTwice({ path: await put('padded.csv.pgp', genuine), ...options })).toString()).toBe(text)
    const padding = genuine.length - 1_500_000
    for (const spoilt of [
      flipped(genuine, padding),
      flipped(genuine, genuine.length - 1),
      genuine.subarray(0, padding),
      genuine.subarray(0, -1),
    ]) {
      const error = await failure({ path: await put('spoilt.csv.pgp', spoilt), ...options })
      expect([error.kind, error.message]).toEqual(['input', expect.stringMatching(/integrity check|too early/)])
    }
    const broken = await paddedTo(name, text, 0).then(bytes => bytes.subarray(0, 100_000))
    expect((await failure({ path: await put('broken.csv.pgp', broken), ...options })).kind).toBe('input')
  })

  it('that a reader leaves early is left', async () => {
    const file = await put('left.csv.pgp', await paddedTo('v1', ROWS.repeat(200), 1_000))
    const options = { path: file, decryptKeyFile: key('v1').file }
    const { digests } = await validateSource(options, concat)
    for await (const _ of (await openSource(options, digests)).bytes) break
    const open = async () => (await readdir('/proc/self/fd').catch(() => [])).length
    const before = await open()
    for await (const _ of (await openSource(options, digests)).bytes) break
    await expect.poll(open).toBeLessThanOrEqual(before)
  })

  it.each<[keyof typeof samples, RegExp]>([
    ['IDEA', /cipher that is not supported: IDEA/],
    ['TWOFISH', /cipher that is not supported: Twofish/],
    ['CAMELLIA', /cipher that is not supported: Camellia-256/],
    ['SYMMETRIC', /encrypted with a password only/],
    ['SIGNED', /is signed only, not encrypted/],
    ['CLEAR_SIGNED', /is clear-signed text/],
    ['SIGNATURE', /is a signature alone/],
    ['STORED', /message that is not encrypted/],
    ['KEY', /is an OpenPGP key, not a message/],
  ])('is named where it is another kind of message: %s', async (name, words) => {
    const armored = samples[name]
    const forms = [Buffer.from(armored)]
    if (name !== 'CLEAR_SIGNED') forms.push(Buffer.from((await unarmor(armored)).data as Uint8Array))
    for (const bytes of forms) {
      const error = await failureOf(bytes)
      expect([error.kind, error.message]).toEqual(['input', expect.stringMatching(words)])
      expect(error.message).not.toMatch(/4111|cust|c-1/)
    }
  })

  it('is told apart from text that stands before an armor', async () => {
    const before = await failureOf(`Dear all,\n\nthe file:\n\n${samples.COMPRESSED}`)
    expect(before.message).toMatch(/has text before its OpenPGP armor/)
    for (const none of [ROWS, '', Buffer.from([0xff, 1, 2])])
      expect((await failureOf(none)).message).toMatch(/is no OpenPGP message that can be read|too early/)
  })
})

describe('standard input', () => {
  it('is passed through once and digested on the way', async () => {
    const source = await openSource({ path: '-', stdin: inPieces(ROWS, [7, 1000]) })
    expect((await concat(source.bytes)).toString()).toBe(ROWS)
    expect(source.digest()).toEqual({ sha256: createHash('sha256').update(ROWS).digest('hex'), bytes: ROWS.length })
  })

  it('is refused where it is OpenPGP or gzip', async () => {
    const binary = await encryptTo('v1', ROWS)
    for (const bytes of [binary, await encryptTo('v2', ROWS), Buffer.from('-----BEGIN PGP MESSAGE-----\n')]) {
      const source = await openSource({ path: '-', stdin: inPieces(bytes) })
      await expect(concat(source.bytes)).rejects.toThrow(/OpenPGP is not accepted from standard input/)
    }
    const zipped = await openSource({ path: '-', stdin: inPieces(gzipSync(ROWS)) })
    await expect(concat(zipped.bytes)).rejects.toThrow(/Pipe it through gunzip/)
    expect((await readFile(path('d.csv'))).toString()).toBe(ROWS)
  })
})
