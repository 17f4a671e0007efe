// Decides the claim of a single job on a source reference, from the stored reference, and what is written for it.
// chunk/claims.ts does so for a chunk.
import { type Refusal, refuse } from '../../src/errors.ts'
import { claimOf, type OnFileRequest, someText } from '../../src/job/on-file.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { giverAt } from '../../src/token/newest.ts'
import { judgeClaim, ownerKey, toldAgain } from '../../src/token/on-file.ts'
import { holdsPanLookalike } from '../../src/token/pan.ts'
import { shownReuseToken } from '../../src/token/render.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from '../effect/effect.ts'
import type { Work } from '../work.ts'

/** What an answer shows of the job's source reference. */
export interface ShownClaim {
  reference_outcome?: string
  previous_token?: string
}

/**
 * The refusal of a text in `on_file`, or in what was made of it, that looks like this card: these texts are stored and
 * shown.
 */
export function onFileRefusal(
  onFile: object | undefined,
  { bin, lastFour }: Pick<StoredToken, 'bin' | 'lastFour'>,
): Refusal | undefined {
  if (!onFile || bin === null || lastFour === null) return undefined
  const isLike = someText(onFile, text => holdsPanLookalike(text, { bin, lastFour }))
  return isLike ? refuse('reference_pan', 'body.on_file') : undefined
}

/** Decides the claim. `token`: the token that the job makes or changes. */
export async function decideClaim(
  work: Work<{ on_file?: OnFileRequest | undefined }>,
  token: StoredToken,
  scope: Scope,
  deps: Pick<Deps, 'store'>,
): Promise<{ effect: Effect; shown: ShownClaim }> {
  const { request, receiptId, now } = work
  if (!request.on_file) return { effect: {}, shown: {} }
  const claim = claimOf(request.on_file, scope)
  const stored = (await references.findByOwners(deps.store, [claim.owner])).get(ownerKey(claim.owner))
  const judged = judgeClaim(stored, claim, {
    tokenId: token.tokenId,
    receiptId,
    now,
    mark: undefined,
    giver: giverAt(work.acceptedAt),
  })
  const rows = judged.row ? [{ ...judged.row, referenceNo: stored?.referenceNo }] : []
  return {
    effect: stored ? { changedReferences: rows } : { newReferences: rows },
    shown: await shownClaim(judged, deps),
  }
}

/** What the job with that receipt wrote to a source reference, as long as no other job has written it since. */
export async function shownReference(receiptId: string, deps: Pick<Deps, 'store'>): Promise<ShownClaim> {
  const [written] = await references.findByReceipt(deps.store, receiptId)
  const told = written && toldAgain(written)
  return told ? shownClaim(told, deps) : {}
}

async function shownClaim(
  { outcome, previousToken }: { outcome: string; previousToken: string | undefined },
  { store }: Pick<Deps, 'store'>,
): Promise<ShownClaim> {
  const [previous] = previousToken === undefined ? [] : await tokens.findByIds(store, [previousToken])
  const previousName = previous && shownReuseToken(previous)
  return { reference_outcome: outcome, ...(previousName ? { previous_token: previousName } : {}) }
}
