// Writes the pieces of a report to a file, computes its digest, and flushes it before anybody uses it.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'

/** Small pieces are gathered up to this size: a write per row would cost more than the row itself. */
const GATHER_BYTES = 256 * 1024

interface Spooled {
  bytes: number
  /** Hexadecimal. */
  sha256: string
}

/** Writes `pieces` to `path`, which must be new, and flushes it to disk. If anything throws, the file is removed. */
export async function spool(pieces: AsyncIterable<string | Buffer>, path: string): Promise<Spooled> {
  const hash = createHash('sha256')
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true, highWaterMark: GATHER_BYTES })
  // `done` is awaited at the end: an error while nobody waits is reported there.
  const done = finished(file)
  done.catch(() => {})
  let bytes = 0
  try {
    for await (const piece of pieces) {
      const chunk = typeof piece === 'string' ? Buffer.from(piece) : piece
      hash.update(chunk)
      bytes += chunk.length
      if (!file.write(chunk)) await Promise.race([once(file, 'drain'), done])
    }
    file.end()
    await done
    return { bytes, sha256: hash.digest('hex') }
  } catch (error) {
    file.destroy()
    // Waits for the file to be open: else it would appear after its removal.
    await done.catch(() => {})
    await rm(path, { force: true })
    throw error
  }
}
