// `token-update`: a partial update of one card on file, or, with `encrypted_card`, its link to a new PAN.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenUpdate } from '../src/job/token-update.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import { type Db, LostRace } from '../src/store/pool.ts'
import * as guesses from '../src/store/token/guesses.ts'
import type { StoredToken } from '../src/store/token/tokens.ts'
import * as tokens from '../src/store/token/tokens.ts'
import type { CardInput } from '../src/token/card.ts'
import { type CardFacts, type Given, update } from '../src/token/decide.ts'
import { renderPatch } from '../src/token/render.ts'
import { isSupported, type ShownScheme } from '../src/token/scheme.ts'
import { keepBefore } from './card/before-image.ts'
import { factsOf } from './card/card-facts.ts'
import { tokenFor } from './card/find-token.ts'
import { openCapture } from './card/open-capture.ts'
import { sealRow } from './card/seal-row.ts'
import type { Deps } from './deps.ts'
import { decideInSequence } from './line/in-sequence.ts'
import { type Decision, type Handler, noEffect, type Success, settledBy, type Work } from './line/work.ts'
import type { Acted } from './provider/begin.ts'
import { replace, retire, workThenShow } from './provider/follow.ts'
import { owing } from './provider/compensation.ts'
import { shownScheme } from './provider/shown.ts'
import { actFor, deletionOf, FIELD, staleRefusal, supportRefusal } from './provider/wish.ts'
import { givenOf } from './token-create.ts'

interface Prepared {
  card: CardInput | undefined
  given: Given
  /** What became of `scheme_token_action`. */
  acted?: Acted
}

export const tokenUpdate: Handler<TokenUpdate, undefined, Prepared> = {
  async prepare({ request, claims, client, acceptedAt }, _opened, deps) {
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

  async reach(work, prepared, deps) {
    const { scheme_token_action: action, id } = work.request
    if (action === undefined) return prepared
    const stored = await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(stored)) return stored
    const scope = await deps.directory.scope(stored.tokenScope)
    if (!scope) return refuse('token_not_found', 'body.id')
    // Nothing is done outside for a job that would be refused inside.
    const refusal = supportRefusal(scope) ?? (await staleRefusal(work, stored.tokenId, deps))
    if (refusal) return refusal
    const judged = judge(work, stored, scope, prepared, deps)
    if (isRefusal(judged)) return judged
    if (judged.relink) {
      // The old card's goes; of the new card's there is none yet.
      return action === 'SUSPEND' ? refuse('scheme_token_absent', FIELD) : prepared
    }
    const acted =
      action === 'DELETE' ? await deletionOf(stored.tokenId, deps) : await actFor(work, stored, scope, action, deps)
    return isRefusal(acted) ? acted : { ...prepared, acted }
  },

  async decide(work, prepared, deps) {
    return owing(await decide(work, prepared, deps), work, deps)
  },
}

async function decide(work: Work<TokenUpdate>, prepared: Prepared, deps: Deps): Promise<Decision> {
  const stored = await tokenFor(work.client, work.request.id, deps, 'body.id')
  if (isRefusal(stored)) return noEffect(stored)
  const scope = await deps.directory.scope(stored.tokenScope)
  if (!scope) return noEffect(refuse('token_not_found', 'body.id'))
  return decideInSequence(work, stored.tokenId, deps, () => decideUpdate(work, stored, scope, prepared, deps))
}

/** What the rules say, before anything is asked about other cards: an answer about those is always counted. */
function judge(work: Work<TokenUpdate>, stored: StoredToken, scope: Scope, { card, given }: Prepared, deps: Deps) {
  const facts = card && factsOf(card, scope, undefined, true, deps, 'body.encrypted_card')
  if (isRefusal(facts)) return facts
  const at = { now: work.now, receiptId: work.receiptId }
  const verdict = update(stored, { ...given, ...(facts ? { card: facts } : {}) }, at)
  if (isRefusal(verdict)) return verdict
  return { facts, verdict, relink: facts !== undefined && !(stored.fingerprint?.equals(facts.fingerprint) ?? false) }
}

async function decideUpdate(
  work: Work<TokenUpdate>,
  stored: StoredToken,
  scope: Scope,
  prepared: Prepared,
  deps: Deps,
): Promise<Decision> {
  const judged = judge(work, stored, scope, prepared, deps)
  if (isRefusal(judged)) return noEffect(judged)
  const { facts, verdict, relink } = judged
  const stopped =
    facts && ((await guessRefusal(work, scope, facts, deps)) ?? (relink && (await takenRefusal(facts, deps))))
  if (stopped) return noEffect(stopped)
  const row = sealRow(verdict, stored, prepared.card?.pan, deps.ring)
  const range = await deps.directory.binRange(row.binRange)
  const render = (shown: ShownScheme | undefined) => renderPatch(row, range, shown)
  const shown = await shownScheme(row.tokenId, scope, deps)
  const settled: Success = { code: 200, outcome: verdict.outcome, tokenId: row.tokenId, record: render(shown) }
  const scheme = followOf(work, row, scope, relink, prepared.acted, shown, deps)
  const decision = settledBy(settled, async db => {
    const written = verdict.changed
      ? [tokens.updateAll(db, [row]), keepBefore(db, stored, work.receiptId, deps.ring)]
      : [tokens.touch(db, row.tokenId, work.receiptId, stored.version)]
    const digits = facts && relink ? [`${facts.bin}${facts.lastFour}`] : []
    const missed = digits.length > 0 ? guesses.add(db, work.client.clientId, scope.tokenScope, digits) : 0
    const [misses] = await Promise.all([missed, ...written])
    if (misses > deps.settings.guessesMax) throw new LostRace('others guessed meanwhile')
    // In this order: a job that asks a network for this token holds its row while it records that.
    await scheme?.save(db)
  })
  if (!scheme) return decision
  return { ...decision, after: () => workThenShow(scheme.provisions(), settled, row.tokenId, scope, render, deps) }
}

/** What follows for the scheme token: it goes, or another card's takes its place. */
function followOf(
  work: Work<TokenUpdate>,
  row: StoredToken,
  scope: Scope,
  relink: boolean,
  acted: Acted | undefined,
  shown: ShownScheme | undefined,
  deps: Deps,
) {
  const { scheme_token_action: action } = work.request
  const doer = { receiptId: work.receiptId, clientId: work.client.clientId }
  const wish = action === 'SUSPEND' ? undefined : action
  let provisions: string[] = []
  if (relink && (isSupported(scope) || shown)) {
    const save = async (db: Db) => {
      provisions = await replace(db, row, scope, wish, doer, deps)
    }
    return { save, provisions: () => provisions }
  }
  if (action !== 'DELETE' || acted !== 'changed') return undefined
  provisions = shown ? [shown.row.provisionId] : []
  return { save: (db: Db) => retire(db, [row.tokenId], deps), provisions: () => provisions }
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
