// Files that hold keys and credentials: mode 0600, written completely or not at all. Directories that are made for them
// are open to their owner alone.
import { randomBytes } from 'node:crypto'
import { link, mkdir, open, readFile, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { syncDirectory } from '../../producers/rows/atomic-file.ts'
import { editedText } from '../../src/edited-text.ts'
import { EXIT, Stop } from '../exit.ts'

/** Writes a file. Without `replace` it stops if the file exists, so that no key is overwritten by mistake. */
export async function writePrivate(path: string, text: string, options: { replace?: boolean } = {}): Promise<void> {
  const draft = `${path}.${randomBytes(6).toString('hex')}`
  try {
    await mkdir(dirname(path), { recursive: true, mode: 0o700 })
    try {
      await writeSynced(draft, text)
      if (options.replace) await rename(draft, path)
      else await link(draft, path)
    } finally {
      // It holds a secret, and nothing would remove it later.
      await rm(draft, { force: true })
    }
    await syncDirectory(dirname(path))
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new Stop(`${path} exists already; choose another place with --out, or move the file away`)
    throw new Stop(`${path} can't be written (${code})`, EXIT.failure)
  }
}

async function writeSynced(path: string, text: string): Promise<void> {
  const handle = await open(path, 'wx', 0o600)
  try {
    await handle.writeFile(text)
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** The text of a file that an argument names. Throws `Stop` (64) if it can't be read. */
export async function readArgumentFile(path: string): Promise<string> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    throw new Stop(
      error.code === 'ENOENT' ? `${path} does not exist` : `${path} can't be read (${error.code})`,
      EXIT.usage,
    )
  })
  return editedText(bytes, (wrong, next) => new Stop(`${path} ${wrong}. ${next}`, EXIT.usage))
}

export function jsonText(value: unknown): string {
  return `${JSON.stringify(value, null, 2)}\n`
}
