// Which outcome a card number has at the simulator: published outcome numbers, and more numbers on a published test
// BIN. Every other number succeeds. docs/simulator.md lists the numbers, and a test compares that list with this one.

export interface Outcome {
  /** The outcome in a few words, for the docs. */
  says: string
  /** The MDES error of the answer; then the call has no effect. */
  error?: string
  decision?: 'DECLINED' | 'REQUIRE_ADDITIONAL_AUTHENTICATION'
  way?: Way
  /** The number of digits of the network token. */
  digits?: number
  par?: 'malformed' | 'none'
  /** This many ms after the token was made, the issuer suspends it and notifies the requestor. */
  suspendedAfterMs?: number
}

export type Way =
  | 'slow'
  | 'hang_after'
  | 'hang_before_once'
  | 'later'
  | 'twice'
  | 'reset_after'
  | 'reset_before_once'
  | 'fail_once'
  | 'busy_once'
  | 'garbled_after'

const success: Outcome = { says: 'success' }
const failure = (error: string, says: string): Outcome => ({ says, error })
const declined = (says: string): Outcome => ({ says, decision: 'DECLINED' })

const PUBLISHED: Record<string, Outcome> = {
  '4000000000000002': success,
  '4000000000000010': failure('INVALID_FIELD_VALUE', 'provision data expired'),
  '4000000000000028': declined('card verification failed'),
  '4000000000000036': failure('PAN_INELIGIBLE', 'card not eligible'),
  '4000000000000044': failure('CARD_NOT_ALLOWED', 'card not allowed'),
  '4000000000000051': declined('card declined'),
  '4000000000000069': failure('PAN_INELIGIBLE_FOR_DEVICE', 'provision not allowed'),
  '4000000000000077': failure('INVALID_TOKEN_STATUS', 'invalid token status'),
  '4000000000000085': success,
  '4000000000000093': success,
  '5100000000000008': success,
  '5100000000000024': failure('PAN_INELIGIBLE', 'card not eligible'),
  '5100000000000032': declined('issuer declined'),
  '5100000000000040': failure('INVALID_PAN', 'invalid input'),
  '5100000000000057': failure('INVALID_FIELD_FORMAT', 'invalid input'),
  '370000000000002': success,
  '370000000000010': failure('PAN_INELIGIBLE', 'card market not supported'),
  '370000000000028': failure('PAN_INELIGIBLE', 'card not eligible'),
  '370000000000036': failure('TOKENIZATION_INELIGIBLE', 'card cannot be tokenized'),
  '370000000000044': failure('PAN_INELIGIBLE', 'issuer not supported'),
  '370000000000051': failure('INVALID_PAN', 'card cancelled'),
}

/** Our own test numbers are this prefix, two digits that number the outcome, and the check digit. */
const OWN_PREFIX = '5123450000010'
const OWN: Outcome[] = [
  { says: 'slow: answers after 2 s', way: 'slow' },
  { says: 'makes the token, but never answers', way: 'hang_after' },
  { says: "first call: makes no token and doesn't answer", way: 'hang_before_once' },
  { says: 'never answers, but makes the token 2 s later', way: 'later' },
  { says: 'answers twice on the same connection', way: 'twice' },
  { says: 'makes the token and resets the connection', way: 'reset_after' },
  { says: 'first call: makes no token and resets the connection', way: 'reset_before_once' },
  { says: 'first call: internal failure (500)', way: 'fail_once' },
  { says: 'first call: busy (503, Retry-After: 1)', way: 'busy_once' },
  { says: "makes the token and answers with a body that isn't JSON", way: 'garbled_after' },
  { says: 'makes the token; 2 s later the issuer suspends it and a notification says so', suspendedAfterMs: 2_000 },
  {
    says: 'approved if the cardholder is authenticated: the token is INACTIVE',
    decision: 'REQUIRE_ADDITIONAL_AUTHENTICATION',
  },
  { says: 'a network token of 19 digits', digits: 19 },
  { says: 'an invalid PAR', par: 'malformed' },
  { says: 'no PAR', par: 'none' },
  failure('NO_RESPONSE_FROM_ISSUER', 'the issuer never answers'),
  failure('PAN_PROVISIONING_COUNT_EXCEEDED', 'too many tokens of this card'),
  failure('CRYPTOGRAPHY_ERROR', 'the card could not be decrypted'),
  failure('SOMETHING_NEW', "an error code that MDES doesn't document"),
]

export const OUTCOMES: Readonly<Record<string, Outcome>> = {
  ...PUBLISHED,
  ...Object.fromEntries(OWN.map((outcome, index) => [ownPan(index + 1), outcome])),
}

export function outcomeOf(pan: string): Outcome {
  return Object.hasOwn(OUTCOMES, pan) ? (OUTCOMES[pan] ?? success) : success
}

/** The card number of our own outcome `number`, counted from 1. */
function ownPan(number: number): string {
  const body = OWN_PREFIX + String(number).padStart(2, '0')
  return body + checkDigit(body)
}

/** The Luhn check digit that follows `body`. */
export function checkDigit(body: string): string {
  const sum = [...body].reverse().reduce((total, digit, index) => {
    const value = Number(digit) * (index % 2 === 0 ? 2 : 1)
    return total + (value > 9 ? value - 9 : value)
  }, 0)
  return String((10 - (sum % 10)) % 10)
}
