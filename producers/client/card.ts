// Encrypts one card for the field `encrypted_card`. A CVV is refused: no job needs one, and the vault would drop it.
import { refuse } from '../../src/errors.ts'
import { encryptCard as seal } from '../../src/vault/capture/encrypt.ts'
import type { Credentials } from './client-file.ts'
import { RefusedError } from './errors.ts'
import type { CardToEncrypt, EncryptedCard } from './interface.ts'

/**
 * Encrypts a card. `now` (ms since the epoch) becomes `captureTime`. Throws `TypeError` if the credentials hold no
 * capture key, and `RefusedError` for a card with a CVV.
 */
export async function encryptCard(
  card: CardToEncrypt,
  credentials: Pick<Credentials, 'captureKeys'>,
  now: number,
): Promise<EncryptedCard> {
  if ('cvv' in card) throw new RefusedError(refuse('cvv_not_allowed', 'body.cvv'), now)
  const key = credentials.captureKeys.jwe ?? credentials.captureKeys.pgp
  if (!key) throw new TypeError('these credentials hold no capture key')
  const captured = { ...card, captureTime: new Date(now).toISOString() }
  return { encrypted_card: await seal(captured, key), public_key_alias: key.alias }
}
