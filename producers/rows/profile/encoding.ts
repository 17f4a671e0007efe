// Converts the bytes of a file in a declared encoding to UTF-8, as a stream. Bytes that aren't a character of the
// encoding become bytes that aren't UTF-8, so that the row is rejected; no substitute character is written.

import { isAscii } from 'node:buffer'
import { FileError } from '../file-error.ts'
import type { Encoding } from './format.ts'

type Transcoder = (bytes: AsyncIterable<Buffer>) => AsyncIterable<Buffer>

const TRANSCODERS: Record<Encoding, Transcoder> = {
  'utf-8': bytes => bytes,
  'iso-8859-1': bytes => fromSingleByte(bytes, text => text),
  'windows-1252': bytes => fromSingleByte(bytes, text => text.replace(HIGH_CONTROLS, toWindows)),
  'utf-16': bytes => fromUtf16(bytes, undefined),
  'utf-16le': bytes => fromUtf16(bytes, 'le'),
  'utf-16be': bytes => fromUtf16(bytes, 'be'),
}

export function toUtf8(bytes: AsyncIterable<Buffer>, encoding: Encoding = 'utf-8'): AsyncIterable<Buffer> {
  return TRANSCODERS[encoding](bytes)
}

const HIGH_CONTROLS = /[\x80-\x9f]/g
/**
 * The characters of the bytes 0x80 to 0x9f. The five bytes without a character become control characters, which no
 * field accepts.
 */
const WINDOWS = '€\x81‚ƒ„…†‡ˆ‰Š‹Œ\x8dŽ\x8f\x90‘’“”•–—˜™š›œ\x9džŸ'

function toWindows(control: string): string {
  return WINDOWS[control.charCodeAt(0) - 0x80] ?? control
}

async function* fromSingleByte(bytes: AsyncIterable<Buffer>, convert: (text: string) => string) {
  let head: Buffer | undefined = Buffer.alloc(0)
  const decode = (part: Buffer) => (isAscii(part) ? part : Buffer.from(convert(part.toString('latin1')), 'utf8'))
  for await (const part of bytes) {
    if (head === undefined) {
      yield decode(part)
      continue
    }
    head = Buffer.concat([head, part])
    if (head.length < 3) continue
    refuseUtf8Mark(head)
    yield decode(head)
    head = undefined
  }
  if (head !== undefined) yield decode(head)
}

function refuseUtf8Mark(head: Buffer): void {
  if (head[0] !== 0xef || head[1] !== 0xbb || head[2] !== 0xbf) return
  const wrong = 'The file begins with the byte order mark of UTF-8, and the profile declares another encoding.'
  throw new FileError('usage', wrong, 'Set format.encoding to utf-8.')
}

const LONE_SURROGATE = /\p{Surrogate}/gu
const NONCHARACTER = '\u{10ffff}'
const NO_UTF8 = Buffer.from([0xff])

async function* fromUtf16(bytes: AsyncIterable<Buffer>, given: 'le' | 'be' | undefined) {
  let order = given
  let rest: Buffer = Buffer.alloc(0)
  for await (const part of bytes) {
    const whole = rest.length > 0 ? Buffer.concat([rest, part]) : part
    if (whole.length < 2) {
      rest = whole
      continue
    }
    order ??= whole[0] === 0xfe && whole[1] === 0xff ? 'be' : 'le'
    const end = endOfCharacters(whole, order)
    rest = Buffer.from(whole.subarray(end))
    if (end > 0) yield decodeUtf16(whole.subarray(0, end), order)
  }
  // The file ends within a character.
  if (rest.length > 0) yield NO_UTF8
}

/** Where the last complete character ends; a surrogate pair isn't split. */
function endOfCharacters(bytes: Buffer, order: 'le' | 'be'): number {
  const even = bytes.length - (bytes.length % 2)
  const high = bytes[even - (order === 'le' ? 1 : 2)] ?? 0
  return high >= 0xd8 && high <= 0xdb ? even - 2 : even
}

function decodeUtf16(bytes: Buffer, order: 'le' | 'be'): Buffer {
  const text = (order === 'le' ? bytes : Buffer.from(bytes).swap16()).toString('utf16le')
  if (text.isWellFormed()) return Buffer.from(text, 'utf8')
  // A noncharacter replaces half a pair and then loses its first byte, so the rest isn't UTF-8.
  const marked = Buffer.from(text.replace(LONE_SURROGATE, NONCHARACTER), 'utf8')
  for (let at = marked.indexOf(NONCHARACTER); at >= 0; at = marked.indexOf(NONCHARACTER, at + 4)) marked[at] = 0xff
  return marked
}
