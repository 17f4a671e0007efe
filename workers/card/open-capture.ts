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

/** `cards`: of the chunk, to which this one is added. */
export interface CardNames extends Names {
  cards?: PanLookalikes | undefined
}

/** `acceptedAt` (ms) is what `captureTime` is judged by; `names` may not give the card away, a bad one neither. */
export async function openCapture(
  encryptedCard: string,
  alias: string,
  client: Client,
  acceptedAt: number,
  { cards, ...names }: CardNames,
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
