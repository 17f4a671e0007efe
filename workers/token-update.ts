// `token-update`: a partial update of one token, or, with `encrypted_card`, its link to another PAN.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenUpdate } from '../src/job/token-update.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import type { StoredToken } from '../src/store/token/tokens.ts'
import { giverAt } from '../src/token/batch/newest.ts'
import { type CardInput, isBlankName } from '../src/token/card.ts'
import { type CardFacts, type Given, update } from '../src/token/decide.ts'
import { renderPatch } from '../src/token/render.ts'
import { isSupported, type ShownScheme } from '../src/token/scheme.ts'
import { isSameCard } from '../src/token/token.ts'
import { beforeImageOf, versionsOf } from './card/before-image.ts'
import { findByCard } from './card/by-card.ts'
import { factsOf } from './card/card-facts.ts'
import { decideClaim, onFileRefusal } from './card/claim.ts'
import { tokenFor } from './card/find-token.ts'
import { guessOf, guessRefusal } from './card/guess-limit.ts'
import { openCapture } from './card/open-capture.ts'
import { findReplacements, provisionsOf, relinkRefusal } from './card/scheme-replacement.ts'
import { sealRow } from './card/seal-row.ts'
import type { Deps } from './deps.ts'
import type { Effect } from './line/effect.ts'
import { decideInSequence } from './line/in-sequence.ts'
import { type EffectDecision, type Handler, noEffect, type Success, type Work } from './line/work.ts'
import type { NetworkResult } from './provider/network-actions.ts'
import { actFor, deletionOf, staleRefusal, supportRefusal } from './provider/scheme-action.ts'
import { shownScheme } from './provider/shown-scheme.ts'
import { reconcileThenShow } from './provider/token-effects.ts'
import { givenOf } from './token-create.ts'

interface Prepared {
  card: CardInput | undefined
  given: Given
  /** The result of `scheme_token_action`. */
  acted?: NetworkResult
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
    if (judged.relink) {
      return relinkRefusal(action, judged.verdict.row, deps) ?? prepared
    }
    const acted =
      action === 'DELETE' ? await deletionOf(stored.tokenId, deps) : await actFor(work, stored, scope, action, deps)
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

/** The rules' decision before other cards are searched: an answer about another card always counts as a guess. */
function judge(work: Work<TokenUpdate>, stored: StoredToken, scope: Scope, { card, given }: Prepared, deps: Deps) {
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
  const guess = facts && guessOf(client.clientId, scope.tokenScope, facts)
  const stopped =
    (guess && (await guessRefusal(guess, CARD, deps))) ?? (facts && relink && (await takenRefusal(facts, deps)))
  if (stopped) return noEffect(stopped)
  const row = sealRow(verdict, stored, prepared.card?.pan, deps.ring)
  const range = await deps.directory.binRange(row.binRange)
  const claim = await decideClaim(work, row, scope, deps)
  const render = (shown: ShownScheme | undefined) => ({ ...renderPatch(row, range, shown), ...claim.shown })
  const shown = await shownScheme(row.tokenId, scope, deps)
  const answer: Success = { code: 200, outcome: verdict.outcome, tokenId: row.tokenId, record: render(shown) }
  const versions = relink ? await versionsOf(deps.store, stored) : undefined
  const { effect, provisions } = relink
    ? await replacing(work, row, scope, deps)
    : retiring(work, row, prepared.acted, shown)
  const decision: EffectDecision = {
    answer,
    effect: {
      ...effect,
      ...claim.effect,
      ...(verdict.changed || verdict.marked
        ? { updates: [row], beforeImages: [beforeImageOf(stored, receiptId, deps.ring, versions)] }
        : { touches: [{ tokenId: row.tokenId, receiptId, version: stored.version }] }),
      misses: guess && relink ? [{ ...guess, missesMax: deps.settings.guessesMax }] : [],
    },
  }
  if (!provisions) return decision
  return {
    ...decision,
    after: () => reconcileThenShow(provisions, answer, { tokenId: row.tokenId, scope, render }, deps),
  }
}

/** What follows for scheme tokens. */
interface SchemeEffect {
  effect: Effect
  /** The provisionings for which the network is called after the commit; undefined: none. */
  provisions: string[] | undefined
}

/** Replaces the former card's scheme token by one for the new card. */
async function replacing(work: Work<TokenUpdate>, token: StoredToken, scope: Scope, deps: Deps): Promise<SchemeEffect> {
  if (!isSupported(scope)) return { effect: {}, provisions: undefined }
  const job = { receiptId: work.receiptId, clientId: work.client.clientId }
  const action = work.request.scheme_token_action
  const replacements = await findReplacements(deps.store, [{ token, scope, action }], job, deps)
  return { effect: { replacements }, provisions: replacements.flatMap(provisionsOf) }
}

/** The effect of a request that deletes the scheme token. */
function retiring(
  { request }: Work<TokenUpdate>,
  { tokenId }: StoredToken,
  acted: NetworkResult | undefined,
  shown: ShownScheme | undefined,
): SchemeEffect {
  if (request.scheme_token_action !== 'DELETE' || acted !== 'changed') return { effect: {}, provisions: undefined }
  return { effect: { retirements: [tokenId] }, provisions: shown ? [shown.row.provisionId] : [] }
}

/** The refusal of a new PAN that already has another live token. */
async function takenRefusal(facts: CardFacts, deps: Deps): Promise<Refusal | undefined> {
  return (await findByCard(facts, deps)) ? refuse('pan_taken', CARD) : undefined
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
