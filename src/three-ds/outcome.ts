// The meaning of an authentication's outcome for the payment: its ECI where the directory server named none, and who is
// liable for fraud. `ECIS` has an entry for each card network, category and case, and `ISSUER_PAIRS` one for each network;
// transition.ts says how an outcome comes about.
import type { Brand } from '../token/brand.ts'

/** EMV transStatus, as far as this service shows it. C is no end: a challenge is under way. */
const OUTCOMES = ['Y', 'A', 'N', 'U', 'R', 'C'] as const
export type Outcome = (typeof OUTCOMES)[number]
export type FinalOutcome = Exclude<Outcome, 'C'>

/** Who runs the directory server of a card: CB rides on another brand's. */
export type Network = Exclude<Brand, 'CB'>

/** 01 a payment, 02 none: a card is added, a cardholder is verified. */
export type Category = '01' | '02'

/** An outcome, or one of the three that Mastercard names by an ECI of their own. */
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

/** Only for an answer without an `eci`: the one that the directory server sends always wins. */
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

/** Outcome and ECI for which the issuer bears a fraud; for any other pair it is the merchant. */
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

/** ECIs of an authentication that was for no payment: nobody bears the fraud of a payment that there isn't. */
const NO_PAYMENT: ReadonlySet<string> = new Set(['N2', 'N0'])

export interface LiabilityFacts {
  network: Network
  outcome: Outcome
  eci: string | undefined
  /** An authentication value came with the outcome. */
  hasValue: boolean
  /** Held as Cartes Bancaires. */
  isCb: boolean
  /** The merchant asked for no challenge (challenge indicator 02). */
  askedForNone: boolean
  /** There was a challenge. */
  challenged: boolean
}

/** Undefined while nothing is decided, and for an authentication without a payment. */
export function liabilityOf(facts: LiabilityFacts): 'ISSUER' | 'MERCHANT' | undefined {
  const { network, outcome, eci } = facts
  if (outcome === 'C' || (eci !== undefined && NO_PAYMENT.has(eci))) return undefined
  if (facts.isCb && facts.askedForNone && !facts.challenged) return 'MERCHANT'
  const isIssuers = ISSUER_PAIRS[network].some(pair => pair === `${outcome}/${eci}`)
  // Without its value nobody can prove the authentication later.
  return isIssuers && facts.hasValue ? 'ISSUER' : 'MERCHANT'
}

/** CB has no ranges of its own: it follows the brand that the number belongs to. Undefined: no network is known. */
export function networkOf(detected: Brand | undefined): Network | undefined {
  return detected === 'CB' ? undefined : detected
}

export function isMastercards(network: Network): boolean {
  return network === 'MASTERCARD' || network === 'MAESTRO'
}

/** What kind of value the authentication value is, as authorisations name it: 3 is Mastercard's, 2 everybody else's. */
export function cavvAlgorithm(network: Network): '2' | '3' {
  return isMastercards(network) ? '3' : '2'
}
