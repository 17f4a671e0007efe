// The row of a provisioning before its call, with the sealed card until the result is known. By then the token may be
// deleted or linked to another card, but the provider must still be asked about this card.
import { z } from 'zod'
import { Fault } from '../../src/errors.ts'
import type { ProvisionCard } from '../../src/scheme/provider.ts'
import { Secret } from '../../src/secret.ts'
import type { NewScheme, StoredScheme } from '../../src/store/provider/scheme-row.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import type { Deps } from '../deps.ts'

type Dated = Pick<StoredToken, 'expiryMonth' | 'expiryYear' | 'cardHolderName'>

/** The card for a provisioning; undefined without an expiry date, because no network makes a token for such a card. */
export function cardOf(pan: Secret, token: Dated): ProvisionCard | undefined {
  const { expiryMonth, expiryYear, cardHolderName } = token
  if (expiryMonth === null || expiryYear === null) return undefined
  return { pan, expiryMonth, expiryYear, cardHolderName: cardHolderName ?? undefined }
}

/** The stored card of a token; undefined if the token keeps none. */
export function storedCard(token: StoredToken, ring: KeyRing): ProvisionCard | undefined {
  if (token.sealed === null || token.sealVersion === null) return undefined
  return cardOf(ring.open(token.sealed, token.sealVersion, token.tokenId, token.tokenScope), token)
}

/** Makes the row. `background`: the loop makes the call as soon as possible; otherwise the job makes it. */
export function pendingRow(
  token: Pick<StoredToken, 'tokenId' | 'tokenScope'>,
  card: ProvisionCard,
  about: Pick<NewScheme, 'provisionId' | 'clientId' | 'provider' | 'background'>,
  { ring, clock }: Pick<Deps, 'ring' | 'clock'>,
): NewScheme {
  const { tokenId, tokenScope } = token
  const now = clock()
  const sealed = sealCard(card, { ...about, tokenId, tokenScope }, ring)
  return { tokenId, tokenScope, ...about, ...sealed, dueAt: about.background ? now : null, createdAt: now }
}

/**
 * The form of a card that is sealed in its row. It says for which token the card goes to which provider, so that nobody who
 * changes the row sends it elsewhere.
 */
const SealedCard = z.object({
  tokenId: z.string(),
  provider: z.string(),
  pan: z.string(),
  expiryMonth: z.number(),
  expiryYear: z.number(),
  cardHolderName: z.string().optional(),
})
type SealedCard = z.infer<typeof SealedCard>

function sealCard(
  { pan, ...rest }: ProvisionCard,
  {
    provisionId,
    tokenId,
    tokenScope,
    provider,
  }: Pick<StoredScheme, 'provisionId' | 'tokenId' | 'tokenScope' | 'provider'>,
  ring: KeyRing,
): Pick<StoredScheme, 'card' | 'cardVersion'> {
  const json = JSON.stringify({ ...rest, tokenId, provider, pan: pan.reveal() } satisfies SealedCard)
  // The key ring reads each letter of the opened text as one byte, so other letters are escaped.
  const ascii = json.replace(/[\u0080-\uffff]/g, letter => `\\u${letter.charCodeAt(0).toString(16).padStart(4, '0')}`)
  const { sealed, keyVersion } = ring.seal(new Secret(ascii), provisionId, tokenScope)
  return { card: sealed, cardVersion: keyVersion }
}

/** The card; undefined if it was erased. Throws `Fault('defect')` if it was sealed for another row, token or provider. */
export function openSealedCard(
  { card, cardVersion, provisionId, tokenId, tokenScope, provider }: StoredScheme,
  ring: KeyRing,
): ProvisionCard | undefined {
  if (card === null || cardVersion === null) return undefined
  const { pan, cardHolderName, expiryMonth, expiryYear, ...place } = SealedCard.parse(
    JSON.parse(ring.open(card, cardVersion, provisionId, tokenScope).reveal()),
  )
  if (place.tokenId !== tokenId || place.provider !== provider)
    throw new Fault('defect', new Error('the card is sealed for another token or provider'))
  return { pan: new Secret(pan), cardHolderName, expiryMonth, expiryYear }
}
