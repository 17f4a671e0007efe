// What an authentication's outcome means for the payment: which ECI goes with it, whether there is a CAVV, who bears the
// loss. One total table of card network and outcome; how an outcome comes about is transition.ts.
import type { Brand } from '../token/brand.ts'

/** EMV transStatus, as far as this service shows it. C is no end: a challenge is under way. */
export const OUTCOMES = ['Y', 'A', 'N', 'U', 'R', 'C'] as const
export type Outcome = (typeof OUTCOMES)[number]
export type FinalOutcome = Exclude<Outcome, 'C'>

/** Who runs the directory server of a card: CB rides on another brand's. */
export type Network = Exclude<Brand, 'CB'>

export interface Meaning {
  /** None while the challenge is under way. */
  eci: string | undefined
  /** A proof (CAVV, AAV) goes with the outcome. */
  cavv: boolean
  /** On which the network's signature was checked. */
  signature: 'Y' | undefined
  /** Who bears a fraud: the issuer once liability has shifted. */
  liability: 'ISSUER' | 'MERCHANT' | undefined
  /** R: the issuer says that no authorisation may be tried. */
  advice: 'AUTHORISE' | 'WAIT' | 'NEVER'
}

const PROVEN = { cavv: true, signature: 'Y', liability: 'ISSUER', advice: 'AUTHORISE' } as const
const UNPROVEN = { cavv: false, signature: 'Y', liability: 'MERCHANT', advice: 'AUTHORISE' } as const
const REJECTED = { ...UNPROVEN, advice: 'NEVER' } as const
const PENDING = {
  eci: undefined,
  cavv: false,
  signature: undefined,
  liability: undefined,
  advice: 'WAIT',
} as const

const meanings = (full: string, attempt: string, none: string): Record<Outcome, Meaning> => ({
  Y: { eci: full, ...PROVEN },
  A: { eci: attempt, ...PROVEN },
  N: { eci: none, ...UNPROVEN },
  U: { eci: none, ...UNPROVEN },
  R: { eci: none, ...REJECTED },
  C: PENDING,
})
const most = meanings('05', '06', '07')
const mastercard = meanings('02', '01', '00')

export const MEANINGS = {
  VISA: most,
  AMEX: most,
  JCB: most,
  DINERS: most,
  DISCOVER: most,
  UPI: most,
  MASTERCARD: mastercard,
  MAESTRO: mastercard,
} as const satisfies Record<Network, Record<Outcome, Meaning>>

/** CB has no ranges of its own: it follows the brand that the number belongs to. Undefined: no network is known. */
export function networkOf(detected: Brand | undefined): Network | undefined {
  return detected === 'CB' ? undefined : detected
}

/** What kind of value the CAVV is, as authorisations name it: 3 is Mastercard's, 2 is everybody else's. */
export function cavvAlgorithm(network: Network): '2' | '3' {
  return network === 'MASTERCARD' || network === 'MAESTRO' ? '3' : '2'
}

const BASE64_20 = /^[A-Za-z0-9+/]{27}=$/
const BASE64_24 = /^[A-Za-z0-9+/]{32}$/
const HEX = /^([0-9a-fA-F]{40}|[0-9a-fA-F]{48})$/

/** 20 bytes as base64 or hex; 24 where a network adds four of its own. */
export function isCavv(text: string): boolean {
  return BASE64_20.test(text) || BASE64_24.test(text) || HEX.test(text)
}

/** Liability shifts only where all three say so. */
export function shiftsLiability(facts: { enrolled?: string; signature?: string; outcome?: string }): boolean {
  return facts.enrolled === 'Y' && facts.signature === 'Y' && (facts.outcome === 'Y' || facts.outcome === 'A')
}
