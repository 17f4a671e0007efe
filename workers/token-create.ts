// `token-create`: a card and a scope become a token, or bring the token that already stands for them up to date.
import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { requestText } from '../src/job/digest.ts'
import type { TokenCreate } from '../src/job/token-create.ts'
import type { Secret } from '../src/secret.ts'
import type { Client } from '../src/store/clients.ts'
import * as guesses from '../src/store/guesses.ts'
import { LostRace } from '../src/store/pool.ts'
import * as schemeTokens from '../src/store/scheme-tokens.ts'
import type { Scope } from '../src/store/scopes.ts'
import * as tokens from '../src/store/tokens.ts'
import { type CardFacts, create, type Given } from '../src/token/decide.ts'
import { renderPut } from '../src/token/render.ts'
import { keepBefore } from './before-image.ts'
import { factsOf, scopeFor } from './card-facts.ts'
import type { Deps } from './deps.ts'
import { openCapture } from './open-capture.ts'
import { firstSchemes, workThenShow } from './scheme/follow.ts'
import { shownScheme } from './scheme/shown.ts'
import { sealRow, timeOf, tokenIdAt } from './seal-row.ts'
import { type Handler, noEffect, settledBy } from './work.ts'

interface Prepared {
  scope: Scope
  pan: Secret
  facts: CardFacts
  given: Given
}

export const tokenCreate: Handler<TokenCreate, undefined, Prepared> = {
  open: async () => undefined,
  digestText: work => requestText('token-create', work.claims.request),

  async prepare({ request, claims, client, acceptedAt }, _opened, deps) {
    const refusal = internalOnly(request, client, deps, 'body')
    if (refusal) return refusal
    const scope = await scopeFor(client, request.token_scope, deps.directory, 'body.token_scope')
    if (isRefusal(scope)) return scope
    const card = await openCapture(request.encrypted_card, request.public_key_alias, client, acceptedAt, claims, deps)
    if (isRefusal(card)) return card
    const type = request.token_type ?? 'REUSE'
    const facts = factsOf(card, scope, request.card_brand, true, deps, 'body.encrypted_card')
    if (isRefusal(facts)) return facts
    return { scope, pan: card.pan, facts, given: { ...givenOf(card), ...fieldsOf(request), tokenType: type } }
  },

  async decide(work, { scope, pan, facts, given }, deps) {
    const { clientId } = work.client
    const digits = [`${facts.bin}${facts.lastFour}`]
    const [[stored], spent] = await Promise.all([
      tokens.findByFingerprints(deps.store, [facts.fingerprint]),
      guesses.findAbove(deps.store, clientId, scope.tokenScope, digits, deps.settings.guessesMax),
    ])
    // A known card is stopped like others, or it would be told apart from them.
    if (spent.size > 0) {
      deps.metrics.guesses.inc({ mode: 'interactive' })
      return noEffect(refuse('guesses', 'body.encrypted_card'))
    }
    const verdict = create(stored, given, facts, {
      now: work.now,
      tokenId: tokenIdAt(timeOf(work.now), randomBytes(10).toString('hex')),
      tokenScope: scope.tokenScope,
      receiptId: work.receiptId,
    })
    if (isRefusal(verdict)) return noEffect(verdict)
    const row = sealRow(verdict, stored, pan, deps.ring)
    const range = await deps.directory.binRange(row.binRange)
    const shown = stored && (await shownScheme(row.tokenId, scope, deps))
    const doer = { receiptId: work.receiptId, clientId }
    const schemes = stored ? [] : firstSchemes([{ token: row, pan, scope }], doer, deps)
    const record = renderPut(row, range, shown)
    const settled = { code: 200, outcome: verdict.outcome, tokenId: row.tokenId, record } as const
    const decision = settledBy(settled, async db => {
      if (!stored) {
        const [, misses] = await Promise.all([
          tokens.insertAll(db, [row]),
          guesses.add(db, clientId, scope.tokenScope, digits),
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
  },
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

/** INTERFACE 2.1 and 2.3 on whose token this is to be. Third parties' are not worked by this release. */
export function internalOnly(
  request: Pick<TokenCreate, 'reuse_token_type' | 'reuse_token_details' | 'token_context'>,
  client: Client,
  { settings }: Pick<Deps, 'settings'>,
  prefix: string,
): Refusal | undefined {
  const type = request.reuse_token_type ?? 'INTERNAL'
  const context = request.token_context
  if (type !== 'INTERNAL') {
    if (!settings.thirdPartyTypes.includes(type)) return refuse('field_value', `${prefix}.reuse_token_type`)
    if (!request.reuse_token_details) return refuse('field_required', `${prefix}.reuse_token_details`)
    if (!context?.entity_id && !context?.payment_provider_contract)
      return refuse('third_party_context', `${prefix}.token_context`)
    return refuse('third_party_unavailable', `${prefix}.reuse_token_type`)
  }
  if (context?.entity_id !== undefined && !client.entities.includes(context.entity_id)) {
    return refuse('entity_forbidden', `${prefix}.token_context.entity_id`)
  }
  return undefined
}
