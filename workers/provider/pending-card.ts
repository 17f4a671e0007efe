// The card that a provisioning was begun for, sealed in its row until it is known what became of it: the token may be
// deleted or stand for another card by then, and the network must still be asked about this one.

import type { ProvisionCard } from '../../src/scheme/provider.ts'
import { Secret } from '../../src/secret.ts'
import type { StoredScheme } from '../../src/store/provider/scheme-row.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'

type Dated = Pick<StoredToken, 'expiryMonth' | 'expiryYear' | 'cardHolderName'>

/** Undefined for a card without an expiry date: no network makes a token for one. */
export function cardOf(pan: Secret, token: Dated): ProvisionCard | undefined {
  const { expiryMonth, expiryYear, cardHolderName } = token
  if (expiryMonth === null || expiryYear === null) return undefined
  return { pan, expiryMonth, expiryYear, cardHolderName: cardHolderName ?? undefined }
}

/** The card of a token that keeps one. */
export function storedCard(token: StoredToken, ring: KeyRing): ProvisionCard | undefined {
  if (token.sealed === null || token.sealVersion === null) return undefined
  return cardOf(ring.open(token.sealed, token.sealVersion, token.tokenId, token.tokenScope), token)
}

export function sealCard(
  card: ProvisionCard,
  { provisionId, tokenScope }: Pick<StoredScheme, 'provisionId' | 'tokenScope'>,
  ring: KeyRing,
): Pick<StoredScheme, 'card' | 'cardVersion'> {
  const json = JSON.stringify({ ...card, pan: card.pan.reveal() })
  // What is sealed is read as one byte a letter.
  const ascii = json.replace(/[\u0080-\uffff]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const { sealed, keyVersion } = ring.seal(new Secret(ascii), provisionId, tokenScope)
  return { card: sealed, cardVersion: keyVersion }
}

export function openSealedCard(
  { card, cardVersion, provisionId, tokenScope }: StoredScheme,
  ring: KeyRing,
): ProvisionCard | undefined {
  if (card === null || cardVersion === null) return undefined
  const json = JSON.parse(ring.open(card, cardVersion, provisionId, tokenScope).reveal()) as ProvisionCard & {
    pan: string
  }
  return { ...json, cardHolderName: json.cardHolderName, pan: new Secret(json.pan) }
}
