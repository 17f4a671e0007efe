// A key-encryption key (KEK) in a file: makes and reads the file, and wraps by the key.
import { createHmac, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'
import { link, open, unlink } from 'node:fs/promises'
import { dirname } from 'node:path'
import { ConfigError } from '../../config.ts'
import { Fault } from '../../errors.ts'
import { NONCE_BYTES, openWith, sealWith } from '../aead.ts'
import { readOwnerOnly } from './owner-only.ts'
import type { KeyProvider } from './provider.ts'

const VERSION_LINE = 'tokenmill-kek-v1'
const FILE = new RegExp(`^${VERSION_LINE}\\r?\\n([A-Za-z0-9+/]{43}=)\\s*$`)
export const KEY_BYTES = 32
const FILE_BYTES_MAX = 1024

/** Reads a KEK file. Throws `ConfigError` if it is missing, malformed, or readable by others than its owner. */
export async function fileKeyProvider(path: string): Promise<KeyProvider> {
  const key = await readKekFile(path)
  return {
    id: kekIdOf(key),
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

/** The id by which wrapped keys name their key-encryption key: `kek-` and 16 hexadecimal digits. */
export function kekIdOf(key: KeyObject): string {
  return `kek-${createHmac('sha256', key).update('tokenmill kek id').digest('hex').slice(0, 16)}`
}

/**
 * Makes a KEK file, mode 0600, completely or not at all, with a new key or with `key`. Throws `ConfigError` if a file
 * with that name exists.
 */
export async function makeKekFile(path: string, key = createSecretKey(randomBytes(KEY_BYTES))): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  const handle = await open(draft, 'wx', 0o600).catch(refuseToMake(path))
  try {
    await handle.writeFile(`${VERSION_LINE}\n${key.export().toString('base64')}\n`)
    await handle.sync()
    // Unlike a rename, a link fails if the name is taken: so no key is ever overwritten.
    await link(draft, path).catch(refuseToMake(path))
  } finally {
    await handle.close()
    await unlink(draft)
  }
  await syncFolder(dirname(path))
}

/** The key of a KEK file; throws as `fileKeyProvider` does. */
export async function readKekFile(path: string): Promise<KeyObject> {
  const bytes = await readOwnerOnly(path, FILE_BYTES_MAX, 'key-encryption key')
  const encoded = FILE.exec(bytes.toString('latin1'))?.[1]
  const raw = Buffer.from(encoded ?? '', 'base64')
  bytes.fill(0)
  if (raw.length !== KEY_BYTES) throw new ConfigError(`${path} is not a key-encryption key (${VERSION_LINE})`)
  const key = createSecretKey(raw)
  raw.fill(0)
  return key
}

function refuseToMake(path: string): (error: NodeJS.ErrnoException) => never {
  return ({ code }) => {
    throw new ConfigError(`cannot make the key-encryption key ${path}: ${WHY_NOT_MADE[code ?? '']?.(path) ?? code}`)
  }
}

const WHY_NOT_MADE: Record<string, (path: string) => string> = {
  EEXIST: () => 'a file of this name exists, and a key is never overwritten; name another file',
  ENOENT: path => `the folder ${dirname(path)} does not exist; make it (mode 0700), or name another`,
  ENOTDIR: path => `${dirname(path)} is no folder; name another`,
  EACCES: path => `this account may not write to ${dirname(path)}; run this as the account that owns it`,
  EPERM: path => `this account may not write to ${dirname(path)}; run this as the account that owns it`,
  EROFS: path => `${dirname(path)} can only be read; name a folder that can be written`,
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
