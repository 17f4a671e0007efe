// Decrypts the encrypted cards of many records and checks them, as open-capture.ts does for one, but without a promise for
// each: in a chunk of a thousand cards these cost more time than the checks.
import { isRefusal, type Refusal } from '../../src/errors.ts'
import type { CardInput } from '../../src/token/card.ts'
import { parseCapture } from '../../src/token/card.ts'
import { numbersIn } from '../../src/token/pan.ts'
import { type OpenedCard, openCardByLine, openJweByLine } from '../../src/vault/capture/line.ts'
import { isUndecryptable, type OpenedLine, openByLine } from '../../src/vault/capture/open-line.ts'
import { eachWithinEventLoopBudget } from '../../src/vault/event-loop-budget.ts'
import type { Deps } from '../deps.ts'
import { type Capture, lineFor, noteContent } from './open-capture.ts'

/** A card encrypted as JWE. */
type Sealed = Pick<Capture, 'encryptedCard' | 'alias'>

/**
 * Calls `take` with each card, in their order. No name of the records may be able to hold a card number: names aren't
 * compared with the cards here.
 */
export async function openCaptures<S extends Sealed>(
  sealed: readonly S[],
  { client, acceptedAt, cards, job }: Pick<Capture, 'client' | 'acceptedAt' | 'cards' | 'job'>,
  { directory, captureUse }: Pick<Deps, 'directory' | 'captureUse'>,
  take: (one: S, card: CardInput | Refusal) => void,
): Promise<void> {
  const lines = new Map<string, OpenedLine | Refusal>()
  for (const { alias } of sealed) if (!lines.has(alias)) lines.set(alias, await lineFor({ alias, client }, directory))
  const end = (one: S, opened: OpenedCard | Refusal) => {
    if (isRefusal(opened)) return take(one, opened)
    const { plaintext, keyId } = opened
    captureUse.note(keyId, client.clientId)
    if (job) noteContent(job, one.encryptedCard, plaintext.reveal())
    if (cards) for (const number of numbersIn(plaintext.reveal())) cards.add(number)
    take(one, parseCapture(plaintext.reveal(), { acceptedAt }))
  }
  await eachWithinEventLoopBudget(sealed, one => {
    const known = lines.get(one.alias)
    if (known === undefined || isRefusal(known)) return known && take(one, known)
    const first = openJweByLine(one.encryptedCard, known.line)
    if (!isUndecryptable(first)) return end(one, first)
    const anew = () => directory.captureLineAnew(one.alias)
    const open = async (line: OpenedLine['line']) =>
      line === known.line ? first : openCardByLine(one.encryptedCard, line)
    return openByLine(known, anew, open).then(opened => end(one, opened))
  })
}
