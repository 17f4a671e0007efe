// What the simulated directory server makes of a card: by its whole number, from published test cards and a few of our
// own. Any other card is authenticated without a challenge.

export type Script =
  /** Answered at once with this transStatus. */
  | { kind: 'answer'; status: 'Y' | 'A' | 'N' | 'U' | 'R' }
  /** The right code (or, of N and U, any) ends the challenge so. */
  | { kind: 'challenge'; end: 'Y' | 'N' | 'U' }
  /** The first request isn't answered; the same one again is, with Y. */
  | { kind: 'silence' }
  /** An answer that is none: other members than the standard's. */
  | { kind: 'malformed' }
  /** An error message with this code. */
  | { kind: 'error'; code: string; description: string }

const answer = (status: 'Y' | 'A' | 'N' | 'U' | 'R', cards: string) => entries({ kind: 'answer', status }, cards)
const challenge = (end: 'Y' | 'N' | 'U', cards: string) => entries({ kind: 'challenge', end }, cards)

function entries(script: Script, cards: string): (readonly [string, Script])[] {
  return cards.split(' ').map(card => [card, script])
}

export const CARDS: ReadonlyMap<string, Script> = new Map([
  ...answer(
    'Y',
    '4000000000001000 4000000000002701 5200000000001005 5200000000002235 340000000001007 340000000002708 3337000000000008 3338000000000296 6011000000001002 6011000000002117 6200010000200000 4000000000003006 5200000000003001',
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

export function scriptOf(card: string): Script {
  return CARDS.get(card) ?? { kind: 'answer', status: 'Y' }
}

/** The one-time code of every challenge. */
export const CODE = '123456'
/** After so many wrong codes the challenge has failed. */
export const TRIES = 3
