// What follows for the payment from the outcome of an authentication: its ECI if the directory server sent none, and
// who is liable for fraud. `ECIS` has an entry for each card network, category and case; `ISSUER_PAIRS` has one for
// each network. transition.ts decides the outcome.
import type { Brand } from '../token/brand.ts'

/** The EMV transStatus values that this service shows. C isn't final: a challenge is in progress. */
const OUTCOMES = ['Y', 'A', 'N', 'U', 'R', 'C'] as const
export type Outcome = (typeof OUTCOMES)[number]
export type FinalOutcome = Exclude<Outcome, 'C'>

/**
 * The network whose directory server serves a card. CB isn't one: such a card uses the directory server of its other
 * brand.
 */
export type Network = Exclude<Brand, 'CB'>

/** 01: a payment. 02: no payment; a card is added or a cardholder verified. */
export type Category = '01' | '02'

/** An outcome, or one of three cases for which Mastercard has an ECI of its own. */
export const ECI_CASES = ['Y', 'A', 'N', 'U', 'R', 'data-only', 'exempt', 'recurring'] as const
export type EciCase = (typeof ECI_CASES)[number]

const most = {
  Y: '05',
  A: '06',
  N: '07',
  U: '07',
  R: '07',
  'data-only': '07',
  exempt: '07',
  recurring: '05',
} as const satisfies Record<EciCase, string>
const payment = {
  Y: '02',
  A: '01',
  N: '00',
  U: '00',
  R: '00',
  'data-only': '04',
  exempt: '06',
  recurring: '07',
} as const satisfies Record<EciCase, string>
const nonPayment = {
  Y: 'N2',
  A: 'N0',
  N: 'N0',
  U: 'N0',
  R: 'N0',
  'data-only': 'N0',
  exempt: 'N0',
  recurring: 'N2',
} as const satisfies Record<EciCase, string>
const mostly = { '01': most, '02': most } as const
const mastercard = { '01': payment, '02': nonPayment } as const

/** The ECI for an answer without `eci`. An ECI that the directory server sends always takes precedence. */
export const ECIS = {
  VISA: mostly,
  AMEX: mostly,
  JCB: mostly,
  DINERS: mostly,
  DISCOVER: mostly,
  UPI: mostly,
  MASTERCARD: mastercard,
  MAESTRO: mastercard,
} as const satisfies Record<Network, Record<Category, Record<EciCase, string>>>

type Pair = `${'Y' | 'A'}/${string}`
const ISSUER_MOST: readonly Pair[] = ['Y/05', 'A/06']
const ISSUER_MASTERCARD: readonly Pair[] = ['Y/02', 'Y/07', 'A/01']

/** Pairs of outcome and ECI for which the issuer is liable for fraud; for any other pair the merchant is. */
const ISSUER_PAIRS = {
  VISA: ISSUER_MOST,
  AMEX: ISSUER_MOST,
  JCB: ISSUER_MOST,
  DINERS: ISSUER_MOST,
  DISCOVER: ISSUER_MOST,
  UPI: ISSUER_MOST,
  MASTERCARD: ISSUER_MASTERCARD,
  MAESTRO: ISSUER_MASTERCARD,
} as const satisfies Record<Network, readonly Pair[]>

/** Mastercard's ECIs of authentications without a payment: there is no payment for which anybody could be liable. */
const NO_PAYMENT: ReadonlySet<string> = new Set(['N2', 'N0'])

export interface LiabilityFacts {
  network: Network
  outcome: Outcome
  eci: string | undefined
  /** The outcome came with an authentication value. */
  hasValue: boolean
  /** The authentication runs as one of Cartes Bancaires. */
  isCb: boolean
  /** The merchant asked for no challenge (challenge indicator 02). */
  askedForNone: boolean
  /** There was a challenge. */
  challenged: boolean
}

/**
 * Who is liable for fraud. Undefined while nothing is decided, and for the ECIs N2 and N0. Other networks than Mastercard
 * have no ECI of their own for an authentication without a payment, so it gets a liability like any other.
 */
export function liabilityOf(facts: LiabilityFacts): 'ISSUER' | 'MERCHANT' | undefined {
  const { network, outcome, eci } = facts
  if (outcome === 'C' || (eci !== undefined && NO_PAYMENT.has(eci))) return undefined
  if (facts.isCb && facts.askedForNone && !facts.challenged) return 'MERCHANT'
  const isIssuers = ISSUER_PAIRS[network].some(pair => pair === `${outcome}/${eci}`)
  // Without the authentication value nobody can prove the authentication later.
  return isIssuers && facts.hasValue ? 'ISSUER' : 'MERCHANT'
}

/**
 * The network of a card. CB has no ranges of its own: the brand detected by the number counts. Undefined if no brand
 * was detected.
 */
export function networkOf(detected: Brand | undefined): Network | undefined {
  return detected === 'CB' ? undefined : detected
}

export function isMastercards(network: Network): boolean {
  return network === 'MASTERCARD' || network === 'MAESTRO'
}

/** The kind of the authentication value, as authorisations name it: 3 for Mastercard's, 2 for all others. */
export function cavvAlgorithm(network: Network): '2' | '3' {
  return isMastercards(network) ? '3' : '2'
}
