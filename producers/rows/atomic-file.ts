// Writes small files atomically: after a crash the file has either the old content or the new one. A new file is
// written beside the old one, synced and renamed.
import { open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { codeOf, FileError } from './file-error.ts'

/** Replaces the file of that name; the new one has mode 0600. */
export async function writeAtomically(path: string, text: string | Buffer): Promise<void> {
  const beside = `${path}.${process.pid}.new`
  try {
    const file = await open(beside, 'w', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } finally {
      await file.close()
    }
    await rename(beside, path)
    await syncDirectory(dirname(path))
  } catch (error) {
    await rm(beside, { force: true })
    throw cannotWrite(path, error)
  }
}

/** Flushes a directory, so that new names in it survive a crash. On Windows, which opens no directory, nothing is done. */
export async function syncDirectory(path: string): Promise<void> {
  if (process.platform === 'win32') return
  const directory = await open(path, 'r')
  try {
    await directory.sync()
  } finally {
    await directory.close()
  }
}

export function cannotWrite(path: string, error: unknown): FileError {
  const next = 'Check its directory, its permissions and the space left, then run the same command again.'
  return new FileError('output', `${path} cannot be written (${codeOf(error)}).`, next, error)
}
