// `token-lifecycle`: suspend, activate or delete one token.
import { isRefusal } from '../src/errors.ts'
import { requestText } from '../src/job/digest.ts'
import type { TokenLifecycle } from '../src/job/token-lifecycle.ts'
import * as beforeImages from '../src/store/before-images.ts'
import * as tokens from '../src/store/tokens.ts'
import { lifecycle } from '../src/token/decide.ts'
import { formatReuseToken } from '../src/token/token.ts'
import { keepBefore } from './before-image.ts'
import { tokenFor } from './find-token.ts'
import { decideInSequence } from './in-sequence.ts'
import { type Handler, noEffect, settledBy } from './work.ts'

export const tokenLifecycle: Handler<TokenLifecycle, undefined, TokenLifecycle> = {
  open: async () => undefined,
  digestText: work => requestText('token-lifecycle', work.claims.request),
  prepare: async work => work.request,

  async decide(work, { id, action }, deps) {
    const stored = await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(stored)) return noEffect(stored)
    return decideInSequence(work, stored.tokenId, deps, async () => {
      const verdict = lifecycle(stored, action, { now: work.now, receiptId: work.receiptId }, 'body.id')
      if (isRefusal(verdict)) return noEffect(verdict)
      const row = { ...stored, ...verdict.row, sealVersion: verdict.row.sealed === null ? null : stored.sealVersion }
      const record = { id: formatReuseToken(row.tokenId), token_status: row.status }
      return settledBy({ code: 204, outcome: row.status, tokenId: row.tokenId, record }, async db => {
        if (!verdict.changed) return tokens.touch(db, row.tokenId, work.receiptId, stored.version)
        // A deleted card goes from everywhere, and is never put back.
        const image =
          row.status === 'DELETED'
            ? beforeImages.eraseOf(db, [row.tokenId])
            : keepBefore(db, stored, work.receiptId, deps.ring)
        await Promise.all([tokens.updateAll(db, [row]), image])
      })
    })
  },
}
