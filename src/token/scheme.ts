// What may be asked of a token's scheme token, and what it looks like to whom: total tables over its standing. Networks
// aren't known here; who asks them, and when, is the workers' affair.

/** PENDING: asked for, or to be; VOID: nothing came of it. The others are the network's words. */
export const SCHEME_STATES = ['PENDING', 'INACTIVE', 'ACTIVE', 'SUSPENDED', 'DELETED', 'VOID'] as const
export type SchemeState = (typeof SCHEME_STATES)[number]
export const SCHEME_ACTIONS = ['ACTIVATE', 'SUSPEND', 'DELETE'] as const
export type SchemeAction = (typeof SCHEME_ACTIONS)[number]
/** What is asked of a network before the answer to the caller; a deletion is asked for after it, until it is confirmed. */
export type SchemeCall = 'PROVISION' | 'SUSPEND' | 'RESUME'

/** Who suspends in our name. */
export const OURSELVES = 'TOKEN_REQUESTOR'

/** One provisioning of a token at a network. */
export interface SchemeRow {
  /** Ours; the network knows the provisioning by it. */
  provisionId: string
  tokenId: string
  tokenScope: string
  /** The client that had it provisioned. */
  clientId: string
  provider: string
  /** The one that the token shows. */
  current: boolean
  /** The loop provisions it; else a job does. */
  background: boolean
  state: SchemeState
  /** The network's name of it. */
  reference: string | null
  /** Active again only when the last one lifts. */
  suspendedBy: readonly string[]
  lastFour: string | null
  expiryMonth: number | null
  expiryYear: number | null
  par: string | null
  /** Why the network made none. */
  refusal: string | null
  /** To be deleted at the network since then, ms since the epoch. */
  retiredAt: number | null
  version: number
}

type Standing = 'NONE' | 'PENDING' | 'INACTIVE' | 'ACTIVE' | 'SUSPENDED_BY_US' | 'SUSPENDED_BY_OTHERS' | 'DELETED'

/** `stays`: granted, and nothing changes. `retire`: to be deleted at the network. `absent`: there is nothing to do it to. */
export type Step = SchemeCall | 'stays' | 'retire' | 'absent'

const STEPS = {
  NONE: { ACTIVATE: 'PROVISION', SUSPEND: 'absent', DELETE: 'absent' },
  PENDING: { ACTIVATE: 'PROVISION', SUSPEND: 'absent', DELETE: 'retire' },
  // The network waits for its cardholder's consent; that isn't ours to give.
  INACTIVE: { ACTIVATE: 'stays', SUSPEND: 'absent', DELETE: 'retire' },
  ACTIVE: { ACTIVATE: 'stays', SUSPEND: 'SUSPEND', DELETE: 'retire' },
  SUSPENDED_BY_US: { ACTIVATE: 'RESUME', SUSPEND: 'stays', DELETE: 'retire' },
  // Everybody lifts only his own suspension.
  SUSPENDED_BY_OTHERS: { ACTIVATE: 'stays', SUSPEND: 'SUSPEND', DELETE: 'retire' },
  DELETED: { ACTIVATE: 'PROVISION', SUSPEND: 'absent', DELETE: 'stays' },
} as const satisfies Record<Standing, Record<SchemeAction, Step>>

/** What takes back a call that was made for an operation that isn't to stand. */
export const UNDO = { PROVISION: 'retire', SUSPEND: 'RESUME', RESUME: 'SUSPEND' } as const satisfies Record<
  SchemeCall,
  Step
>

type Standable = Pick<SchemeRow, 'state' | 'suspendedBy' | 'retiredAt'>

export function stepOf(row: Standable | undefined, action: SchemeAction): Step {
  return STEPS[standingOf(row)][action]
}

function standingOf(row: Standable | undefined): Standing {
  if (!row || row.state === 'VOID') return 'NONE'
  if (row.retiredAt !== null) return 'DELETED'
  if (row.state !== 'SUSPENDED') return row.state
  return row.suspendedBy.includes(OURSELVES) ? 'SUSPENDED_BY_US' : 'SUSPENDED_BY_OTHERS'
}

/** Whether the network may yet have, or get, a token by this provisioning. */
export function isLive({ state, retiredAt }: Pick<SchemeRow, 'state' | 'retiredAt'>): boolean {
  return retiredAt === null && state !== 'DELETED' && state !== 'VOID'
}

/** What a scope supports, and for whom its tokens are requested. */
export interface SchemeSupport {
  par: boolean
  networkTokens: boolean
  requestor: 'MERCHANT' | 'PSP'
}

export function isSupported({ par, networkTokens }: Pick<SchemeSupport, 'par' | 'networkTokens'>): boolean {
  return par || networkTokens
}

/** As the interface shows it. */
export interface SchemeRecord {
  network_token?: string
  status: 'VALID' | 'ACTIVE' | 'SUSPENDED' | 'DELETED'
  expiry_month?: number
  expiry_year?: number
  payment_account_reference?: string
}

const SHOWN = {
  PENDING: undefined,
  VOID: undefined,
  // It can't be used until the network says so.
  INACTIVE: 'SUSPENDED',
  ACTIVE: 'ACTIVE',
  SUSPENDED: 'SUSPENDED',
  DELETED: 'DELETED',
} as const satisfies Record<SchemeState, SchemeRecord['status'] | undefined>

const MASK = '*'.repeat(12)

/** A scheme token and its scope's support, as a record shows it; `number`: the whole network token, over HTTP. */
export interface ShownScheme {
  row: SchemeRow
  support: SchemeSupport
  number?: string | undefined
}

/** Undefined where there is nothing to be seen yet. `valid`: the word for an active one. */
export function renderScheme(
  { row, support, number }: ShownScheme,
  valid: 'VALID' | 'ACTIVE',
): SchemeRecord | undefined {
  const shown = row.retiredAt === null ? SHOWN[row.state] : 'DELETED'
  if (shown === undefined) return undefined
  const status = shown === 'ACTIVE' ? valid : shown
  if (support.requestor !== 'MERCHANT' || status === 'DELETED') return { status }
  const record: SchemeRecord = { status }
  if (support.networkTokens && row.lastFour !== null) record.network_token = number ?? MASK + row.lastFour
  if (row.expiryMonth !== null) record.expiry_month = row.expiryMonth
  if (row.expiryYear !== null) record.expiry_year = row.expiryYear
  if (support.par && row.par !== null) record.payment_account_reference = row.par
  return record
}
