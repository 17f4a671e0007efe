// Decrypts and encrypts OpenPGP as a stream, in constant memory. The plaintext is not yet
// authenticated while it flows: a reader may act on it only after the stream has ended without an error, or on a
// ciphertext that was verified before (see source.ts).
import {
  type Config,
  createMessage,
  decrypt,
  encrypt,
  generateKey,
  type Key,
  type MaybeStream,
  type Message,
  readKey,
  readMessage,
} from 'openpgp'
import type { Secret } from '../../../src/secret.ts'
import '../../../src/vault/pgp/pgp-library.ts'
import { FileError } from '../file-error.ts'
import { type DecryptionKeys, idText, partsOf, readDecryptionKeys, readVerificationKeys } from './keys.ts'
import { explain, type Seen } from './pgp-errors.ts'

export interface OpenpgpKeys {
  decryption: DecryptionKeys
  /** If set, the message must have a valid signature by one of these keys. */
  verification: readonly Key[] | undefined
  /** The keys that the message read last needed; undefined before one was read. */
  used: PgpKeys | undefined
}

/** The fingerprints of the primary keys, upper-case hex. */
export interface PgpKeys {
  decryption: string
  verification?: string | undefined
}

export interface OpenpgpOptions {
  decryptKeyFile?: string | undefined
  passphrase?: Secret | undefined
  verifyKeyFile?: string | undefined
}

const ARMOR = '-----BEGIN PGP'
const ARMOR_END = '-----END PGP MESSAGE-----'

const STREAMING: Partial<Config> = {
  allowUnauthenticatedStream: true,
  allowUnauthenticatedMessages: false,
  maxDecompressedMessageSize: Number.POSITIVE_INFINITY,
  enforceGrammar: true,
}

export async function readKeys(options: OpenpgpOptions): Promise<OpenpgpKeys> {
  const { decryptKeyFile, passphrase, verifyKeyFile } = options
  if (decryptKeyFile === undefined) {
    throw new FileError('usage', 'The file is OpenPGP-encrypted.', 'Give its private key with --decrypt-key FILE.')
  }
  const decryption = await readDecryptionKeys(decryptKeyFile, passphrase)
  const verification = verifyKeyFile === undefined ? undefined : await readVerificationKeys(verifyKeyFile)
  return { decryption, verification, used: undefined }
}

/**
 * Decrypts a binary or armored message. Ends without an error only if its integrity (and its signature, if asked for)
 * is verified.
 */
export async function* decryptOpenpgp(
  name: string,
  bytes: AsyncIterable<Buffer>,
  keys: OpenpgpKeys,
): AsyncGenerator<Buffer> {
  // Remembers an error of the source, which the library would wrap in its own.
  let below: { error: unknown } | undefined
  const refuseMore = armorWatch(name)
  const head = keepHead()
  const watch = openStallWatch()
  async function* watched() {
    try {
      for await (const piece of watch.reading(bytes)) {
        head.see(piece)
        refuseMore(piece)
        yield piece
      }
    } catch (error) {
      below = { error }
      throw error
    }
  }
  const source = watched()
  let opened = false
  let message: Message<MaybeStream<Uint8Array>> | undefined
  let signers: string[] | undefined
  try {
    message = await watch.until(readSource(source))
    const { data, signatures } = await watch.until(
      decrypt({
        message,
        decryptionKeys: [...keys.decryption.open],
        ...(keys.verification === undefined ? {} : { verificationKeys: [...keys.verification], expectSigned: true }),
        format: 'binary',
        config: STREAMING,
      }),
    )
    // A wrong signature makes the stream fail (expectSigned). These promises must not reject unhandled.
    for (const { verified, signature } of signatures) {
      verified.catch(() => {})
      signature.catch(() => {})
    }
    opened = true
    signers = signatures.map(({ keyID }) => idText(keyID))
    keys.used = usedBy(recipientsOf(message), signers, keys)
    const pieces = (data as unknown as AsyncIterable<Uint8Array>)[Symbol.asyncIterator]()
    for (let next = await watch.until(pieces.next()); !next.done; next = await watch.until(pieces.next())) {
      const { buffer, byteOffset, length } = next.value
      if (length > 0) yield Buffer.from(buffer, byteOffset, length)
    }
    // The library stops at the end of the armor; the remaining bytes must be read too, because they are digested.
    while (!(await source.next()).done);
  } catch (error) {
    const needs = { recipients: recipientsOf(message), signers, keys }
    throw below?.error ?? explain(name, error, { opened, head: head.bytes(), ...seenOf(message), needs })
  } finally {
    await source.return(undefined).catch(() => {})
  }
}

/** The ids of the keys that can open the message. */
function recipientsOf(message: Message<MaybeStream<Uint8Array>> | undefined): string[] {
  return message?.getEncryptionKeyIDs().map(idText) ?? []
}

/** The first keys that fit; a message can hide whom it is for. */
function usedBy(
  recipients: readonly string[],
  signers: readonly string[],
  { decryption, verification }: OpenpgpKeys,
): PgpKeys {
  const fits = (ids: readonly string[]) => (key: Key) => partsOf(key).some(({ id }) => ids.includes(id))
  const fingerprint = (key: Key | undefined) => key?.getFingerprint().toUpperCase()
  return {
    decryption: fingerprint(decryption.open.find(fits(recipients)) ?? decryption.open[0]) ?? '',
    verification: verification && fingerprint(verification.find(fits(signers))),
  }
}

const HEAD_BYTES = 64 * 1024

/** Keeps the beginning of a file, to explain a file that isn't an OpenPGP message. */
function keepHead() {
  let kept = Buffer.alloc(0)
  return {
    see(piece: Buffer): void {
      if (kept.length < HEAD_BYTES) kept = Buffer.concat([kept, piece.subarray(0, HEAD_BYTES - kept.length)])
    },
    bytes: () => kept,
  }
}

/** Which packets a message is made of, and the ciphers of the session keys that were opened. */
function seenOf(message: Message<MaybeStream<Uint8Array>> | undefined): Pick<Seen, 'tags' | 'ciphers'> {
  const all = [...(message?.packets ?? [])] as unknown as ReadPacket[]
  const within = all.flatMap(packet => [packet, ...(packet.packets ?? [])])
  return {
    tags: within.map(packet => packet.constructor.tag),
    ciphers: all.flatMap(({ sessionKeyAlgorithm }) => sessionKeyAlgorithm ?? []),
  }
}

interface ReadPacket {
  constructor: { tag: number }
  /** The packets within a compressed packet. */
  packets?: ReadPacket[] | null
  /** The cipher of a session key. */
  sessionKeyAlgorithm?: number | null
}

const STALLED_MS = 5_000

/**
 * Detects a stall: on some damaged messages the library waits for ever, without reading or yielding. `until` rejects
 * when that has lasted too long; time spent waiting for the source doesn't count.
 */
function openStallWatch() {
  let isReading = false
  let lastAt = performance.now()
  return {
    async *reading(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
      isReading = true
      for await (const piece of bytes) {
        isReading = false
        lastAt = performance.now()
        yield piece
        isReading = true
      }
      isReading = false
      lastAt = performance.now()
    },
    async until<T>(promise: Promise<T>): Promise<T> {
      lastAt = performance.now()
      let timer: NodeJS.Timeout | undefined
      const stalled = new Promise<never>((_, reject) => {
        timer = setInterval(() => {
          if (!isReading && performance.now() - lastAt > STALLED_MS) reject(new Error('stalled'))
        }, 1_000)
      })
      return Promise.race([promise, stalled]).finally(() => clearInterval(timer))
    },
  }
}

function isArmored(head: Buffer): boolean {
  return head.subarray(0, 64).toString('latin1').trimStart().startsWith(ARMOR)
}

async function readSource(source: AsyncIterator<Buffer>) {
  const first = await source.next()
  const head = first.done ? Buffer.alloc(0) : first.value
  // Not `yield*`: if the library closes its stream, the source must stay open to be read to its end.
  async function* whole() {
    yield head
    for (let next = await source.next(); !next.done; next = await source.next()) yield next.value
  }
  if (!isArmored(head)) {
    return readMessage({ binaryMessage: ReadableStream.from<Uint8Array>(whole()), config: STREAMING })
  }
  async function* characters() {
    for await (const piece of whole()) yield piece.toString('latin1')
  }
  return readMessage({ armoredMessage: ReadableStream.from(characters()), config: STREAMING })
}

/** Reads every piece of a file. Throws if anything follows the armor, because the library would not read it. */
function armorWatch(name: string): (piece: Buffer) => void {
  let state: 'start' | 'binary' | 'armor' | 'behind' = 'start'
  let before = ''
  return piece => {
    if (state === 'start') state = isArmored(piece) ? 'armor' : 'binary'
    if (state === 'binary') return
    let text = before + piece.toString('latin1')
    if (state === 'armor') {
      const end = text.indexOf(ARMOR_END)
      before = text.slice(1 - ARMOR_END.length)
      if (end < 0) return
      state = 'behind'
      before = ''
      text = text.slice(end + ARMOR_END.length)
    }
    if (text.trim() === '') return
    const next = 'Have each message sent as a file of its own.'
    throw new FileError('input', `${name} goes on after its OpenPGP message.`, next)
  }
}

/** Encrypts to one public key (armored), as a binary message. */
export async function* encryptOpenpgp(bytes: AsyncIterable<Buffer>, publicKey: string): AsyncGenerator<Buffer> {
  const message = await createMessage({ binary: ReadableStream.from<Uint8Array>(bytes), format: 'binary' })
  const encryptionKeys = await readKey({ armoredKey: publicKey })
  const encrypted = await encrypt({ message, encryptionKeys, format: 'binary' })
  for await (const piece of encrypted as unknown as AsyncIterable<Uint8Array>) {
    yield Buffer.from(piece.buffer, piece.byteOffset, piece.length)
  }
}

/** Makes a curve25519 key pair for the recipient of an export, armored and without a passphrase. */
export async function makePgpKeyPair(name: string): Promise<{ publicKey: string; privateKey: string }> {
  const { publicKey, privateKey } = await generateKey({ type: 'curve25519', userIDs: [{ name }], format: 'armored' })
  return { publicKey, privateKey }
}
