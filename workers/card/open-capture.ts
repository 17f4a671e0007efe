// Decrypts `encrypted_card` with a capture key of its alias and checks the card. The vault decrypts; the token rules
// check.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { type Names, nameRefusal } from '../../src/job/pan-in-names.ts'
import { Secret } from '../../src/secret.ts'
import type { Client } from '../../src/store/access/clients.ts'
import { type CardContent, type CardInput, contentOf, parseCapture } from '../../src/token/card.ts'
import { numbersIn } from '../../src/token/pan.ts'
import type { PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { type Line, openCardByLine } from '../../src/vault/capture/line.ts'
import { type OpenedLine, openByLine } from '../../src/vault/capture/open-line.ts'
import type { Urgency } from '../../src/vault/event-loop-budget.ts'
import type { Deps } from '../deps.ts'

interface CardKeeper {
  contents?: Map<string, Secret<CardContent | undefined>>
}

export interface Capture extends Partial<Urgency> {
  encryptedCard: string
  /** The alias of the capture key. */
  alias: string
  client: Client
  /** ms since the epoch; `captureTime` is compared with it. */
  acceptedAt: number
  /** The job's names, which must not hold the card's number. They are checked even if the card is refused. */
  names: Names
  /** The job whose card it is. It keeps what the card says, by which a repeat of the job is recognised. */
  job?: CardKeeper | undefined
  /** The cards of the chunk, to which this card is added. */
  cards?: PanLookalikes | undefined
}

export async function openCapture(
  { encryptedCard, alias, client, acceptedAt, names, job, cards, isBackground = false }: Capture,
  { directory, captureUse }: Pick<Deps, 'directory' | 'captureUse'>,
): Promise<CardInput | Refusal> {
  const opened = await openForClient({ alias, client }, directory, line =>
    openCardByLine(encryptedCard, line, { isBackground }),
  )
  if (isRefusal(opened)) return opened
  const { plaintext, keyId } = opened
  captureUse.note(keyId, client.clientId)
  if (job) noteContent(job, encryptedCard, plaintext.reveal())
  const numbers = numbersIn(plaintext.reveal())
  for (const number of numbers) cards?.add(number)
  return nameRefusal(names, numbers) ?? parseCapture(plaintext.reveal(), { acceptedAt })
}

/** Keeps what a card says that was opened. */
export function noteContent(job: CardKeeper, encryptedCard: string, plaintext: string | Uint8Array): void {
  job.contents ??= new Map()
  job.contents.set(encryptedCard, new Secret(contentOf(plaintext)))
}

/** Decrypts with the capture keys of an alias; a refusal if their entity isn't one that the client acts for. */
export async function openForClient<T>(
  { alias, client }: Pick<Capture, 'alias' | 'client'>,
  directory: Deps['directory'],
  open: (line: Line) => Promise<T | Refusal>,
): Promise<T | Refusal> {
  const known = await lineFor({ alias, client }, directory)
  return isRefusal(known) ? known : openByLine(known, () => directory.captureLineAnew(alias), open)
}

/** The capture keys of an alias; a refusal if their entity isn't one that the client acts for. */
export async function lineFor(
  { alias, client }: Pick<Capture, 'alias' | 'client'>,
  directory: Deps['directory'],
): Promise<OpenedLine | Refusal> {
  const known = await directory.captureLine(alias)
  const isOurs = known !== undefined && client.entities.includes(known.entityId)
  return isOurs ? known : refuse('alias_unknown', 'body.public_key_alias')
}
