// The bytes of JSON that have a meaning outside strings, and the errors for a document that can't be read by them.
import { FileError } from '../../file-error.ts'

export const JSON_BYTES = {
  LF: 10,
  QUOTE: 34,
  COMMA: 44,
  COLON: 58,
  OPEN_BRACKET: 91,
  BACKSLASH: 92,
  CLOSE_BRACKET: 93,
  OPEN_BRACE: 123,
  CLOSE_BRACE: 125,
} as const

export interface Taken {
  /** The index after what was read. */
  at: number
  line: number
  /** The array began or ended at `at`. */
  crossed: boolean
}

export const isBlank = (byte: number) => byte === 32 || byte === JSON_BYTES.LF || byte === 13 || byte === 9

export function notJson(line: number): FileError {
  return new FileError('input', `Line ${line}: the file is not JSON.`, 'Check the format and encoding of the profile.')
}

export function broken(line: number, what: string): FileError {
  return new FileError('input', `Line ${line}: the document ${what}.`, 'Get the file again.')
}
