// The text of a small file that a person wrote or edited: a profile, a column map, a client's file, settings. Editors put a byte order
// mark before it, or save it in another encoding, which JSON.parse would call a wrong form. Data files are read elsewhere.
import { isUtf8 } from 'node:buffer'

/** The text without a byte order mark. Throws what `fail` makes of the words about an encoding other than UTF-8. */
export function editedText(bytes: Buffer, fail: (wrong: string, next: string) => Error): string {
  if (isUtf16(bytes)) throw fail('is UTF-16', 'Save it as UTF-8.')
  if (!isUtf8(bytes)) throw fail('is not UTF-8 text', 'Save it as UTF-8.')
  return bytes.toString('utf8').replace(/^\uFEFF/, '')
}

/** UTF-16 shows by its byte order mark, or by a NUL at every second place of the first 16 bytes, which no UTF-8 header has. */
export function isUtf16(head: Buffer): boolean {
  if ((head[0] === 0xff && head[1] === 0xfe) || (head[0] === 0xfe && head[1] === 0xff)) return true
  const start = head.subarray(0, 16)
  if (start.length < 4) return false
  const nulAt = (parity: number) => start.every((byte, index) => (byte === 0) === (index % 2 === parity))
  return nulAt(0) || nulAt(1)
}
