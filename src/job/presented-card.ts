// The data of a record's card that a chunk's receipt keeps: the expiry date that the record gave, and a small part of
// the card's fingerprint. With these, a later reader can find out whether the token has another number or expiry date
// than the file gave. The number itself isn't kept.

import type { Fingerprints } from '../token/token.ts'

export interface PresentedCard {
  /** `YYYYMM`; empty if the record gave none. */
  expiry: string
  /** The first 24 bits of the fingerprint, base64url. Two cards of a scope have the same once in 16 million. */
  check: string
  /** The version of the key of that fingerprint. */
  keyVersion: number
}

const CHECK_BYTES = 3
const CHECK_CHARS = 4
/** Before the version; receipts without one are of the first version. It is no letter of base64url. */
const VERSION_MARK = '.'

/** The form in which it is packed: the expiry date, the check, and the version unless it is the first. */
export function presentedText(
  { expiryMonth, expiryYear }: { expiryMonth?: number | null; expiryYear?: number | null },
  { kept: [fingerprint = ''], versions: [keyVersion = 1] }: Pick<Fingerprints, 'kept' | 'versions'>,
): string {
  return expiryText(expiryMonth, expiryYear) + checkOf(fingerprint) + versionText(keyVersion)
}

/** The text behind the check. */
export function versionText(keyVersion: number): string {
  return keyVersion === 1 ? '' : `${VERSION_MARK}${keyVersion}`
}

export function readPresented(text: string): PresentedCard {
  const [card = '', version = '1'] = text.split(VERSION_MARK)
  return { expiry: card.slice(0, -CHECK_CHARS), check: card.slice(-CHECK_CHARS), keyVersion: Number(version) }
}

export function expiryText(month: number | null | undefined, year: number | null | undefined): string {
  return month && year ? String(year * 100 + month) : ''
}

/** The check of a fingerprint whose bytes begin at `at`. */
export function checkAt(fingerprints: Buffer, at: number): string {
  return fingerprints.toString('base64url', at, at + CHECK_BYTES)
}

/** `fingerprint`: a UUID. */
export function checkOf(fingerprint: string): string {
  return Buffer.from(fingerprint.slice(0, 2 * CHECK_BYTES), 'hex').toString('base64url')
}
