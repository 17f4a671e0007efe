// `token-create`: a card and a scope become a token, or bring the token that already stands for them up to date.
import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenCreate } from '../src/job/token-create.ts'
import type { Secret } from '../src/secret.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import { LostRace } from '../src/store/pool.ts'
import * as schemeTokens from '../src/store/provider/scheme-tokens.ts'
import * as guesses from '../src/store/token/guesses.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { type CardFacts, create, type Given } from '../src/token/decide.ts'
import { renderPut } from '../src/token/render.ts'
import { keepBefore } from './card/before-image.ts'
import { factsOf, scopeFor } from './card/card-facts.ts'
import { openCapture } from './card/open-capture.ts'
import { sealRow, timeOf, tokenIdAt } from './card/seal-row.ts'
import {
  type Contract,
  contextRefusal,
  contractFor,
  givenUnder,
  nameOf,
  takeUpAll,
  wishOf,
} from './card/third-party.ts'
import type { Deps } from './deps.ts'
import { type Decision, type Handler, noEffect, settledBy, type Work } from './line/work.ts'
import type { Provisioned } from './provider/begin-third-party.ts'
import { firstSchemes, workThenShow } from './provider/follow.ts'
import { owing } from './provider/compensation.ts'
import { shownScheme } from './provider/shown.ts'
import { provisionAll } from './provider/third-party.ts'

interface Prepared {
  scope: Scope
  pan: Secret
  facts: CardFacts
  given: Given
  /** Under which a third party makes the token. */
  contract: Contract | undefined
  /** What it made. */
  provisioned?: Provisioned | undefined
  /** Why it made nothing. */
  denied?: Refusal
}

export const tokenCreate: Handler<TokenCreate, undefined, Prepared> = {
  async prepare({ request, claims, client, acceptedAt }, _opened, deps) {
    const refusal = contextRefusal(request, client, deps)
    if (refusal) return refusal
    const scope = await scopeFor(client, request.token_scope, deps.directory, 'body.token_scope')
    if (isRefusal(scope)) return scope
    const contract = contractFor(request, scope, deps)
    if (isRefusal(contract)) return contract
    const card = await openCapture(request.encrypted_card, request.public_key_alias, client, acceptedAt, claims, deps)
    if (isRefusal(card)) return card
    const facts = factsOf(card, scope, request.card_brand, true, deps, CARD, contract?.place)
    if (isRefusal(facts)) return facts
    const given = { ...givenOf(card), ...fieldsOf(request), tokenType: request.token_type ?? 'REUSE' }
    return { scope, pan: card.pan, facts, given: givenUnder(contract, given), contract }
  },

  async reach(work, prepared, deps) {
    const { contract, facts, pan } = prepared
    if (!contract) return prepared
    // Nothing is done outside for a job that would be refused inside.
    const judged = await judge(work, prepared, deps)
    if (isRefusal(judged)) return judged
    if (judged.stored) return prepared
    const wisher = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt: false }
    const wish = wishOf(contract, { line: 0, field: CARD }, facts, pan, judged.verdict.row)
    const end = (await provisionAll(wisher, [wish], 'interactive', deps)).get(0)
    if (isRefusal(end)) return { ...prepared, denied: end }
    return { ...prepared, provisioned: end === 'known' ? undefined : end }
  },

  async decide(work, prepared, deps) {
    return owing(await decide(work, prepared, deps), work, deps)
  },
}

const CARD = 'body.encrypted_card'

/** What is known of the card, and what the rules say of it. */
async function judge(work: Work<TokenCreate>, prepared: Prepared, deps: Deps) {
  const { scope, facts, given, contract, provisioned } = prepared
  const [[stored], spent] = await Promise.all([
    tokens.findByFingerprints(deps.store, [facts.fingerprint]),
    guesses.findAbove(deps.store, work.client.clientId, scope.tokenScope, digitsOf(facts), deps.settings.guessesMax),
  ])
  // A known card is stopped like others, or it would be told apart from them.
  if (spent.size > 0) {
    deps.metrics.guesses.inc({ mode: 'interactive' })
    return refuse('guesses', CARD)
  }
  const verdict = create(stored, given, facts, {
    now: work.now,
    tokenId: provisioned?.tokenId ?? tokenIdAt(timeOf(work.now), randomBytes(10).toString('hex')),
    tokenScope: scope.tokenScope,
    thirdParty: contract && provisioned && nameOf(contract, provisioned),
    receiptId: work.receiptId,
  })
  return isRefusal(verdict) ? verdict : { stored, verdict }
}

const digitsOf = ({ bin, lastFour }: CardFacts) => [`${bin}${lastFour}`]

async function decide(work: Work<TokenCreate>, prepared: Prepared, deps: Deps): Promise<Decision> {
  const { scope, pan, facts, contract, provisioned, denied } = prepared
  const { clientId } = work.client
  const judged = await judge(work, prepared, deps)
  if (isRefusal(judged)) return noEffect(judged)
  const { stored, verdict } = judged
  // Whoever is told which numbers are cards is guessing, too.
  if (denied && !stored) return settledBy(denied, db => guesses.add(db, clientId, scope.tokenScope, digitsOf(facts)))
  if (contract && !stored && !provisioned) throw new LostRace('the token of a third party was deleted meanwhile')
  const row = sealRow(verdict, stored, pan, deps.ring)
  const range = await deps.directory.binRange(row.binRange)
  const shown = stored && (await shownScheme(row.tokenId, scope, deps))
  const doer = { receiptId: work.receiptId, clientId }
  const schemes = stored ? [] : firstSchemes([{ token: row, pan, scope }], doer, deps)
  const record = renderPut(row, range, shown)
  const settled = { code: 200, outcome: verdict.outcome, tokenId: row.tokenId, record } as const
  const decision = settledBy(settled, async db => {
    if (contract) await takeUpAll(db, work.receiptId, provisioned && !stored ? [provisioned] : [], deps)
    if (!stored) {
      const [, misses] = await Promise.all([
        tokens.insertAll(db, [row]),
        guesses.add(db, clientId, scope.tokenScope, digitsOf(facts)),
        schemeTokens.insertAll(db, schemes),
      ])
      if (misses > deps.settings.guessesMax) throw new LostRace('others guessed meanwhile')
    } else if (verdict.changed) {
      await Promise.all([tokens.updateAll(db, [row]), keepBefore(db, stored, work.receiptId, deps.ring)])
    } else await tokens.touch(db, row.tokenId, work.receiptId, stored.version)
  })
  if (schemes.length === 0) return decision
  // The token stands, whatever becomes of its scheme token; what is quick is part of the answer.
  const provisions = schemes.map(({ provisionId }) => provisionId)
  return {
    ...decision,
    after: () => workThenShow(provisions, settled, row.tokenId, scope, shown => renderPut(row, range, shown), deps),
  }
}

/** What a create gives beside the card. */
export function fieldsOf(request: Pick<TokenCreate, 'card_brand' | 'token_type' | 'token_expiry_date'>): Given {
  const given: Given = {}
  if (request.card_brand !== undefined) given.cardBrand = request.card_brand
  if (request.token_type !== undefined) given.tokenType = request.token_type
  if (request.token_expiry_date !== undefined) given.tokenExpiryDate = request.token_expiry_date
  return given
}

/** What the card itself gives. */
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
