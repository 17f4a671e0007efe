// The bytes of the input without its wrappers, always as a stream. A file is read twice: `validateSource` reads it to
// its end before anything of it is used, and `openSource` releases only bytes whose digests are those of the first
// reading. That makes it safe to stream OpenPGP, whose integrity can be verified only at the end. Rows are read
// elsewhere.
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { pipeline } from 'node:stream'
import { createGunzip } from 'node:zlib'
import { codeOf, FileError } from './file-error.ts'
import { inputFormatOf } from './input-format.ts'
import type { OpenpgpKeys, OpenpgpOptions, PgpKeys } from './openpgp/decrypt.ts'
import { digestWhileReading, type InputDigest, releaseVerified, type SegmentDigests } from './segments.ts'

export interface SourceOptions extends OpenpgpOptions {
  /** The path of a file, or `-` for standard input. */
  path: string
  /** The stream that is read for the path `-`. */
  stdin?: AsyncIterable<Buffer> | undefined
}

export interface Source {
  /** The bytes after decryption and decompression. */
  bytes: AsyncIterable<Buffer>
  /** The digest of the raw input; complete once `bytes` has ended. */
  digest(): InputDigest
}

const READ_BYTES = 1024 * 1024
const UNZIP_BYTES = 64 * 1024

export interface Validated<T> {
  digests: SegmentDigests
  /** The keys that opened an encrypted file. */
  pgpKeys: PgpKeys | undefined
  checked: T
}

/**
 * Reads the whole file, passes its bytes only to `check`, and returns its digests once the integrity is verified.
 * `check` may stop early by throwing. For an encrypted file its error is thrown only if the file is genuine, so that a
 * forged file can't choose the error.
 */
export async function validateSource<T>(
  options: SourceOptions,
  check: (bytes: AsyncIterable<Buffer>) => Promise<T>,
): Promise<Validated<T>> {
  if (options.path === '-') throw new FileError('usage', 'Standard input cannot be read twice.', 'Give a file.')
  const keys = await keysFor(options)
  const raw = digestWhileReading(readRaw(options.path))
  const bytes = (await unwrap(options.path, raw.bytes, keys))[Symbol.asyncIterator]()
  try {
    const checked = await checkThrough(bytes, keys !== undefined, check)
    return { digests: raw.digests(), pgpKeys: keys?.used, checked }
  } finally {
    await bytes.return?.(undefined)
  }
}

async function checkThrough<T>(
  bytes: AsyncIterator<Buffer>,
  encrypted: boolean,
  check: (bytes: AsyncIterable<Buffer>) => Promise<T>,
): Promise<T> {
  let broken: { error: unknown } | undefined
  // It has no `return`, because a loop that ends early must not close bytes that must still be read to their end.
  const lent = {
    next: () =>
      bytes.next().catch(error => {
        broken = { error }
        throw error
      }),
  }
  const verdict = await check({ [Symbol.asyncIterator]: () => lent }).then(
    value => ({ value }),
    (error: unknown) => ({ error }),
  )
  if (broken === undefined && (encrypted || 'value' in verdict)) while (!(await bytes.next()).done);
  if (broken !== undefined) throw (broken as { error: unknown }).error
  if ('error' in verdict) throw verdict.error
  return verdict.value
}

/** Opens the second reading of a validated file, or standard input, which has only one. */
export async function openSource(options: SourceOptions, digests?: SegmentDigests): Promise<Source> {
  if (options.path === '-') {
    const raw = digestWhileReading(refuseWrapped(options.stdin ?? process.stdin))
    return { bytes: raw.bytes, digest: () => digestOf(raw.digests()) }
  }
  if (digests === undefined) throw new Error('broken law: a file is validated before it is opened')
  const raw = releaseVerified(options.path, readRaw(options.path), digests)
  // The first reading verified the signature, and the ciphertext is the same; so now it is only decrypted.
  const keys = await keysFor({ ...options, verifyKeyFile: undefined })
  return { bytes: await unwrap(options.path, raw, keys), digest: () => digestOf(digests) }
}

function digestOf({ sha256, bytes }: SegmentDigests): InputDigest {
  return { sha256, bytes }
}

async function keysFor(options: SourceOptions): Promise<OpenpgpKeys | undefined> {
  const encrypted = inputFormatOf(options.path).wrappers.includes('openpgp')
  if (encrypted) return (await loadOpenpgp()).readKeys(options)
  if (options.verifyKeyFile === undefined) return undefined
  const next = 'Leave --verify-key out, or give the OpenPGP file (.pgp, .gpg, .asc).'
  throw new FileError('usage', `${options.path} is not an OpenPGP file, so it bears no signature.`, next)
}

async function* readRaw(path: string): AsyncGenerator<Buffer> {
  const found = await stat(path).catch((error: unknown) => {
    throw new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, 'Check its name and permissions.', error)
  })
  if (!found.isFile()) throw new FileError('usage', `${path} is no regular file.`, 'Use - to read from a pipe.')
  try {
    yield* createReadStream(path, { highWaterMark: READ_BYTES }) as AsyncIterable<Buffer>
  } catch (error) {
    throw new FileError('input', `${path} cannot be read to its end (${codeOf(error)}).`, 'Check the disk.', error)
  }
}

/** The OpenPGP library is large, and few files are encrypted. */
const loadOpenpgp = () => import('./openpgp/decrypt.ts')

async function unwrap(
  path: string,
  raw: AsyncIterable<Buffer>,
  keys: OpenpgpKeys | undefined,
): Promise<AsyncIterable<Buffer>> {
  let bytes = raw
  for (const wrapper of inputFormatOf(path).wrappers) {
    bytes =
      wrapper === 'gzip' || keys === undefined
        ? gunzip(path, bytes)
        : (await loadOpenpgp()).decryptOpenpgp(path, bytes, keys)
  }
  return bytes
}

async function* gunzip(name: string, bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const unzip = createGunzip({ chunkSize: UNZIP_BYTES })
  const source = bytes[Symbol.asyncIterator]()
  let given = 0
  // This generator is read without `return` being called on the source: when zlib ends, the source must stay open,
  // because it is then read to its end.
  async function* counted() {
    for (let next = await source.next(); !next.done; next = await source.next()) {
      given += next.value.length
      yield next.value
    }
  }
  // The error also arrives at the loop below.
  pipeline(counted(), unzip, () => {})
  try {
    yield* unzip as AsyncIterable<Buffer>
    const used = unzip.bytesWritten
    for (let next = await source.next(); !next.done; next = await source.next()) given += next.value.length
    // zlib silently ignores bytes after the last member, and so would ignore a damaged second member.
    if (used < given) {
      const next = 'Fetch the file again, or repack it with gzip.'
      throw new FileError('input', `${name} goes on after its gzip data.`, next)
    }
  } catch (error) {
    const code = codeOf(error)
    if (!code?.startsWith('Z_')) throw error
    const wrong = code === 'Z_BUF_ERROR' ? 'ends too early: the gzip data are cut off.' : 'holds damaged gzip data.'
    throw new FileError('input', `${name} ${wrong}`, 'Fetch the file again; nothing of it was used.', error)
  } finally {
    await source.return?.(undefined)
  }
}

const ARMOR = Buffer.from('-----BEGIN PGP')

/** Standard input must be plain rows: gzip and OpenPGP are refused at their first byte. */
async function* refuseWrapped(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let first = true
  for await (const piece of bytes) {
    if (first && piece.length > 0) {
      first = false
      const [one = 0, two] = piece
      if (one === 0x1f && two === 0x8b) {
        throw new FileError('usage', 'Standard input is gzip data.', 'Pipe it through gunzip, or give a file.')
      }
      // An OpenPGP packet begins with a byte whose top bit is set; in UTF-8 text such a first byte is a lead byte 0xC2
      // to 0xF4.
      const packet = (one >= 0x80 && one < 0xc2) || one === 0xd2
      if (packet || piece.subarray(0, ARMOR.length).equals(ARMOR)) {
        const wrong =
          'OpenPGP is not accepted from standard input, whose integrity cannot be verified before it is used.'
        throw new FileError('usage', wrong, 'Give the encrypted file by its name.')
      }
    }
    yield piece
  }
}
