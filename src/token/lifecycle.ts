// The statuses of a token and their transitions: a total table, so that a missing case doesn't compile. decide.ts
// decides what else an event changes in the row; the catalogue of kinds says who may request it.
import type { SuspendedReason, TokenRow, TokenStatus } from './token.ts'

export const EVENTS = ['SUSPEND', 'ACTIVATE', 'DELETE', 'EXPIRE', 'RENEW'] as const
/** EXPIRE: `token_expiry_date` has passed. RENEW: a new date that hasn't passed was given. */
export type LifecycleEvent = (typeof EVENTS)[number]

/**
 * `stays`: success without a change. `gone`: there is no such token. `from`: only if the token was suspended for this
 * reason.
 */
type Transition =
  | 'stays'
  | 'gone'
  | { to: 'ACTIVE'; from?: SuspendedReason }
  | { to: 'SUSPENDED'; reason: SuspendedReason; from?: SuspendedReason }
  | { to: 'DELETED' }

const TRANSITIONS = {
  ACTIVE: {
    SUSPEND: { to: 'SUSPENDED', reason: 'REQUEST' },
    ACTIVATE: 'stays',
    DELETE: { to: 'DELETED' },
    EXPIRE: { to: 'SUSPENDED', reason: 'EXPIRED' },
    RENEW: 'stays',
  },
  SUSPENDED: {
    // The reason `REQUEST` replaces `CARD_EXPIRED`: a later file with the policy `newest` may end a suspension for
    // expiry, but never one by request.
    SUSPEND: { to: 'SUSPENDED', reason: 'REQUEST', from: 'CARD_EXPIRED' },
    ACTIVATE: { to: 'ACTIVE' },
    DELETE: { to: 'DELETED' },
    EXPIRE: 'stays',
    RENEW: { to: 'ACTIVE', from: 'EXPIRED' },
  },
  DELETED: { SUSPEND: 'gone', ACTIVATE: 'gone', DELETE: 'gone', EXPIRE: 'gone', RENEW: 'gone' },
} as const satisfies Record<TokenStatus, Record<LifecycleEvent, Transition>>

export interface StatusAndReason {
  status: TokenStatus
  suspendedReason: SuspendedReason | null
}

/** The status after an event. */
export function follow(
  { status, suspendedReason }: StatusAndReason,
  event: LifecycleEvent,
): StatusAndReason | 'stays' | 'gone' {
  const transition: Transition = TRANSITIONS[status][event]
  if (transition === 'stays' || transition === 'gone') return transition
  if ('from' in transition && transition.from !== suspendedReason) return 'stays'
  return { status: transition.to, suspendedReason: transition.to === 'SUSPENDED' ? transition.reason : null }
}

/**
 * The row of a deleted token: everything about the card is removed. Id, scope, type, a third party's token, and the
 * token's dates stay.
 */
export function tombstone<Row extends TokenRow>(row: Row): Row {
  return {
    ...row,
    status: 'DELETED',
    suspendedReason: null,
    cards: [],
    link: undefined,
    sealed: null,
    bin: null,
    lastFour: null,
    expiryMonth: null,
    expiryYear: null,
    cardHolderName: null,
    cardHolderEmail: null,
    cardSequence: null,
    startMonth: null,
    startYear: null,
    brand: null,
    cardBrand: null,
    binRange: null,
    analyticsToken: null,
    givenAt: null,
  }
}
