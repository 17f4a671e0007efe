// Bytes into blocks of whole physical lines, in bounded memory whatever the bytes are: a line over 64 KiB is passed
// over and told, not collected. It doesn't look into a line.
import { CHUNK } from '../../src/job/token-batch.ts'
import { FileError } from './file-error.ts'

export const LINE_BYTES_MAX = CHUNK.lineBytesMax

/** Whole lines with their ends (only the file's last may lack it), or one line that was too long to keep. */
export interface Block {
  bytes: Buffer
  tooLong: boolean
}

const LF = 10
const TOO_LONG: Block = { bytes: Buffer.alloc(0), tooLong: true }
const HEAD_BYTES = 64

export async function* readLines(bytes: AsyncIterable<Buffer>): AsyncGenerator<Block> {
  let carry: Buffer[] = []
  let carried = 0
  // Inside a line that was already told to be too long.
  let skipping = false
  for await (const chunk of withoutMark(bytes)) {
    let at = 0
    if (skipping || carried > 0) {
      const end = chunk.indexOf(LF)
      const head = end < 0 ? chunk : chunk.subarray(0, end + 1)
      at = head.length
      if (!skipping) {
        carry.push(head)
        carried += head.length
        if (carried > LINE_BYTES_MAX + 1) yield TOO_LONG
        else if (end >= 0) yield { bytes: Buffer.concat(carry), tooLong: false }
        skipping = carried > LINE_BYTES_MAX + 1
        if (skipping || end >= 0) {
          carry = []
          carried = 0
        }
      }
      if (end < 0) continue
      skipping = false
    }
    const whole = chunk.lastIndexOf(LF) + 1
    while (at < whole) {
      const end = chunk.subarray(at, Math.min(at + LINE_BYTES_MAX + 1, whole)).lastIndexOf(LF)
      if (end >= 0) yield { bytes: chunk.subarray(at, at + end + 1), tooLong: false }
      else yield TOO_LONG
      at += end >= 0 ? end + 1 : chunk.indexOf(LF, at) - at + 1
    }
    const rest = chunk.subarray(at)
    if (rest.length > LINE_BYTES_MAX) {
      yield TOO_LONG
      skipping = true
    } else if (rest.length > 0) {
      carry = [rest]
      carried = rest.length
    }
  }
  if (carried > LINE_BYTES_MAX) yield TOO_LONG
  else if (carried > 0) yield { bytes: Buffer.concat(carry), tooLong: false }
}

/** Takes a leading UTF-8 byte order mark off and refuses what isn't UTF-8 text at all. */
async function* withoutMark(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let head: Buffer | undefined = Buffer.alloc(0)
  for await (const chunk of bytes) {
    if (head === undefined) yield chunk
    else {
      head = Buffer.concat([head, chunk])
      if (head.length < HEAD_BYTES) continue
      yield checkHead(head)
      head = undefined
    }
  }
  if (head !== undefined) yield checkHead(head)
}

const WRAPPED: readonly (readonly [Buffer, string, string])[] = [
  [Buffer.from([0x1f, 0x8b]), 'is gzip data', 'Let its name end in .gz.'],
  [Buffer.from('PK\x03\x04'), 'is a ZIP or Excel file', 'Export it as CSV (UTF-8).'],
  [Buffer.from('-----BEGIN PGP'), 'is an OpenPGP file', 'Let its name end in .asc.'],
]

function checkHead(head: Buffer): Buffer {
  for (const [start, what, next] of WRAPPED) {
    if (head.subarray(0, start.length).equals(start)) throw new FileError('usage', `What was given ${what}.`, next)
  }
  if (isUtf16(head)) {
    throw new FileError('input', 'Line 1: the text is UTF-16.', 'Export it as UTF-8 (in Excel: "CSV UTF-8").')
  }
  return head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? head.subarray(3) : head
}

// By its mark, or by a NUL in every other place of the first 16 bytes, which no header has in UTF-8.
function isUtf16(head: Buffer): boolean {
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)) return true
  const start = head.subarray(0, 16)
  if (start.length < 4) return false
  const nulAt = (parity: number) => start.every((byte, index) => (byte === 0) === (index % 2 === parity))
  return nulAt(0) || nulAt(1)
}
