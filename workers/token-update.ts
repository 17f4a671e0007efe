// `token-update`: a partial update of one card on file, or, with `encrypted_card`, its link to a new PAN.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import { requestText } from '../src/job/digest.ts'
import type { TokenUpdate } from '../src/job/token-update.ts'
import * as guesses from '../src/store/guesses.ts'
import { LostRace } from '../src/store/pool.ts'
import type { Scope } from '../src/store/scopes.ts'
import type { StoredToken } from '../src/store/tokens.ts'
import * as tokens from '../src/store/tokens.ts'
import type { CardInput } from '../src/token/card.ts'
import { type CardFacts, type Given, update } from '../src/token/decide.ts'
import { renderPatch } from '../src/token/render.ts'
import { keepBefore } from './before-image.ts'
import { factsOf } from './card-facts.ts'
import type { Deps } from './deps.ts'
import { tokenFor } from './find-token.ts'
import { decideInSequence } from './in-sequence.ts'
import { openCapture } from './open-capture.ts'
import { sealRow } from './seal-row.ts'
import { givenOf } from './token-create.ts'
import { type Decision, type Handler, noEffect, settledBy, type Work } from './work.ts'

interface Prepared {
  card: CardInput | undefined
  given: Given
}

export const tokenUpdate: Handler<TokenUpdate, undefined, Prepared> = {
  open: async () => undefined,
  digestText: work => requestText('token-update', work.claims.request),

  async prepare({ request, claims, client, acceptedAt }, _opened, deps) {
    if (request.scheme_token_action !== undefined)
      return refuse('scheme_action_unavailable', 'body.scheme_token_action')
    if (request.encrypted_card === undefined) return { card: undefined, given: plainFieldsOf(request) }
    if (request.public_key_alias === undefined) return refuse('field_required', 'body.public_key_alias')
    // 404 comes before what is wrong with the card's content.
    const stored = await tokenFor(client, request.id, deps, 'body.id')
    if (isRefusal(stored)) return stored
    const card = await openCapture(request.encrypted_card, request.public_key_alias, client, acceptedAt, claims, deps)
    if (isRefusal(card)) return card
    // A plain field beside the card overrides the one inside.
    return { card, given: { ...givenOf(card), ...plainFieldsOf(request) } }
  },

  async decide(work, { card, given }, deps) {
    const stored = await tokenFor(work.client, work.request.id, deps, 'body.id')
    if (isRefusal(stored)) return noEffect(stored)
    const scope = await deps.directory.scope(stored.tokenScope)
    if (!scope) return noEffect(refuse('token_not_found', 'body.id'))
    return decideInSequence(work, stored.tokenId, deps, () => decideUpdate(work, stored, scope, card, given, deps))
  },
}

async function decideUpdate(
  work: Work<TokenUpdate>,
  stored: StoredToken,
  scope: Scope,
  card: CardInput | undefined,
  given: Given,
  deps: Deps,
): Promise<Decision> {
  const facts = card && factsOf(card, scope, undefined, true, deps, 'body.encrypted_card')
  if (isRefusal(facts)) return noEffect(facts)
  // What can be refused without asking about other cards is: an answer about those is always counted.
  const verdict = update(
    stored,
    { ...given, ...(facts ? { card: facts } : {}) },
    { now: work.now, receiptId: work.receiptId },
  )
  if (isRefusal(verdict)) return noEffect(verdict)
  const relink = facts !== undefined && !(stored.fingerprint?.equals(facts.fingerprint) ?? false)
  const stopped =
    facts && ((await guessRefusal(work, scope, facts, deps)) ?? (relink && (await takenRefusal(facts, deps))))
  if (stopped) return noEffect(stopped)
  const row = sealRow(verdict, stored, card?.pan, deps.ring)
  const record = renderPatch(row, await deps.directory.binRange(row.binRange))
  return settledBy({ code: 200, outcome: verdict.outcome, tokenId: row.tokenId, record }, async db => {
    const written = verdict.changed
      ? [tokens.updateAll(db, [row]), keepBefore(db, stored, work.receiptId, deps.ring)]
      : [tokens.touch(db, row.tokenId, work.receiptId, stored.version)]
    if (!relink) {
      await Promise.all(written)
      return
    }
    const digits = [`${facts.bin}${facts.lastFour}`]
    const missed = guesses.add(db, work.client.clientId, scope.tokenScope, digits)
    const [misses] = await Promise.all([missed, ...written])
    if (misses > deps.settings.guessesMax) throw new LostRace('others guessed meanwhile')
  })
}

/** Its own card a token is as little told from others, once they look like guesses. */
async function guessRefusal(
  work: Work<TokenUpdate>,
  scope: Scope,
  facts: CardFacts,
  deps: Deps,
): Promise<Refusal | undefined> {
  const digits = [`${facts.bin}${facts.lastFour}`]
  const above = await guesses.findAbove(
    deps.store,
    work.client.clientId,
    scope.tokenScope,
    digits,
    deps.settings.guessesMax,
  )
  if (above.size === 0) return undefined
  deps.metrics.guesses.inc({ mode: 'interactive' })
  return refuse('guesses', 'body.encrypted_card')
}

/** A new PAN that stands for another live token already. */
async function takenRefusal(facts: CardFacts, deps: Deps): Promise<Refusal | undefined> {
  const [other] = await tokens.findByFingerprints(deps.store, [facts.fingerprint])
  return other ? refuse('pan_taken', 'body.encrypted_card') : undefined
}

/** The fields of a PATCH that stand beside the card. */
export function plainFieldsOf(request: Omit<TokenUpdate, 'id'>): Given {
  const given: Given = {}
  if (request.card_holder_name !== undefined) given.cardHolderName = request.card_holder_name
  if (request.card_holder_email !== undefined) given.cardHolderEmail = request.card_holder_email
  if (request.expiry_month !== undefined) given.expiryMonth = request.expiry_month
  if (request.expiry_year !== undefined) given.expiryYear = request.expiry_year
  if (request.token_expiry_date !== undefined) given.tokenExpiryDate = request.token_expiry_date
  return given
}
