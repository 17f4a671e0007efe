// `token-lifecycle`: suspend, activate or delete one token; for the scheduler, suspend one whose expiry date has passed.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { TokenExpiry, TokenLifecycle } from '../src/job/token-lifecycle.ts'
import type { Db } from '../src/store/pool.ts'
import * as beforeImages from '../src/store/token/before-images.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { lifecycle } from '../src/token/decide.ts'
import { renderLifecycle } from '../src/token/render.ts'
import { parseReuseToken, type TokenStatus } from '../src/token/token.ts'
import { keepBefore } from './card/before-image.ts'
import { tokenFor } from './card/find-token.ts'
import type { Deps } from './deps.ts'
import { decideInSequence } from './line/in-sequence.ts'
import { type Handler, noEffect, settledBy } from './line/work.ts'
import { retire } from './provider/token-effects.ts'

type Asked = TokenLifecycle | TokenExpiry

export const tokenLifecycle: Handler<Asked> = {
  async decide(work, { id, action }, deps) {
    // Dates are looked after for everybody's tokens; all else is asked by a client of the token's entity.
    const stored = action === 'EXPIRE' ? await anyToken(id, deps) : await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(stored)) return noEffect(stored)
    const keepOrErase = (db: Db, to: TokenStatus) => {
      // A deleted card goes from everywhere, and is never put back; nor does anybody reverse a date.
      if (to === 'DELETED') return beforeImages.eraseOf(db, [stored.tokenId])
      return action === 'EXPIRE' ? undefined : keepBefore(db, stored, work.receiptId, deps.ring)
    }
    return decideInSequence(work, stored.tokenId, deps, async () => {
      const verdict = lifecycle(stored, action, { now: work.now, receiptId: work.receiptId }, 'body.id')
      if (isRefusal(verdict)) return noEffect(verdict)
      const row = { ...stored, ...verdict.row, sealVersion: verdict.row.sealed === null ? null : stored.sealVersion }
      const record = renderLifecycle(row)
      return settledBy({ code: 204, outcome: row.status, tokenId: row.tokenId, record }, async db => {
        if (!verdict.changed) return tokens.touch(db, row.tokenId, work.receiptId, stored.version)
        await Promise.all([tokens.updateAll(db, [row]), keepOrErase(db, row.status)])
        // In this order: a job that asks a network for this token holds its row while it records that.
        if (row.status === 'DELETED') await retire(db, [row.tokenId], deps)
      })
    })
  },
}

async function anyToken(id: string, { store }: Pick<Deps, 'store'>): Promise<tokens.StoredToken | Refusal> {
  const tokenId = parseReuseToken(id)
  const [row] = tokenId === undefined ? [] : await tokens.findByIds(store, [tokenId])
  return row ?? refuse('token_not_found', 'body.id')
}
