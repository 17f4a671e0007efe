// Encrypts one card for the field `encrypted_card`. A CVV is refused: no job needs one, and the vault would drop it. Nobody can
// see in the encrypted card that a member of it has a wrong name, so each other member is refused, too.
import { refuse } from '../../src/errors.ts'
import { encryptCard as seal } from '../../src/vault/capture/encrypt.ts'
import type { Credentials } from './client-file.ts'
import { RefusedError } from './errors.ts'
import type { CardToEncrypt, EncryptedCard } from './interface.ts'

const MEMBERS: Readonly<Record<keyof CardToEncrypt | 'captureTime', true>> = {
  cardNumber: true,
  expiryMonth: true,
  expiryYear: true,
  cardholderName: true,
  sequenceNumber: true,
  startMonth: true,
  startYear: true,
  captureTime: true,
}
const CARD_MEMBERS = `A card has ${Object.keys(MEMBERS).join(', ')}.`

/**
 * Encrypts a card. `now` (ms since the epoch) becomes `captureTime`. Throws `TypeError` if the credentials hold no
 * capture key, and `RefusedError` for a card with a CVV or an unknown member.
 */
export async function encryptCard(
  card: CardToEncrypt,
  credentials: Pick<Credentials, 'captureKeys'>,
  now: number,
): Promise<EncryptedCard> {
  if ('cvv' in card) throw new RefusedError(refuse('cvv_not_allowed', 'body.cvv'), now)
  const unknown = Object.keys(card).filter(name => !Object.hasOwn(MEMBERS, name))
  const [first, ...others] = unknown.map(name => refuse('field_unknown', `body.card.${name}`))
  if (first) throw new RefusedError({ ...first, also: others }, now, CARD_MEMBERS)
  const key = credentials.captureKeys.jwe ?? credentials.captureKeys.pgp
  if (!key) throw new TypeError('these credentials hold no capture key')
  const captured = { ...card, captureTime: new Date(now).toISOString() }
  return { encrypted_card: await seal(captured, key), public_key_alias: key.alias }
}
