// A network's word about a token, as it is to be written into its row. The row follows the network; whether that was to
// be expected isn't asked here.
import type { ProviderRefusal, ProviderToken } from '../../../src/scheme/provider.ts'
import type { StoredScheme, Told } from '../../../src/store/provider/scheme-row.ts'
import type { KeyRing } from '../../../src/vault/key-ring.ts'

/** What `token` makes of `row`, with nothing left to be done. */
export function mirror(row: StoredScheme, token: ProviderToken, ring: KeyRing): Told {
  const { provisionId, attempts: _, ...kept } = row
  const base: Told = { ...kept, provisionId, ...NOTHING_OPEN, reference: token.reference, refusal: null }
  if (token.state === 'DEACTIVATED') return gone(base)
  const { number } = token
  const known = number?.reveal()
  const sealed = number ? ring.sealNetworkToken(number, provisionId) : undefined
  return {
    ...base,
    state: token.state,
    suspendedBy: token.state === 'SUSPENDED' ? [...token.suspendedBy] : [],
    ...(sealed && known ? { sealed: sealed.sealed, sealVersion: sealed.keyVersion, lastFour: known.slice(-4) } : {}),
    expiryMonth: token.expiryMonth ?? row.expiryMonth,
    expiryYear: token.expiryYear ?? row.expiryYear,
    par: token.par ?? row.par,
  }
}

/** The network has deleted it, and nothing of its number stays. */
export function gone(row: Told): Told {
  return { ...row, ...NOTHING_OPEN, ...NO_NUMBER, state: 'DELETED', suspendedBy: [] }
}

/** The network made none: `refusal` says why, null that it wasn't wanted any more. */
export function nothing(row: Told, refusal: ProviderRefusal | null): Told {
  return { ...row, ...NOTHING_OPEN, ...NO_NUMBER, state: 'VOID', reference: null, refusal }
}

/** Nothing new is known; `asked` as it was unless it is given. */
export function unchanged(row: Told, dueAt: number | null, asked: Told['asked'] = row.asked): Told {
  return { ...row, dueAt, asked }
}

const NOTHING_OPEN = { card: null, cardVersion: null, asked: null, dueAt: null, attempts: 0 } as const

const NO_NUMBER = { sealed: null, sealVersion: null, lastFour: null } as const

/** Whether anybody who looks at the token sees something else. */
export function differs(before: StoredScheme, after: StoredScheme): boolean {
  return SEEN.some(field => String(before[field]) !== String(after[field]))
}

const SEEN = ['state', 'suspendedBy', 'lastFour', 'expiryMonth', 'expiryYear', 'par', 'current', 'retiredAt'] as const
