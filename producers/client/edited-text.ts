// The text of a small file that a person wrote or edited: a profile, a column map, a client's file. Editors put a byte order
// mark before it, or save it in another encoding, which JSON.parse would call a wrong form. Data files are read elsewhere.
import { isUtf8 } from 'node:buffer'
import { isUtf16 } from '../rows/lines.ts'

/** The text without a byte order mark. Throws what `fail` makes of the words about an encoding other than UTF-8. */
export function editedText(bytes: Buffer, fail: (wrong: string, next: string) => Error): string {
  if (isUtf16(bytes)) throw fail('is UTF-16', 'Save it as UTF-8.')
  if (!isUtf8(bytes)) throw fail('is not UTF-8 text', 'Save it as UTF-8.')
  return bytes.toString('utf8').replace(/^\uFEFF/, '')
}
