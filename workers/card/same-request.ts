// Whether a job is the one that left a receipt. Equal texts are the same without opening anything. A card that was encrypted
// again is another text: then the card is opened, and what it says is compared by a keyed hash. An answer about another card
// under a used jti counts as a guess at its number, as a creation does.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import { contentText } from '../../src/job/envelope/digest.ts'
import type { Claims } from '../../src/job/envelope/envelope.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as guesses from '../../src/store/token/guesses.ts'
import { shownBin } from '../../src/token/brand.ts'
import { openCardByLine } from '../../src/vault/capture/line.ts'
import type { Deps } from '../deps.ts'
import type { ReadContent } from '../line/cards.ts'
import type { AskedCard, RequestContent, Work } from '../work.ts'
import { scopeFor } from './card-facts.ts'
import { tokensFor } from './find-token.ts'
import { guessOf } from './guess-limit.ts'
import { noteContent, openForClient } from './open-capture.ts'

const CARD = 'body.encrypted_card'
const BLOCK = 'body.request.block'

/** What a request with one card says. */
function contentOfSingle({ kind, request }: Claims): RequestContent {
  const { encrypted_card: encryptedCard, public_key_alias: alias, token_scope: tokenScope, id } = request
  if (typeof encryptedCard !== 'string' || typeof alias !== 'string') return { cards: [], textOf: () => '' }
  const of = { ...(typeof tokenScope === 'string' && { tokenScope }), ...(typeof id === 'string' && { id }) }
  return {
    cards: [{ encryptedCard, alias, ...of }],
    textOf: says => contentText(kind, request, says(encryptedCard) ?? encryptedCard),
  }
}

export async function contentDigest(
  work: Work<unknown>,
  read: ReadContent,
  version: number,
  deps: Deps,
): Promise<Buffer | undefined> {
  if (!work.contents?.size) return undefined
  const content = read?.() ?? contentOfSingle(work.claims)
  await openRest(work, content.cards, deps)
  return hashOf(work, content, version, deps)
}

export async function isSameContent(
  stored: Receipt,
  work: Work<unknown>,
  read: ReadContent,
  deps: Deps,
): Promise<boolean | Refusal> {
  if (!stored.contentDigest || stored.kind !== work.claims.kind) return false
  const content = read?.() ?? contentOfSingle(work.claims)
  const scopes = await scopesOf(content.cards, work, deps)
  await openRest(
    work,
    content.cards.filter(card => scopes.has(card)),
    deps,
  )
  const hash = hashOf(work, content, stored.digestVersion, deps)
  if (hash === undefined) return false
  const field = read ? BLOCK : CARD
  const tried = content.cards.flatMap(card => guessAt(card, scopes.get(card), work) ?? [])
  const { guessesMax } = deps.settings
  if ((await guesses.countAll(deps.store, tried)).some(misses => misses >= guessesMax)) {
    deps.metrics.guesses.inc({ mode: 'interactive' })
    return refuse('guesses', field)
  }
  if (hash.equals(stored.contentDigest)) return true
  // Others may have guessed meanwhile.
  const isBeyond = await guesses.addAll(
    deps.store,
    tried.map(guess => ({ ...guess, missesMax: guessesMax })),
  )
  return isBeyond ? refuse('guesses', field) : false
}

function guessAt(
  { encryptedCard }: AskedCard,
  scope: Pick<Scope, 'tokenScope' | 'binDigits'> | undefined,
  { client, contents }: Work<unknown>,
): guesses.Guess | undefined {
  const content = contents?.get(encryptedCard)?.reveal()
  if (content === undefined || scope === undefined) return undefined
  const { pan = '' } = content
  return guessOf(client.clientId, scope.tokenScope, { bin: shownBin(pan, scope.binDigits), lastFour: pan.slice(-4) })
}

/** Undefined if no card was opened. */
function hashOf(
  { contents }: Work<unknown>,
  { cards, textOf }: RequestContent,
  version: number,
  { ring }: Pick<Deps, 'ring'>,
): Buffer | undefined {
  const says = (encryptedCard: string) => contents?.get(encryptedCard)?.reveal()?.text
  if (!cards.some(({ encryptedCard }) => says(encryptedCard) !== undefined)) return undefined
  return ring.requestDigestBy(textOf(says), version)
}

/** The scopes in which cards are looked for. A card has none where the client may not do that. */
async function scopesOf(
  cards: readonly AskedCard[],
  { client }: Work<unknown>,
  deps: Deps,
): Promise<ReadonlyMap<AskedCard, Pick<Scope, 'tokenScope' | 'binDigits'>>> {
  const ids = cards.flatMap(({ tokenScope, id }) => (tokenScope === undefined && id !== undefined ? [id] : []))
  const visible = await tokensFor(client, ids, deps)
  const found = new Map<AskedCard, Pick<Scope, 'tokenScope' | 'binDigits'>>()
  for (const card of cards) {
    const { tokenScope = visible.get(card.id ?? '')?.tokenScope } = card
    const scope = tokenScope && (await scopeFor(client, tokenScope, deps.directory, 'body.token_scope'))
    if (scope && !isRefusal(scope)) found.set(card, scope)
  }
  return found
}

/** Opens the cards that weren't opened yet. One that can't be opened, for example because its key was destroyed, says nothing. */
async function openRest(work: Work<unknown>, cards: readonly AskedCard[], { directory }: Deps): Promise<void> {
  for (const { encryptedCard, alias } of cards) {
    if (work.contents?.has(encryptedCard)) continue
    const opened = await openForClient({ alias, client: work.client }, directory, line =>
      openCardByLine(encryptedCard, line),
    )
    if (!isRefusal(opened)) noteContent(work, encryptedCard, opened.plaintext.reveal())
  }
}
