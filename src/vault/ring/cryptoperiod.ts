// How long a data key should be in use, by purpose. The bounds are those of NIST SP 800-57 Part 1 Rev. 5, 5.3.6, table 1:
// a key that encrypts data or makes MACs seals for at most two years, and opens for at most three more. PCI DSS 3.7.4
// asks to replace keys at the end of their cryptoperiod, which the installation itself defines.
import type { Purpose } from './key-ring.ts'

const YEAR_DAYS = 365

/** Days from the day on which a key came into use until another should take its place. */
export const CRYPTOPERIOD_DAYS: Record<Purpose, number> = {
  // Card numbers: half of what 5.3.6 permits, so that a rotation that is missed once still keeps the bound.
  seal: YEAR_DAYS,
  'before-image': YEAR_DAYS,
  'network-token': YEAR_DAYS,
  'three-ds': YEAR_DAYS,
  'private-half': YEAR_DAYS,
  webhook: 2 * YEAR_DAYS,
  manifest: 2 * YEAR_DAYS,
  fingerprint: 2 * YEAR_DAYS,
  analytics: 2 * YEAR_DAYS,
  digest: 2 * YEAR_DAYS,
  'api-key': 2 * YEAR_DAYS,
  intake: 2 * YEAR_DAYS,
  owner: 2 * YEAR_DAYS,
  audit: 2 * YEAR_DAYS,
  grant: 2 * YEAR_DAYS,
  receipt: 2 * YEAR_DAYS,
}

/**
 * Days from the day on which the database first knew a key-encryption key, or on which a signing key began to sign. 5.3.6,
 * table 1, permits two years to a key that wraps keys, and one to three years to a private key that signs.
 */
export const KEK_DAYS = YEAR_DAYS
export const SIGNING_DAYS = YEAR_DAYS

/** A key counts as expiring from this number of days before its date. */
export const NOTICE_DAYS = 30

const DAY_MS = 86_400_000

/** When another key should take the place of this one, ms since the epoch. */
export function replaceBy(purpose: Purpose, activatedAt: number): number {
  return activatedAt + CRYPTOPERIOD_DAYS[purpose] * DAY_MS
}

export function isExpiring(purpose: Purpose, activatedAt: number, now: number): boolean {
  return now >= replaceBy(purpose, activatedAt) - NOTICE_DAYS * DAY_MS
}
