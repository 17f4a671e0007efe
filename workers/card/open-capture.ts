// From `encrypted_card` and its alias to a checked card: the vault opens, the token rules check.
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
  /** Of the capture key. */
  alias: string
  client: Client
  /** ms since the epoch: `captureTime` is judged by it. */
  acceptedAt: number
  /** None of these may hold the card's number, even if the card is refused. */
  names: Names
  /** Those of the chunk: this card is added to them. */
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

/** The capture key of this alias, if it belongs to an entity that the client acts for. */
export async function captureKeyFor(
  alias: string,
  client: Client,
  directory: Deps['directory'],
): Promise<CaptureKey | Refusal> {
  const known = await directory.captureKey(alias)
  if (!known || !client.entities.includes(known.entityId)) return refuse('alias_unknown', 'body.public_key_alias')
  return known.key
}
