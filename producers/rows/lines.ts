// Cuts bytes into blocks of whole physical lines, in bounded memory whatever the bytes are: a line over 64 KiB is
// reported and not collected. The content of a line isn't read here.

import { isUtf16 } from '../../src/edited-text.ts'
import { CHUNK } from '../../src/job/token-batch.ts'
import { FileError } from './file-error.ts'

export const LINE_BYTES_MAX = CHUNK.lineBytesMax
/** A longer line hides other rows: the text lost its line ends, as UTF-16 does with one lost byte. */
export const LINE_BYTES_LOST = 16 * 1024 * 1024

/** Whole lines with their ends (only the file's last may lack it), or one line that was too long to keep. */
export interface Block {
  bytes: Buffer
  tooLong: boolean
}

const LF = 10
const NOTHING = Buffer.alloc(0)
const TOO_LONG: Block = { bytes: NOTHING, tooLong: true }
const HEAD_BYTES = 64

/** A line whose end hasn't been read yet. */
interface OpenLine {
  /** Empty if the line was reported as too long. */
  parts: Buffer[]
  length: number
}

/** `lineNow`: the number of the line that was yielded last. Throws a FileError for a line of more than 16 MiB. */
export async function* readLines(bytes: AsyncIterable<Buffer>, lineNow: () => number): AsyncGenerator<Block> {
  const line: OpenLine = { parts: [], length: 0 }
  for await (const chunk of withoutByteOrderMark(bytes)) {
    const first = line.length > 0 ? chunk.indexOf(LF) + 1 : 0
    const last = chunk.lastIndexOf(LF) + 1
    const ended = first > 0 ? endLine(line, chunk.subarray(0, first)) : undefined
    if (ended) yield ended
    if (last > first) yield* wholeLines(chunk.subarray(first, last))
    const tooLong = last < chunk.length ? extendLine(line, chunk.subarray(last)) : undefined
    if (tooLong) yield tooLong
    if (line.length > LINE_BYTES_LOST) throw endless(lineNow())
  }
  const ended = line.length > 0 ? endLine(line, NOTHING) : undefined
  if (ended) yield ended
}

function endless(line: number): FileError {
  const wrong = `Line ${line}: the row is longer than ${LINE_BYTES_LOST / 1024 / 1024} MiB, so it hides other rows.`
  return new FileError('input', wrong, 'The text lost its line ends or its encoding there: get the file again.')
}

/** Reports a line as too long once, at the part that makes it so. */
function extendLine(line: OpenLine, part: Buffer): Block | undefined {
  const wasTooLong = line.length > LINE_BYTES_MAX
  line.length += part.length
  if (line.length > LINE_BYTES_MAX) line.parts = []
  else line.parts.push(part)
  return !wasTooLong && line.length > LINE_BYTES_MAX ? TOO_LONG : undefined
}

/** Ends a line. `end`: its last part with the LF, or empty at the end of the file. */
function endLine(line: OpenLine, end: Buffer): Block | undefined {
  const { parts, length } = line
  line.parts = []
  line.length = 0
  if (length > LINE_BYTES_MAX) return undefined
  return length + end.length > LINE_BYTES_MAX + 1 ? TOO_LONG : { bytes: Buffer.concat([...parts, end]), tooLong: false }
}

/** Cuts bytes that end with an LF into blocks of at most one line's length. */
function* wholeLines(bytes: Buffer): Generator<Block> {
  for (let at = 0; at < bytes.length; ) {
    const end = bytes.subarray(at, at + LINE_BYTES_MAX + 1).lastIndexOf(LF)
    if (end >= 0) yield { bytes: bytes.subarray(at, at + end + 1), tooLong: false }
    else yield TOO_LONG
    at = end >= 0 ? at + end + 1 : bytes.indexOf(LF, at) + 1
  }
}

/** Removes what isn't text at both ends of a file, and refuses input that isn't UTF-8 text at all. */
export function withoutByteOrderMark(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  return withoutFill(withoutMark(bytes))
}

/** Transfers fill the last block of a file with NULs, and old systems end a text with 0x1A. */
async function* withoutFill(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  let held: Buffer[] = []
  let heldBytes = 0
  for await (const chunk of bytes) {
    let end = chunk.length
    while (end > 0 && (chunk[end - 1] === 0 || chunk[end - 1] === SUBSTITUTE)) end--
    if (end > 0 || heldBytes > LINE_BYTES_MAX) {
      yield* held
      held = []
      heldBytes = 0
    }
    if (end > 0) yield chunk.subarray(0, end)
    if (end < chunk.length) held.push(chunk.subarray(end))
    heldBytes += chunk.length - end
  }
}

const SUBSTITUTE = 0x1a

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
    if (head.subarray(0, start.length).equals(start)) throw new FileError('usage', `The input ${what}.`, next)
  }
  if (isUtf16(head)) {
    throw new FileError('input', 'Line 1: the text is UTF-16.', 'Export it as UTF-8 (in Excel: "CSV UTF-8").')
  }
  return head[0] === 0xef && head[1] === 0xbb && head[2] === 0xbf ? head.subarray(3) : head
}
