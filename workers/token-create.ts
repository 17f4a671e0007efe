// `token-create`: makes the token of a card in a scope, or updates the token that the card already has.
import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal } from '../src/errors.ts'
import type { TokenCreate } from '../src/job/token-create.ts'
import type { Secret } from '../src/secret.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import { LostRace } from '../src/store/pool.ts'
import type { StoredToken } from '../src/store/token/tokens.ts'
import { type CardFacts, create, type Given } from '../src/token/decide.ts'
import { giverAt } from '../src/token/newest.ts'
import { renderPut } from '../src/token/render.ts'
import type { ShownScheme } from '../src/token/scheme.ts'
import { beforeImageOf } from './card/before-image.ts'
import { findByCard, isRenewed } from './card/by-card.ts'
import { factsOf, scopeFor } from './card/card-facts.ts'
import { decideClaim, onFileRefusal } from './card/claim.ts'
import { contextRefusal, contractFor, nameOf, withContractExpiry } from './card/contract.ts'
import { guessOf, guessRefusal } from './card/guess-limit.ts'
import { openCapture } from './card/open-capture.ts'
import { settleThenShow, shownScheme } from './card/scheme-view.ts'
import { sealRow, timeOf, tokenIdAt } from './card/seal-row.ts'
import type { Deps } from './deps.ts'
import type { Effect } from './effect/effect.ts'
import type { Contract, MadeToken } from './networks.ts'
import { type EffectDecision, type Handler, noEffect, type Success, type Work } from './work.ts'

/** A card in clear, checked and hashed, and what is to be made of it. */
export interface CheckedCard {
  scope: Scope
  pan: Secret
  facts: CardFacts
  given: Given
  /** The contract under which a third party makes the token; undefined if the vault makes it. */
  contract: Contract | undefined
}

interface Prepared extends CheckedCard {
  /** What the third party made. */
  provisioned?: MadeToken | undefined
  /** Why the third party made nothing. */
  denied?: Refusal
}

export const tokenCreate: Handler<TokenCreate, undefined, Prepared> = {
  async prepare(job, _opened, deps) {
    const { request, claims, client, acceptedAt, isBackground } = job
    const refusal = contextRefusal(request, client, deps)
    if (refusal) return refusal
    const scope = await scopeFor(client, request.token_scope, deps.directory, 'body.token_scope')
    if (isRefusal(scope)) return scope
    const contract = contractFor(request, scope, deps)
    if (isRefusal(contract)) return contract
    const { encrypted_card: encryptedCard, public_key_alias: alias } = request
    const card = await openCapture({ encryptedCard, alias, client, acceptedAt, names: claims, job, isBackground }, deps)
    if (isRefusal(card)) return card
    const options = { scope, cardBrand: request.card_brand, withAnalytics: true, field: CARD, place: contract?.place }
    const facts = factsOf(card, options, deps)
    if (isRefusal(facts)) return facts
    const telling = onFileRefusal(request.on_file, facts)
    if (telling) return telling
    const given = { ...givenOf(card), ...fieldsOf(request), tokenType: request.token_type ?? 'REUSE' }
    return { scope, pan: card.pan, facts, given: withContractExpiry(contract, given), contract }
  },

  async reach(work, prepared, deps) {
    const { contract, facts, pan } = prepared
    if (!contract) return prepared
    // A third party isn't called for a job that the rules refuse.
    const judged = await judge(work, prepared, deps)
    if (isRefusal(judged)) return judged
    if (judged.stored) return prepared
    const job = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt: false }
    const asked = { line: 0, field: CARD, contract, facts, pan, row: judged.verdict.row }
    const end = (await deps.networks.thirdParties.make(job, [asked], 'interactive', deps)).get(0)
    if (isRefusal(end)) return { ...prepared, denied: end }
    return { ...prepared, provisioned: end === 'known' ? undefined : end }
  },

  decide,
}

const CARD = 'body.encrypted_card'

/** The stored token of the card, and the rules' decision on the request. */
async function judge(work: Work<TokenCreate>, prepared: Prepared, deps: Deps) {
  const { scope, facts, given, contract, provisioned } = prepared
  const [stored, refusal] = await Promise.all([
    findByCard(facts, deps),
    guessRefusal(guessOf(work.client.clientId, scope.tokenScope, facts), CARD, deps),
  ])
  if (refusal) return refusal
  const verdict = create(stored, given, facts, {
    now: work.now,
    tokenId: provisioned?.tokenId ?? tokenIdAt(timeOf(work.now), randomBytes(10).toString('hex')),
    tokenScope: scope.tokenScope,
    thirdParty: contract && provisioned && nameOf(contract, provisioned),
    receiptId: work.receiptId,
    giver: giverAt(work.acceptedAt),
  })
  return isRefusal(verdict) ? verdict : { stored, verdict }
}

async function decide(work: Work<TokenCreate>, prepared: Prepared, deps: Deps): Promise<EffectDecision> {
  const { scope, pan, facts, contract, provisioned, denied } = prepared
  const { receiptId } = work
  const { clientId } = work.client
  const judged = await judge(work, prepared, deps)
  if (isRefusal(judged)) return noEffect(judged)
  const { stored, verdict } = judged
  const guess = guessOf(clientId, scope.tokenScope, facts)
  // A client that learns which numbers are cards may be guessing, too.
  if (denied && !stored) return { answer: denied, effect: { misses: [{ ...guess, turn: facts.fingerprints.turn }] } }
  if (contract && !stored && !provisioned) throw new LostRace('the token of a third party was deleted meanwhile')
  const row = sealRow(verdict, stored, pan, deps.ring)
  const range = await deps.directory.binRange(row.binRange)
  const shown = stored && (await shownScheme(row.tokenId, scope, deps))
  const { thirdParties, schemeTokens } = deps.networks
  const first = stored ? undefined : schemeTokens.provision([{ token: row, pan, scope }], { receiptId, clientId }, deps)
  const claim = await decideClaim(work, row, scope, deps)
  const render = (scheme: ShownScheme | undefined) => ({ ...renderPut(row, range, scheme), ...claim.shown })
  const answer: Success = {
    code: 200,
    outcome: verdict.outcome,
    tokenId: row.tokenId,
    record: render(shown),
  }
  const takeUps = contract ? thirdParties.takeUp(receiptId, provisioned && !stored ? [provisioned] : []) : []
  const effect: Effect = stored
    ? effectOnStored(stored, row, verdict.changed || verdict.marked, work, deps)
    : { inserts: [row], misses: [{ ...guess, missesMax: deps.settings.guessesMax }] }
  const networks = [...takeUps, ...(first?.effects ?? [])]
  const decision: EffectDecision = { answer, effect: { ...effect, ...claim.effect, networks } }
  const calls = first?.calls
  if (!calls) return decision
  // The token is made, whatever happens to its scheme token. If the network is quick, the answer shows the scheme
  // token.
  return {
    ...decision,
    after: () => settleThenShow(calls, answer, { tokenId: row.tokenId, scope, render }, deps),
  }
}

/** The effect if the card had a token already. */
function effectOnStored(
  stored: StoredToken,
  row: StoredToken,
  isChanged: boolean,
  { receiptId }: Work<unknown>,
  { ring }: Pick<Deps, 'ring'>,
): Effect {
  if (isChanged) return { updates: [row], beforeImages: [beforeImageOf(stored, receiptId, ring)] }
  if (isRenewed(row)) return { updates: [{ ...row, version: stored.version + 1 }] }
  return { touches: [{ tokenId: row.tokenId, receiptId, version: stored.version }] }
}

/** The fields that a create gives beside the card. */
export function fieldsOf(request: Pick<TokenCreate, 'card_brand' | 'token_type' | 'token_expiry_date'>): Given {
  const given: Given = {}
  if (request.card_brand !== undefined) given.cardBrand = request.card_brand
  if (request.token_type !== undefined) given.tokenType = request.token_type
  if (request.token_expiry_date !== undefined) given.tokenExpiryDate = request.token_expiry_date
  return given
}

/** The fields that the card itself gives. */
export function givenOf(card: Omit<Parameters<typeof factsOf>[0], 'pan'>): Given {
  const { expiryMonth, expiryYear, cardHolderName, cardSequence, startMonth, startYear } = card
  const given: Given = {}
  if (expiryMonth !== undefined) given.expiryMonth = expiryMonth
  if (expiryYear !== undefined) given.expiryYear = expiryYear
  if (cardHolderName !== undefined) given.cardHolderName = cardHolderName
  if (cardSequence !== undefined) given.cardSequence = cardSequence
  if (startMonth !== undefined) given.startMonth = startMonth
  if (startYear !== undefined) given.startYear = startYear
  return given
}
