// Writes the 16 bytes of a UUID without making strings, because it runs twice per card. It checks the form only, not
// the version.
import { assert } from '../errors.ts'

export const UUID_BYTES = 16

const NOT_HEX = 0xff
const HEX = new Uint8Array(128).fill(NOT_HEX)
for (const [value, digit] of [...'0123456789abcdef'].entries()) {
  HEX[digit.charCodeAt(0)] = value
  HEX[digit.toUpperCase().charCodeAt(0)] = value
}
const DASHES = [8, 13, 18, 23]
const PAIRS = [0, 2, 4, 6, 9, 11, 14, 16, 19, 21, 24, 26, 28, 30, 32, 34]

/**
 * Writes the UUID's bytes at `offset`. Letters may be of either case. Throws for a malformed UUID, which is a defect:
 * the caller has parsed it.
 */
export function writeUuid(into: Buffer, offset: number, uuid: string): void {
  let wrong = uuid.length === 36 ? 0 : NOT_HEX
  for (const at of DASHES) if (uuid.charCodeAt(at) !== 0x2d) wrong = NOT_HEX
  for (let i = 0; i < UUID_BYTES; i++) {
    const at = PAIRS[i] ?? 0
    const high = HEX[uuid.charCodeAt(at)] ?? NOT_HEX
    const low = HEX[uuid.charCodeAt(at + 1)] ?? NOT_HEX
    wrong |= (high | low) & 0xf0
    into[offset + i] = (high << 4) | low
  }
  assert(wrong === 0, 'a UUID has the form 8-4-4-4-12')
}
