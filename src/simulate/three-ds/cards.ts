// How the simulated directory server treats each test card, by its full number. Some numbers are published test cards,
// some are our own. Any other card is authenticated without a challenge. A cardholder name that begins with SIMULATE
// chooses the outcome for any card.
import { VALUE_FORMS, type ValueForm } from './values.ts'

type Status = 'Y' | 'A' | 'N' | 'U' | 'R' | 'I' | 'D'
export type End = 'Y' | 'A' | 'N' | 'U' | 'R'

/** Values that are sent with an outcome instead of the network's usual ones. */
export interface Odd {
  /** The ECI; `none`: no ECI is sent. */
  eci?: string
  value?: ValueForm
  /** transStatusReason. */
  reason?: string
  /** authenticationType. */
  type?: string
  /** challengeCancel. */
  cancel?: string
}

export type Script =
  /** The ARes has this transStatus, and no challenge follows. */
  | { kind: 'answer'; status: Status; odd?: Odd }
  /** A challenge. The right code ends it with `end`; if `end` isn't Y, any code does. */
  | { kind: 'challenge'; end: End; odd?: Odd }
  /** The first request gets no answer; the same request again is answered with Y. */
  | { kind: 'silence' }
  /** The answer isn't a valid ARes: its members aren't those of the standard. */
  | { kind: 'malformed' }
  /** The answer is an error message with this code. */
  | { kind: 'error'; code: string; description: string }

const answer = (status: Status, cards: string) => entries({ kind: 'answer', status }, cards)
const challenge = (end: End, cards: string) => entries({ kind: 'challenge', end }, cards)

function entries(script: Script, cards: string): (readonly [string, Script])[] {
  return cards.split(' ').map(card => [card, script])
}

export const CARDS: ReadonlyMap<string, Script> = new Map([
  ...answer(
    'Y',
    '4000000000001000 4000000000002701 5200000000001005 5200000000002235 340000000001007 340000000002708 3530111333300000 3566002020360505 6011000000001002 6011000000002117 6200010000200000 4000000000003006 5200000000003001',
  ),
  ...answer('A', '4000000000002719'),
  ...answer('N', '4000000000002925'),
  ...answer('U', '4000000000002313'),
  ...answer('R', '4000000000002537 5200000000002185 340000000002062'),
  ...challenge('Y', '4000000000002503 5200000000002151 340000000002534 6011000000002265'),
  ...challenge('N', '4000000000002370 5200000000002490 340000000002237'),
  ...challenge('U', '4000000000004640 340000000002484'),
  ...entries({ kind: 'silence' }, '4000000000002354 5200000000002326 340000000002047'),
  ...entries({ kind: 'malformed' }, '4000000000009003'),
  ...entries({ kind: 'error', code: '305', description: 'Transaction data not valid' }, '4000000000009011'),
  ...entries({ kind: 'error', code: '403', description: 'Transient system failure' }, '4000000000009029'),
])

export function scriptOf(card: string, cardholderName: string): Script {
  return wished(cardholderName) ?? CARDS.get(card) ?? { kind: 'answer', status: 'Y' }
}

const WISH = 'SIMULATE'

/**
 * The outcome that a cardholder name asks for: `SIMULATE U reason=80 value=hex`, or `SIMULATE C-A eci=07` for a
 * challenge that ends with A.
 */
function wished(cardholderName: string): Script | undefined {
  const [first, outcome = '', ...words] = cardholderName.split(/\s+/)
  if (first !== WISH) return undefined
  const said = Object.fromEntries(words.map(word => word.split('=')))
  const { value, ...others } = said as Odd
  const form = VALUE_FORMS.find(one => one === value)
  const odd = { ...others, ...(form === undefined ? {} : { value: form }) }
  const [, kind, status] = /^(C-)?([YANURID])$/.exec(outcome) ?? []
  if (status === undefined) return undefined
  return kind === undefined
    ? { kind: 'answer', status: status as Status, odd }
    : { kind: 'challenge', end: status as End, odd }
}

/** The one-time code of every challenge. */
export const CODE = '123456'
/** After this many wrong codes the challenge has failed. */
export const TRIES = 3
