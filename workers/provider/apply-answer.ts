// What a provider's answer makes of a row, as values to be written. The row always takes the provider's state, expected
// or not.
import type { ProviderRefusal, ProviderToken } from '../../src/scheme/provider.ts'
import { type LeasedUpdate, referenceFor, type StoredScheme } from '../../src/store/provider/scheme-row.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

export type SealingRing = Pick<KeyRing, 'sealNetworkToken' | 'sealReference'>

/** The row with the state of `token`, and with no call left to make. */
export function applyToken(row: StoredScheme, token: ProviderToken, ring: SealingRing): LeasedUpdate {
  const { provisionId, tokenId, attempts: _, ...kept } = row
  const named = referenceFor(row, token.reference, ring)
  const base: LeasedUpdate = { ...kept, provisionId, ...NOTHING_OPEN, ...named, refusal: null }
  if (token.state === 'DEACTIVATED') return deletedRow(base)
  const { number } = token
  const digits = number?.reveal()
  const sealed = number ? ring.sealNetworkToken(number, { provisionId, tokenId }) : undefined
  return {
    ...base,
    state: token.state,
    suspendedBy: token.state === 'SUSPENDED' ? [...token.suspendedBy] : [],
    ...(sealed && digits ? { sealed: sealed.sealed, sealVersion: sealed.keyVersion, lastFour: digits.slice(-4) } : {}),
    expiryMonth: token.expiryMonth ?? row.expiryMonth,
    expiryYear: token.expiryYear ?? row.expiryYear,
    par: token.par ?? row.par,
  }
}

/** The provider has deleted the token; its number is erased here too. */
export function deletedRow(row: LeasedUpdate): LeasedUpdate {
  return { ...row, ...NOTHING_OPEN, ...NO_NUMBER, state: 'DELETED', suspendedBy: [] }
}

/** The provider made no token. `refusal`: why; null if the token wasn't wanted any more. */
export function voidRow(row: LeasedUpdate, refusal: ProviderRefusal | null): LeasedUpdate {
  return { ...row, ...NOTHING_OPEN, ...NO_NUMBER, state: 'VOID', ...NO_REFERENCE, refusal }
}

/** Nothing new is known. `dueAt`: when the row is due again. */
export function unchangedRow(
  row: LeasedUpdate,
  dueAt: number | null,
  asked: LeasedUpdate['asked'] = row.asked,
): LeasedUpdate {
  return { ...row, dueAt, asked }
}

const NOTHING_OPEN = { card: null, cardVersion: null, asked: null, dueAt: null, attempts: 0 } as const

const NO_REFERENCE = { reference: null, referenceSealed: null, referenceVersion: null } as const

const NO_NUMBER = { sealed: null, sealVersion: null, lastFour: null } as const

/** Whether the token's record shows a difference. */
export function differs(before: StoredScheme, after: StoredScheme): boolean {
  return SHOWN.some(field => String(before[field]) !== String(after[field]))
}

const SHOWN = ['state', 'suspendedBy', 'lastFour', 'expiryMonth', 'expiryYear', 'par', 'current', 'retiredAt'] as const
