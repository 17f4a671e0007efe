// Whether a job is the one that left a receipt. Equal texts are the same without opening anything. A card that was encrypted
// again is another text: then the card is opened, and what it says is compared by a keyed hash. An answer about another card
// under a used jti counts as a guess at its number, as a creation does.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { contentText } from '../../src/job/envelope/digest.ts'
import { Secret } from '../../src/secret.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import { shownBin } from '../../src/token/brand.ts'
import { type CardContent, contentOf } from '../../src/token/card.ts'
import { openCardByLine } from '../../src/vault/capture/line.ts'
import type { Hashed } from '../../src/vault/ring/held-keys.ts'
import type { Deps } from '../deps.ts'
import type { Work } from '../line/work.ts'
import { scopeFor } from './card-facts.ts'
import { tokenFor } from './find-token.ts'
import { guessOf, guessRefusal } from './guess-limit.ts'
import { openForClient } from './open-capture.ts'

const CARD = 'body.encrypted_card'

/**
 * Whether the receipt belongs to the text with this digest. `textOf`: the text, for a receipt under another version of the
 * key. Throws `Fault('key_unavailable')` if this process doesn't hold that version.
 */
export function isSameRequest(
  { requestDigest, digestVersion }: Receipt,
  digest: Hashed,
  textOf: () => string,
  { ring }: Pick<Deps, 'ring'>,
): boolean {
  // The receipt of a job that was cancelled before it began has no digest.
  if (requestDigest.length === 0) return false
  if (digestVersion === digest.keyVersion) return requestDigest.equals(digest.hash)
  return requestDigest.equals(ring.requestDigestBy(textOf(), digestVersion))
}

/** The hash of what the job says, its card opened; undefined if it has no card, or if the card wasn't opened. */
export function contentDigest(
  { claims, cardContent }: Work<unknown>,
  version: number,
  { ring }: Pick<Deps, 'ring'>,
): Buffer | undefined {
  const content = cardContent?.reveal()
  return content && ring.requestDigestBy(contentText(claims.kind, claims.request, content.text), version)
}

/** Whether the receipt belongs to a request that says the same. Refuses if too many cards were tried. */
export async function isSameContent(stored: Receipt, work: Work<unknown>, deps: Deps): Promise<boolean | Refusal> {
  if (!stored.contentDigest || stored.kind !== work.claims.kind) return false
  const tokenScope = await scopeOf(work, deps)
  if (tokenScope === undefined) return false
  const content = await contentOfCard(work, deps)
  if (content === undefined) return false
  const scope = await deps.directory.scope(tokenScope)
  const { pan = '' } = content
  const guess = guessOf(work.client.clientId, tokenScope, {
    bin: shownBin(pan, scope?.binDigits ?? 6),
    lastFour: pan.slice(-4),
  })
  const refusal = await guessRefusal(guess, CARD, deps)
  if (refusal) return refusal
  if (contentDigest(work, stored.digestVersion, deps)?.equals(stored.contentDigest)) return true
  const [misses = 0] = await guesses.addAll(deps.store, [guess])
  // Others may have guessed meanwhile.
  return misses > deps.settings.guessesMax ? refuse('guesses', CARD) : false
}

/** The scope in which the job's card is looked for. Undefined if the client may not do that. */
async function scopeOf({ claims, client }: Work<unknown>, deps: Deps): Promise<string | undefined> {
  const { token_scope: scope, id } = claims.request
  if (typeof scope === 'string') {
    const found = await scopeFor(client, scope, deps.directory, 'body.token_scope')
    return isRefusal(found) ? undefined : found.tokenScope
  }
  const token = typeof id === 'string' ? await tokenFor(client, id, deps, 'body.id') : undefined
  return token === undefined || isRefusal(token) ? undefined : token.tokenScope
}

/** What the job's card says; undefined if it can't be read, for example because its key was destroyed. */
async function contentOfCard(work: Work<unknown>, { directory }: Deps): Promise<CardContent | undefined> {
  const { encrypted_card: encrypted, public_key_alias: alias } = work.claims.request
  if (work.cardContent === undefined && typeof encrypted === 'string' && typeof alias === 'string') {
    const opened = await openForClient({ alias, client: work.client }, directory, line =>
      openCardByLine(encrypted, line),
    )
    if (!isRefusal(opened)) work.cardContent = new Secret(contentOf(opened.plaintext.reveal()))
  }
  return work.cardContent?.reveal()
}
