// The key-encryption key, behind a port. This release has one provider: a file. It wraps data keys and private
// halves of capture keys, never cards.
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { constants } from 'node:fs'
import { type FileHandle, link, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from '../config.ts'
import { Fault } from '../errors.ts'
import { NONCE_BYTES, openWith, sealWith } from './aead.ts'

export interface KeyProvider {
  /** Public: names the key and reveals nothing of it. */
  id: string
  /** `purpose` is bound to the result: what was wrapped for one unwraps for no other. */
  wrap(plain: Buffer, purpose: string): Promise<Buffer>
  /** Throws `Fault('key_unavailable')` where the key or the purpose is another, or the bytes were changed. */
  unwrap(wrapped: Buffer, purpose: string): Promise<Buffer>
}

const VERSION_LINE = 'tokenmill-kek-v1'
const FILE = new RegExp(`^${VERSION_LINE}\\r?\\n([A-Za-z0-9+/]{43}=)\\s*$`)
const KEY_BYTES = 32
const FILE_BYTES_MAX = 1024

/** Reads a KEK file. Throws `ConfigError` where it is absent, malformed or open to others than its owner. */
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

/** Makes a new KEK file, mode 0600, whole or not at all. Throws `ConfigError` where there is a file of that name. */
export async function makeKekFile(path: string): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  const handle = await open(draft, 'wx', 0o600).catch(refuseTo('make', path))
  try {
    await handle.writeFile(`${VERSION_LINE}\n${randomBytes(KEY_BYTES).toString('base64')}\n`)
    await handle.sync()
    // A link, unlike a rename, fails where the name is taken: no key is ever overwritten.
    await link(draft, path).catch(refuseTo('make', path))
  } finally {
    await handle.close()
    await unlink(draft)
  }
  await syncFolder(dirname(path))
}

async function readKey(path: string): Promise<KeyObject> {
  // O_NONBLOCK: a named pipe in the file's place would otherwise hang the start.
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
  // Windows has no such bits; there the folder's access list is what protects the file.
  if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
    throw new ConfigError(`${path} may be read by others than its owner: chmod 600 it`)
  }
}

function refuseTo(verb: 'make' | 'read', path: string): (error: NodeJS.ErrnoException) => never {
  return error => {
    throw new ConfigError(`cannot ${verb} the key-encryption key ${path} (${error.code})`)
  }
}

/** Makes the name survive a power cut; not every platform lets a folder be opened. */
async function syncFolder(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const handle = await open(path, 'r')
  await handle.sync().finally(() => handle.close())
}
