// Writes the pieces of a report to a file, computes its digest, and flushes it before anybody uses it.
import { createHash } from 'node:crypto'
import { type FileHandle, open, rm } from 'node:fs/promises'

/** Small pieces are gathered up to this size: a write per row would cost more than the row itself. */
const GATHER_BYTES = 256 * 1024

interface Spooled {
  bytes: number
  /** Hexadecimal. */
  sha256: string
}

/** Writes `pieces` to `path`, which must be new, and flushes it to disk. If anything throws, the file is removed. */
export async function spool(pieces: AsyncIterable<string | Buffer>, path: string): Promise<Spooled> {
  const file = await open(path, 'wx', 0o600)
  try {
    const spooled = await spoolInto(file, pieces)
    await file.sync()
    await file.close()
    return spooled
  } catch (error) {
    await file.close().catch(() => {})
    await rm(path, { force: true })
    throw error
  }
}

/** Writes `pieces` to an open file, from where it stands. */
export async function spoolInto(file: FileHandle, pieces: AsyncIterable<string | Buffer>): Promise<Spooled> {
  const hash = createHash('sha256')
  let bytes = 0
  let gathered: Buffer[] = []
  let size = 0
  const write = async () => {
    // Unlike `write`, this goes on until all is written.
    await file.writeFile(Buffer.concat(gathered, size))
    gathered = []
    size = 0
  }
  for await (const piece of pieces) {
    const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece
    hash.update(chunk)
    gathered.push(chunk)
    bytes += chunk.length
    size += chunk.length
    if (size >= GATHER_BYTES) await write()
  }
  await write()
  return { bytes, sha256: hash.digest('hex') }
}
