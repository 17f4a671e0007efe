// Reads small files that only their owner may read: keys, PINs and lists of keys. This file writes none.
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { ConfigError } from '../../config.ts'

/**
 * The first `bytesMax` bytes of a file; the caller erases them if they are a key. `what`: names the file's content in
 * errors. Throws `ConfigError` if the file is missing, isn't a regular file, or is readable by others than its owner.
 */
export async function readOwnerOnly(path: string, bytesMax: number, what: string): Promise<Buffer> {
  // Without O_NONBLOCK a named pipe in place of the file would block the start.
  const flags = constants.O_RDONLY | (constants.O_NONBLOCK ?? 0)
  const handle = await open(path, flags).catch(({ code }: NodeJS.ErrnoException) => {
    throw new ConfigError(`cannot read the ${what} ${path} (${code})${WHAT_TO_DO[code ?? ''] ?? ''}`)
  })
  try {
    await checkOwnerOnly(handle, path)
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(bytesMax), 0, bytesMax, 0)
    return buffer.subarray(0, bytesRead)
  } finally {
    await handle.close()
  }
}

const WHAT_TO_DO: Record<string, string> = {
  ENOENT: ': there is no such file; check the path, or put the file there',
  EACCES: ': this account may not read it; run this as the account that owns it, or give that account the file (chown)',
}

async function checkOwnerOnly(handle: FileHandle, path: string): Promise<void> {
  const stat = await handle.stat()
  if (!stat.isFile()) throw new ConfigError(`${path} is not a regular file`)
  // Windows has no such mode bits; there the folder's access list protects the file.
  if (process.platform !== 'win32' && (stat.mode & 0o077) !== 0) {
    throw new ConfigError(`${path} may be read by others than its owner: chmod 600 it`)
  }
}
