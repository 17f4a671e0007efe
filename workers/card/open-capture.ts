// Decrypts `encrypted_card` with the capture key of its alias and checks the card. The vault decrypts; the token rules
// check.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { type Names, nameRefusal } from '../../src/job/pan-in-names.ts'
import type { Client } from '../../src/store/access/clients.ts'
import { type CardInput, parseCapture } from '../../src/token/card.ts'
import { numbersIn } from '../../src/token/pan.ts'
import type { PanLookalikes } from '../../src/token/pan-lookalike.ts'
import type { CaptureKey } from '../../src/vault/capture.ts'
import { openCard } from '../../src/vault/open-card.ts'
import type { Deps } from '../deps.ts'

export interface Capture {
  encryptedCard: string
  /** The alias of the capture key. */
  alias: string
  client: Client
  /** ms since the epoch; `captureTime` is compared with it. */
  acceptedAt: number
  /** Names that must not hold the card's number, even if the card is refused. */
  names: Names
  /** The cards of the chunk, to which this card is added. */
  cards?: PanLookalikes | undefined
}

export async function openCapture(
  { encryptedCard, alias, client, acceptedAt, names, cards }: Capture,
  { directory }: Pick<Deps, 'directory'>,
): Promise<CardInput | Refusal> {
  const key = await captureKeyFor(alias, client, directory)
  if (isRefusal(key)) return key
  const plaintext = await openCard(encryptedCard, key)
  if (isRefusal(plaintext)) return plaintext
  const numbers = numbersIn(plaintext.reveal())
  for (const number of numbers) cards?.add(number)
  return nameRefusal(names, numbers) ?? parseCapture(plaintext.reveal(), { acceptedAt })
}

/** The capture key with this alias; a refusal if its entity isn't one that the client acts for. */
export async function captureKeyFor(
  alias: string,
  client: Client,
  directory: Deps['directory'],
): Promise<CaptureKey | Refusal> {
  const known = await directory.captureKey(alias)
  if (!known || !client.entities.includes(known.entityId)) return refuse('alias_unknown', 'body.public_key_alias')
  return known.key
}
