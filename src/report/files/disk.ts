// Report files in a folder. A file is written under a temporary name, flushed, then renamed. Keys are checked before
// they become paths.
import { randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { assert, Fault } from '../../errors.ts'
import { Mismatch } from '../tie-out.ts'
import { isKey } from './file-name.ts'
import type { ReportFiles } from './files.ts'
import { spool } from './spool.ts'

export function openDisk(folder: string): ReportFiles {
  const pathOf = (key: string) => {
    assert(isKey(key), 'a file of a report has a plain name')
    return join(folder, key)
  }
  return {
    put: (pieces, keyOf) =>
      reach(async () => {
        await mkdir(folder, { recursive: true, mode: 0o700 })
        const part = pathOf(`part_${randomUUID()}`)
        const { bytes, sha256 } = await spool(pieces, part)
        const key = keyOf(sha256)
        await rename(part, pathOf(key))
        await flushFolder(folder)
        return { key, bytes, sha256 }
      }),
    get: (key, range) =>
      reach(async () => {
        const handle = await open(pathOf(key)).catch(absent)
        return handle && createReadStream('', { fd: handle, ...range })
      }),
    remove: key => reach(() => rm(pathOf(key), { force: true })),
    async *list() {
      for (const key of (await reach(() => readdir(folder).catch(absent))) ?? []) {
        const found = isKey(key) ? await stat(join(folder, key)).catch(absent) : undefined
        if (found?.isFile()) yield { key, modifiedAt: found.mtimeMs }
      }
    },
    close() {},
  }
}

function absent(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}

/** Flushes the folder: only then a rename survives a crash. */
async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder)
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

/** Turns an error of the file system into a fault; an error of the report stays as it is. */
async function reach<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    const isOurs = error instanceof Fault || error instanceof Mismatch
    if (!isOurs && typeof (error as NodeJS.ErrnoException).syscall === 'string') throw new Fault('files_away', error)
    throw error
  }
}
