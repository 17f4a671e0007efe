// The rules for scheme tokens. STEPS says what each action does in each condition; SHOWN says which status a record
// shows for each state; both tables are total. renderScheme decides which details the scope's token requestor allows.
// The workers call the networks.

/** PENDING: not provisioned yet. VOID: no token was made. The others are the network's words. */
export const SCHEME_STATES = ['PENDING', 'INACTIVE', 'ACTIVE', 'SUSPENDED', 'DELETED', 'VOID'] as const
type SchemeState = (typeof SCHEME_STATES)[number]
export const SCHEME_ACTIONS = ['ACTIVATE', 'SUSPEND', 'DELETE'] as const
export type SchemeAction = (typeof SCHEME_ACTIONS)[number]
/**
 * The calls to a network that are made before the caller gets an answer. A deletion is called after the answer, until
 * the network confirms it.
 */
export type SchemeCall = 'PROVISION' | 'SUSPEND' | 'RESUME'

/** The network's word for a suspension by this installation. */
export const SUSPENDED_BY_US = 'TOKEN_REQUESTOR'

/** One provisioning of a token at a network. */
export interface SchemeRow {
  /** The installation's id of the provisioning, which is sent to the network with each call. */
  provisionId: string
  tokenId: string
  tokenScope: string
  /** The client whose request made the provisioning. */
  clientId: string
  provider: string
  /** The token's record shows this provisioning. */
  current: boolean
  /** True if the background loop makes the call, false if a job does. */
  background: boolean
  state: SchemeState
  /** The network's reference of the scheme token. */
  reference: string | null
  /** Who has suspended the scheme token. It is active again only when all of them have lifted their suspension. */
  suspendedBy: readonly string[]
  lastFour: string | null
  expiryMonth: number | null
  expiryYear: number | null
  par: string | null
  /** Why the network made no scheme token. */
  refusal: string | null
  /** Since when the scheme token is retired (to be deleted at the network), ms since the epoch. */
  retiredAt: number | null
  version: number
}

/** A provider's name for the token of a provisioning, and the row that it is written in. */
export interface ReferencePlace extends Pick<SchemeRow, 'provisionId' | 'tokenId' | 'provider'> {
  reference: string
}

type SchemeCondition =
  | 'NONE'
  | 'PENDING'
  | 'INACTIVE'
  | 'ACTIVE'
  | 'SUSPENDED_BY_US'
  | 'SUSPENDED_BY_OTHERS'
  | 'DELETED'

/**
 * `stays`: success without a change. `retire`: to be deleted at the network. `absent`: there is no scheme token that
 * the action could change.
 */
type Step = SchemeCall | 'stays' | 'retire' | 'absent'

const STEPS = {
  NONE: { ACTIVATE: 'PROVISION', SUSPEND: 'absent', DELETE: 'absent' },
  PENDING: { ACTIVATE: 'PROVISION', SUSPEND: 'absent', DELETE: 'retire' },
  // The network waits for the cardholder's consent, which tokenmill can't give.
  INACTIVE: { ACTIVATE: 'stays', SUSPEND: 'absent', DELETE: 'retire' },
  ACTIVE: { ACTIVATE: 'stays', SUSPEND: 'SUSPEND', DELETE: 'retire' },
  SUSPENDED_BY_US: { ACTIVATE: 'RESUME', SUSPEND: 'stays', DELETE: 'retire' },
  // Each party can lift only its own suspension.
  SUSPENDED_BY_OTHERS: { ACTIVATE: 'stays', SUSPEND: 'SUSPEND', DELETE: 'retire' },
  DELETED: { ACTIVATE: 'PROVISION', SUSPEND: 'absent', DELETE: 'stays' },
} as const satisfies Record<SchemeCondition, Record<SchemeAction, Step>>

/** What compensates each call when an operation is reversed. */
export const UNDO = { PROVISION: 'retire', SUSPEND: 'RESUME', RESUME: 'SUSPEND' } as const satisfies Record<
  SchemeCall,
  Step
>

export type Standable = Pick<SchemeRow, 'state' | 'suspendedBy' | 'retiredAt'>

export function stepOf(row: Standable | undefined, action: SchemeAction): Step {
  return STEPS[conditionOf(row)][action]
}

/** Whether the row shows what the call brings about: the action that would make the call has nothing to do. */
export function shows(row: Standable, call: SchemeCall): boolean {
  return stepOf(row, call === 'SUSPEND' ? 'SUSPEND' : 'ACTIVATE') === 'stays'
}

function conditionOf(row: Standable | undefined): SchemeCondition {
  if (!row || row.state === 'VOID') return 'NONE'
  if (row.retiredAt !== null) return 'DELETED'
  if (row.state !== 'SUSPENDED') return row.state
  return row.suspendedBy.includes(SUSPENDED_BY_US) ? 'SUSPENDED_BY_US' : 'SUSPENDED_BY_OTHERS'
}

/** Whether the network has, or may still make, a token for this provisioning. */
export function isLive({ state, retiredAt }: Pick<SchemeRow, 'state' | 'retiredAt'>): boolean {
  return retiredAt === null && state !== 'DELETED' && state !== 'VOID'
}

/** Whether a scope supports scheme tokens, and which party requests them. */
interface SchemeSupport {
  par: boolean
  networkTokens: boolean
  requestor: 'MERCHANT' | 'PSP'
}

export function isSupported({ par, networkTokens }: Pick<SchemeSupport, 'par' | 'networkTokens'>): boolean {
  return par || networkTokens
}

/** A scheme token in the form of the interface. */
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
  // Nobody can use the token until the network activates it.
  INACTIVE: 'SUSPENDED',
  ACTIVE: 'ACTIVE',
  SUSPENDED: 'SUSPENDED',
  DELETED: 'DELETED',
} as const satisfies Record<SchemeState, SchemeRecord['status'] | undefined>

const MASK = '*'.repeat(12)

/**
 * The scheme token and its scope's support, as a record shows them. `number`: the full network token, for HTTP only.
 */
export interface ShownScheme {
  row: SchemeRow
  support: SchemeSupport
  number?: string | undefined
}

/** The scheme token to show; undefined if there is none. `valid`: the word for the status of an active one. */
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
