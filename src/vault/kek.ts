// The key-encryption key (KEK), behind an interface. This release has one provider: a file. The KEK wraps data keys and
// private halves of capture keys, never cards.
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, link, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { NONCE_BYTES, openWith, sealWith } from './aead.ts'

export interface KeyProvider {
  /** The key's id. It is public and reveals nothing about the key. */
  id: string
  /** Wraps `plain` for a `purpose`. It unwraps for that purpose only. */
  wrap(plain: Buffer, purpose: string): Promise<Buffer>
  /** Throws `Fault('key_unavailable')` if the key or the purpose is another one, or if the bytes were changed. */
  unwrap(wrapped: Buffer, purpose: string): Promise<Buffer>
}

const VERSION_LINE = 'tokenmill-kek-v1'
const FILE = new RegExp(`^${VERSION_LINE}\\r?\\n([A-Za-z0-9+/]{43}=)\\s*$`)
const KEY_BYTES = 32
const FILE_BYTES_MAX = 1024

/** Reads a KEK file. Throws `ConfigError` if it is missing, malformed, or readable by others than its owner. */
export async function fileKeyProvider(path: string): Promise<KeyProvider> {
  const key = await readKey(path)
  const id = `kek-${createHmac('sha256', key).update('tokenmill kek id').digest('hex').slice(0, 16)}`
  return {
    id,
    wrap: async (plain, purpose) => sealWith(key, randomBytes(NONCE_BYTES), plain, Buffer.from(purpose)),
    unwrap: async (wrapped, purpose) => {
      try {
        return openWith(key, wrapped, Buffer.from(purpose))
      } catch (cause) {
        throw new Fault('key_unavailable', cause)
      }
    },
  }
}

/** Makes a new KEK file, mode 0600, completely or not at all. Throws `ConfigError` if a file with that name exists. */
export async function makeKekFile(path: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  const handle = await open(draft, 'wx', 0o600).catch(refuseTo('make', path))
  try {
    await handle.writeFile(`${VERSION_LINE}\n${randomBytes(KEY_BYTES).toString('base64')}\n`)
    await handle.sync()
    // Unlike a rename, a link fails if the name is taken: so no key is ever overwritten.
    await link(draft, path).catch(refuseTo('make', path))
  } finally {
    await handle.close()
    await unlink(draft)
  }
  await syncFolder(dirname(path))
}

async function readKey(path: string): Promise<KeyObject> {
  // Without O_NONBLOCK a named pipe in place of the file would block the start.
  const handle = await open(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)).catch(refuseTo('read', path))
  try {
    await checkOwnerOnly(handle, path)
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(FILE_BYTES_MAX), 0, FILE_BYTES_MAX, 0)
    const encoded = FILE.exec(buffer.toString('latin1', 0, bytesRead))?.[1]
    const raw = Buffer.from(encoded ?? '', 'base64')
    buffer.fill(0)
    if (raw.length !== KEY_BYTES) throw new ConfigError(`${path} is not a key-encryption key (${VERSION_LINE})`)
    const key = createSecretKey(raw)
    raw.fill(0)
    return key
  } finally {
    await handle.close()
  }
}

async function checkOwnerOnly(handle: FileHandle, path: string): Promise<void> {
  const stat = await handle.stat()
  if (!stat.isFile()) throw new ConfigError(`${path} is not a regular file`)
  // Windows has no such mode bits; there the folder's access list protects the file.
  if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
    throw new ConfigError(`${path} may be read by others than its owner: chmod 600 it`)
  }
}

function refuseTo(verb: 'make' | 'read', path: string): (error: NodeJS.ErrnoException) => never {
  return error => {
    throw new ConfigError(`cannot ${verb} the key-encryption key ${path} (${error.code})`)
  }
}

/**
 * Flushes the folder, so that the file's name survives a power failure. Some platforms don't let a folder be opened;
 * there nothing is done.
 */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}
