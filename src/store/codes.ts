// The codes of rows that say what was decided, and what is told of it: receipts, rows of the outbox, events. Whoever writes a row
// codes it; whoever tells or counts it checks the code. The vault's key ring makes the codes, and is passed in.
import { timingSafeEqual } from 'node:crypto'

/** The data key `receipt` of a key ring (src/vault/ring/hashes.ts). */
export interface Coder {
  receiptMac(text: string): { mac: Buffer; keyVersion: number }
  /** Undefined if there is no such version. Throws `Fault('key_unavailable')` for one that this process doesn't know yet. */
  receiptMacBy(text: string, keyVersion: number): Buffer | undefined
}

/** The code in a row. */
export interface Code {
  mac: Buffer
  macVersion: number
}

/** A row as it is read: it may have no code. */
export type Coded = { [Member in keyof Code]: Code[Member] | null }

export function codeOf(coder: Coder, text: string): Code {
  const { mac, keyVersion: macVersion } = coder.receiptMac(text)
  return { mac, macVersion }
}

/** Whether the row's code is that of this text. Throws as `receiptMacBy` does. */
export function isCoded(coder: Pick<Coder, 'receiptMacBy'>, text: string, { mac, macVersion }: Coded): boolean {
  if (mac === null || macVersion === null) return false
  const right = coder.receiptMacBy(text, macVersion)
  return right !== undefined && right.length === mac.length && timingSafeEqual(right, mac)
}
