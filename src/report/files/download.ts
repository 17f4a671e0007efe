// Reads a report's file and checks it against the digest that was recorded when the file was made. The last bytes are
// passed on only after the check, so nobody receives a damaged file completely.
import { createHash } from 'node:crypto'
import { type Readable, Transform } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { Fault } from '../../errors.ts'
import type { Range, ReportFiles } from './files.ts'

interface Recorded {
  storageKey: string
  bytes: number
  /** Hexadecimal. */
  sha256: string
}

/**
 * The file, or a range of it. If digest or length differ, the stream ends with `Fault('report_spoilt')`; for a range
 * the whole file is checked first, and the promise rejects with that fault. Throws `Fault('report_missing')` if the
 * file isn't there.
 */
export async function readReport(files: ReportFiles, recorded: Recorded, range?: Range): Promise<Readable> {
  const whole = await get(files, recorded.storageKey)
  const check = checkOf(recorded)
  if (range) {
    await pipeline(whole, check, async pieces => {
      for await (const _ of pieces);
    })
    return get(files, recorded.storageKey, range)
  }
  // If file or check fails, the pipeline ends both, and the reader gets the error.
  pipeline(whole, check).catch(error => check.destroy(error))
  return check
}

async function get(files: ReportFiles, key: string, range?: Range): Promise<Readable> {
  const file = await files.get(key, range)
  if (!file) throw new Fault('report_missing')
  return file
}

function checkOf({ bytes, sha256 }: Recorded): Transform {
  const hash = createHash('sha256')
  let seen = 0
  let held: Buffer | undefined
  return new Transform({
    transform(piece: Buffer, _encoding, done) {
      hash.update(piece)
      seen += piece.length
      if (held) this.push(held)
      held = piece
      done(seen > bytes ? new Fault('report_spoilt') : null)
    },
    flush(done) {
      if (seen !== bytes || hash.digest('hex') !== sha256) return done(new Fault('report_spoilt'))
      done(null, held)
    },
  })
}
