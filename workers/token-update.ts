// `token-update`: a partial update of one token, or, with `encrypted_card`, its link to another PAN.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenUpdate } from '../src/job/token-update.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import { LostRace } from '../src/store/pool.ts'
import type { StoredToken } from '../src/store/token/tokens.ts'
import { type CardInput, isBlankName } from '../src/token/card.ts'
import { type CardFacts, type Given, update } from '../src/token/decide.ts'
import { giverAt } from '../src/token/newest.ts'
import { renderPatch } from '../src/token/render.ts'
import type { ShownScheme } from '../src/token/scheme.ts'
import { isSameCard } from '../src/token/token.ts'
import { beforeImageOf, versionsOf } from './card/before-image.ts'
import { findByCard } from './card/by-card.ts'
import { factsOf } from './card/card-facts.ts'
import { decideClaim, onFileRefusal } from './card/claim.ts'
import { tokenFor } from './card/find-token.ts'
import { guessOf, guessRefusal } from './card/guess-limit.ts'
import { openCapture } from './card/open-capture.ts'
import { settleThenShow, shownScheme, supportRefusal } from './card/scheme-view.ts'
import { sealRow } from './card/seal-row.ts'
import type { Deps } from './deps.ts'
import { decideInSequence, staleRefusal } from './line/in-sequence.ts'
import type { MadeScheme, SchemeChange, SchemeResult } from './networks.ts'
import { givenOf } from './token-create.ts'
import { type EffectDecision, type Handler, noEffect, type Success, type Work } from './work.ts'

interface Prepared {
  card: CardInput | undefined
  given: Given
  /** The result of `scheme_token_action`. */
  acted?: SchemeResult
  /** The scheme token that a network has made for the new card, or why it has made none. */
  made?: MadeScheme | Refusal
}

const CARD = 'body.encrypted_card'

export const tokenUpdate: Handler<TokenUpdate, undefined, Prepared> = {
  async prepare(job, _opened, deps) {
    const { request, claims, client, acceptedAt, isBackground } = job
    const { encrypted_card: encryptedCard, public_key_alias: alias } = request
    if (encryptedCard === undefined) return { card: undefined, given: plainFieldsOf(request) }
    if (alias === undefined) return refuse('field_required', 'body.public_key_alias')
    // The answer 404 takes precedence over errors in the card's content.
    const stored = await tokenFor(client, request.id, deps, 'body.id')
    if (isRefusal(stored)) return stored
    const card = await openCapture({ encryptedCard, alias, client, acceptedAt, names: claims, job, isBackground }, deps)
    if (isRefusal(card)) return card
    // A field beside the card overrides the same field in the card.
    return { card, given: { ...givenOf(card), ...plainFieldsOf(request) } }
  },

  async reach(work, prepared, deps) {
    const { scheme_token_action: action, id } = work.request
    if (action === undefined) return prepared
    const stored = await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(stored)) return stored
    const scope = await deps.directory.scope(stored.tokenScope)
    if (!scope) return refuse('token_not_found', 'body.id')
    // A network isn't called for a job that the rules refuse.
    const refusal = supportRefusal(scope) ?? (await staleRefusal(work, stored.tokenId, deps))
    if (refusal) return refusal
    const judged = judge(work, stored, scope, prepared, deps)
    if (isRefusal(judged)) return judged
    if (judged.relink) return reachRelink(work, stored, { prepared, judged }, deps)
    const acted = await deps.networks.schemeTokens.act(jobOf(work), { token: stored, scope, action }, deps)
    return isRefusal(acted) ? acted : { ...prepared, acted }
  },

  async decide(work, prepared, deps) {
    const stored = await tokenFor(work.client, work.request.id, deps, 'body.id')
    if (isRefusal(stored)) return noEffect(stored)
    const scope = await deps.directory.scope(stored.tokenScope)
    if (!scope) return noEffect(refuse('token_not_found', 'body.id'))
    return decideInSequence(work, stored.tokenId, deps, () => decideUpdate(work, stored, scope, prepared, deps))
  },
}

interface Judged {
  facts: CardFacts | undefined
  verdict: Exclude<ReturnType<typeof update>, Refusal>
  /** The card is another than the token's. */
  relink: boolean
}

/** Has a scheme token made for the new card, if the request activates one. Nothing is taken over before the commit. */
async function reachRelink(
  work: Work<TokenUpdate>,
  stored: StoredToken,
  { prepared, judged: { facts, verdict } }: { prepared: Prepared; judged: Judged },
  deps: Deps,
): Promise<Prepared | Refusal> {
  const { scheme_token_action: action } = work.request
  const { schemeTokens } = deps.networks
  const refusal = schemeTokens.relinkRefusal(action, verdict.row)
  if (refusal) return refusal
  if (action !== 'ACTIVATE') return prepared
  const stopped = facts && (await cardRefusal(work, stored, { facts, relink: true }, deps))
  if (stopped) return stopped
  const row = sealRow(verdict, stored, prepared.card?.pan, deps.ring)
  return { ...prepared, made: await schemeTokens.make(jobOf(work), row, deps) }
}

/** The rules' decision before other cards are searched: an answer about another card always counts as a guess. */
function judge(
  work: Work<TokenUpdate>,
  stored: StoredToken,
  scope: Scope,
  { card, given }: Prepared,
  deps: Deps,
): Judged | Refusal {
  const facts = card && factsOf(card, { scope, withAnalytics: true, field: CARD }, deps)
  if (isRefusal(facts)) return facts
  const at = { now: work.now, receiptId: work.receiptId, giver: giverAt(work.acceptedAt) }
  const verdict = update(stored, { ...given, ...(facts ? { card: facts } : {}) }, at)
  if (isRefusal(verdict)) return verdict
  const { on_file: onFile } = work.request
  const telling = onFileRefusal(onFile, stored) ?? onFileRefusal(onFile, verdict.row)
  if (telling) return telling
  return { facts, verdict, relink: facts !== undefined && !isSameCard(stored.cards, facts.fingerprints.known) }
}

async function decideUpdate(
  work: Work<TokenUpdate>,
  stored: StoredToken,
  scope: Scope,
  prepared: Prepared,
  deps: Deps,
): Promise<EffectDecision> {
  const judged = judge(work, stored, scope, prepared, deps)
  if (isRefusal(judged)) return noEffect(judged)
  const { facts, verdict, relink } = judged
  const { receiptId, client } = work
  const stopped = facts && (await cardRefusal(work, stored, { facts, relink }, deps))
  if (stopped) return noEffect(stopped)
  if (!isReached(work, prepared, relink)) throw new LostRace('the token got another card meanwhile')
  const guess = facts && relink ? guessOf(client.clientId, scope.tokenScope, facts) : undefined
  const misses = guess ? [{ ...guess, missesMax: deps.settings.guessesMax }] : []
  const made = relink ? prepared.made : undefined
  // The network's answer about a card says that the card has no token.
  if (isRefusal(made)) return { answer: made, effect: { misses } }
  const row = sealRow(verdict, stored, prepared.card?.pan, deps.ring)
  const range = await deps.directory.binRange(row.binRange)
  const claim = await decideClaim(work, row, scope, deps)
  const render = (shown: ShownScheme | undefined) => ({ ...renderPatch(row, range, shown), ...claim.shown })
  const shown = await shownScheme(row.tokenId, scope, deps)
  const answer: Success = { code: 200, outcome: verdict.outcome, tokenId: row.tokenId, record: render(shown) }
  const versions = relink ? await versionsOf(deps.store, stored) : undefined
  const { schemeTokens, leftovers } = deps.networks
  const action = work.request.scheme_token_action
  const linked = { token: row, scope, action, made: made?.provisionId }
  const { effects, calls }: SchemeChange = relink
    ? await schemeTokens.replace(deps.store, [linked], jobOf(work), deps)
    : action === 'DELETE' && prepared.acted === 'changed'
      ? schemeTokens.retire(row.tokenId, shown)
      : { effects: [], calls: undefined }
  const decision: EffectDecision = {
    answer,
    effect: {
      ...claim.effect,
      ...(verdict.changed || verdict.marked
        ? { updates: [row], beforeImages: [beforeImageOf(stored, receiptId, deps.ring, versions)] }
        : { touches: [{ tokenId: row.tokenId, receiptId, version: stored.version }] }),
      misses,
      // Until another job linked the token to this card, a scheme token was made for it here, too.
      networks: [...effects, ...(facts && action === 'ACTIVATE' ? leftovers.effects(receiptId) : [])],
    },
  }
  if (!calls) return decision
  return {
    ...decision,
    after: () => settleThenShow(calls, answer, { tokenId: row.tokenId, scope, render }, deps),
  }
}

/** Whether `reach` saw the token as it is: it has asked the network for what the request wants of the scheme token. */
function isReached({ request }: Work<TokenUpdate>, { acted, made }: Prepared, relink: boolean): boolean {
  const { scheme_token_action: action } = request
  if (action === undefined) return true
  return relink ? action !== 'ACTIVATE' || made !== undefined : acted !== undefined
}

const jobOf = ({ receiptId, client: { clientId } }: Work<TokenUpdate>) => ({ receiptId, clientId })

/** The refusal beyond the limit of guesses, or of a new PAN that already has another live token. */
async function cardRefusal(
  { client }: Work<TokenUpdate>,
  { tokenId, tokenScope }: StoredToken,
  { facts, relink }: { facts: CardFacts; relink: boolean },
  deps: Deps,
): Promise<Refusal | undefined> {
  const guessed = await guessRefusal(guessOf(client.clientId, tokenScope, facts), CARD, deps)
  if (guessed || !relink) return guessed
  const holder = await findByCard(facts, deps)
  if (holder?.tokenId === tokenId) throw new LostRace('the token has got this card meanwhile')
  return holder ? refuse('pan_taken', CARD) : undefined
}

/** The fields that a PATCH has beside the card. */
export function plainFieldsOf(request: Omit<TokenUpdate, 'id'>): Given {
  const given: Given = {}
  const { card_holder_name: name } = request
  if (name !== undefined) given.cardHolderName = isBlankName(name) ? null : name
  if (request.card_holder_email !== undefined) given.cardHolderEmail = request.card_holder_email
  if (request.expiry_month !== undefined) given.expiryMonth = request.expiry_month
  if (request.expiry_year !== undefined) given.expiryYear = request.expiry_year
  if (request.token_expiry_date !== undefined) given.tokenExpiryDate = request.token_expiry_date
  return given
}
