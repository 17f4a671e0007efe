// The plaintext that a token or a KMS encrypts: the bytes together with their purpose. Some mechanisms also
// authenticate the purpose as additional data (AAD); not every mechanism of a token can.

const FORM = 1
const HEAD_BYTES = 7
/** Key wrap pads to 8 bytes, and some tokens leave the padding on. */
const PADDING_MAX = 7

export function bindPurpose(plain: Buffer, purpose: string): Buffer {
  const name = Buffer.from(purpose)
  const bound = Buffer.alloc(HEAD_BYTES + name.length + plain.length)
  bound.writeUInt8(FORM, 0)
  bound.writeUInt16BE(name.length, 1)
  bound.writeUInt32BE(plain.length, 3)
  name.copy(bound, HEAD_BYTES)
  plain.copy(bound, HEAD_BYTES + name.length)
  return bound
}

/** A copy of the bytes; undefined if they were wrapped for another purpose, or if this isn't what `bindPurpose` made. */
export function unbindPurpose(bound: Buffer, purpose: string): Buffer | undefined {
  if (bound.length < HEAD_BYTES || bound.readUInt8(0) !== FORM) return undefined
  const start = HEAD_BYTES + bound.readUInt16BE(1)
  const end = start + bound.readUInt32BE(3)
  if (end > bound.length || bound.length > end + PADDING_MAX) return undefined
  if (bound.subarray(end).some(byte => byte !== 0)) return undefined
  if (!bound.subarray(HEAD_BYTES, start).equals(Buffer.from(purpose))) return undefined
  return Buffer.from(bound.subarray(start, end))
}
