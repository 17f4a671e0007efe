// `token-lifecycle`: suspends, activates or deletes one token; for the scheduler, suspends a token whose expiry date
// has passed.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenExpiry, TokenLifecycle } from '../src/job/token-lifecycle.ts'
import type * as tokens from '../src/store/token/tokens.ts'
import { lifecycle } from '../src/token/decide.ts'
import { giverAt } from '../src/token/newest.ts'
import { renderLifecycle } from '../src/token/render.ts'
import { parseReuseToken } from '../src/token/token.ts'
import { beforeImageOf } from './card/before-image.ts'
import { tokenFor } from './card/find-token.ts'
import type { Deps } from './deps.ts'
import type { Effect } from './effect/effect.ts'
import { decideInSequence } from './line/in-sequence.ts'
import { type Handler, noEffect } from './work.ts'

type LifecycleRequest = TokenLifecycle | TokenExpiry

export const tokenLifecycle: Handler<LifecycleRequest> = {
  async decide(work, { id, action }, deps) {
    // The scheduler expires tokens of all entities; any other request must come from a client of the token's entity.
    const stored = action === 'EXPIRE' ? await anyToken(id, deps) : await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(stored)) return noEffect(stored)
    return decideInSequence(work, stored.tokenId, deps, async () => {
      const at = { now: work.now, receiptId: work.receiptId, giver: giverAt(work.acceptedAt) }
      const verdict = lifecycle(stored, action, at, 'body.id')
      if (isRefusal(verdict)) return noEffect(verdict)
      const row = { ...stored, ...verdict.row, sealVersion: verdict.row.sealed === null ? null : stored.sealVersion }
      const answer = { code: 204, outcome: row.status, tokenId: row.tokenId, record: renderLifecycle(row) } as const
      const { receiptId } = work
      if (!verdict.changed && !verdict.marked)
        return { answer, effect: { touches: [{ tokenId: row.tokenId, receiptId, version: stored.version }] } }
      return { answer, effect: { updates: [row], ...besides(stored, row, action, receiptId, deps) } }
    })
  },
}

/** What is written besides the token's row. */
function besides(
  before: tokens.StoredToken,
  { tokenId, status }: tokens.StoredToken,
  action: LifecycleRequest['action'],
  receiptId: string,
  { ring }: Pick<Deps, 'ring'>,
): Effect {
  // A deleted card is erased everywhere and never restored.
  if (status === 'DELETED') return { erasedImages: [tokenId] }
  // An expiry is never reversed, so no copy of the row is kept.
  return action === 'EXPIRE' ? {} : { beforeImages: [beforeImageOf(before, receiptId, ring)] }
}

async function anyToken(id: string, { lookUps }: Pick<Deps, 'lookUps'>): Promise<tokens.StoredToken | Refusal> {
  const tokenId = parseReuseToken(id)
  const row = tokenId === undefined ? undefined : await lookUps.token(tokenId)
  return row ?? refuse('token_not_found', 'body.id')
}
