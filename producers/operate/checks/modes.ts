// Who may read the key files on this host: only their owner should.
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { count } from '../../../src/units.ts'
import { unknown, type Verdict, warning, well } from '../check.ts'

export interface FileSources {
  /** Files and folders of keys. A folder stands for all files in it; missing ones are ignored. */
  keyFiles: readonly string[]
}

const SHOWN_MAX = 5

export async function askFiles({ keyFiles }: FileSources): Promise<Verdict> {
  // Windows has no file modes.
  if (process.platform === 'win32') return unknown('this system has no file modes')
  const files = (await Promise.all(keyFiles.map(filesOf))).flat()
  const open = files.filter(({ mode }) => (mode & 0o077) !== 0)
  if (open.length === 0) return well(`${count(files.length, 'file')}, each open to its owner alone`)
  const named = open.slice(0, SHOWN_MAX).map(({ path, mode }) => `${path} (${(mode & 0o777).toString(8)})`)
  const more = open.length > named.length ? ` and ${open.length - named.length} more` : ''
  return warning(`others may read ${named.join(', ')}${more}`, 'chmod 600 each')
}

async function filesOf(path: string): Promise<{ path: string; mode: number }[]> {
  const found = await stat(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return undefined
    throw error
  })
  if (!found) return []
  if (!found.isDirectory()) return [{ path, mode: found.mode }]
  const names = await readdir(path)
  return (await Promise.all(names.map(name => filesOf(join(path, name))))).flat()
}
