// Writes several files, each whole or not at all: first each beside its name. After all are written they get their
// names, one after the other.
import { randomBytes } from 'node:crypto'
import { type FileHandle, open, rename, rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { cannotWrite, syncDirectory } from '../rows/atomic-file.ts'

const PIECE_CHARACTERS = 64 * 1024

/** A line, and the file that it goes to, by its name in `paths`. */
export interface LineOf {
  to: string
  text: string
}

/**
 * Returns the number of lines of each file. A file without lines isn't there afterwards, even if an earlier run wrote
 * one: it would be taken for the result of this run.
 */
export async function writeWholeFiles(
  paths: ReadonlyMap<string, string>,
  lines: AsyncIterable<LineOf>,
): Promise<Map<string, number>> {
  const files = new Map<string, Draft>()
  try {
    for (const [name, path] of paths) files.set(name, await openDraft(path))
    for await (const { to, text } of lines) await files.get(to)?.add(text)
    for (const file of files.values()) await file.end()
    for (const file of files.values()) await file.place()
    return new Map([...files].map(([name, { lines: count }]) => [name, count()]))
  } finally {
    for (const file of files.values()) await file.leave()
  }
}

interface Draft {
  lines(): number
  add(line: string): Promise<void>
  /** Makes it durable. */
  end(): Promise<void>
  /** Gives it its name. */
  place(): Promise<void>
  /** Removes what isn't placed. */
  leave(): Promise<void>
}

async function openDraft(path: string): Promise<Draft> {
  // In a container the number of a process comes again: what a killed one has left must be in nobody's way.
  const beside = `${path}.${process.pid}-${randomBytes(4).toString('hex')}.new`
  const failed = (error: unknown) => Promise.reject(cannotWrite(path, error))
  let file: FileHandle | undefined = await open(beside, 'wx', 0o600).catch(failed)
  let count = 0
  let held = ''
  const flush = async () => {
    await file?.writeFile(held).catch(failed)
    held = ''
  }
  const close = async () => {
    await file?.close()
    file = undefined
  }
  return {
    lines: () => count,
    async add(line) {
      held += `${line}\n`
      count += 1
      if (held.length >= PIECE_CHARACTERS) await flush()
    },
    async end() {
      await flush()
      await file?.sync().catch(failed)
      await close()
    },
    async place() {
      if (count === 0) await rm(path, { force: true })
      else await rename(beside, path).catch(failed)
      await syncDirectory(dirname(path))
    },
    async leave() {
      await close()
      await rm(beside, { force: true })
    },
  }
}
