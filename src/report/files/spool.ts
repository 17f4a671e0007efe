// Writes the pieces of a report to a file: written, digested and flushed before anybody uses it.
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { createWriteStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { finished } from 'node:stream/promises'

/** Small pieces are gathered: a write per row would cost more than the row. */
const GATHER_BYTES = 256 * 1024

interface Spooled {
  bytes: number
  /** Hexadecimal. */
  sha256: string
}

/** Writes `pieces` to `path`, which must be new, and flushes it to the disk. Whatever throws, the file is gone. */
export async function spool(pieces: AsyncIterable<string | Buffer>, path: string): Promise<Spooled> {
  const hash = createHash('sha256')
  const file = createWriteStream(path, { flags: 'wx', mode: 0o600, flush: true, highWaterMark: GATHER_BYTES })
  // An error while nobody waits is found at the end.
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
    // A file that is still being opened would appear after its removal.
    await done.catch(() => {})
    await rm(path, { force: true })
    throw error
  }
}
