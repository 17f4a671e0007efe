// `reference`: takes one owner's claim on a token away.
import { isRefusal } from '../src/errors.ts'
import { ownerOf } from '../src/job/on-file.ts'
import type { Reference } from '../src/job/reference.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { shownReuseToken } from '../src/token/render.ts'
import type { TokenRow } from '../src/token/token.ts'
import { scopeFor } from './card/card-facts.ts'
import { releaseAll } from './reference/release.ts'
import { type Handler, noEffect, type Retells } from './work.ts'

export const reference: Handler<Reference> & Retells = {
  async decide({ client, receiptId, now }, request, deps) {
    const scope = await scopeFor(client, request.token_scope, deps.directory, 'body.token_scope')
    if (isRefusal(scope)) return noEffect(scope)
    const asked = { owner: ownerOf(request, scope.tokenScope), onOrphan: request.on_orphan ?? 'keep' }
    return {
      save: async db => {
        const [end] = await releaseAll(db, [asked], { now, receiptId }, deps)
        if (!end) throw new Error('broken law: each release that is asked for has an end')
        if (isRefusal(end)) return end
        const { outcome, token } = end
        return { code: 200, outcome, tokenId: token?.tokenId ?? null, record: recordOf(outcome, token) }
      },
    }
  },

  async retell({ outcome, tokenId }, { store }) {
    const [token] = tokenId === null ? [] : await tokens.findByIds(store, [tokenId])
    return recordOf(outcome, token)
  },
}

function recordOf(
  outcome: string | null,
  token: Pick<TokenRow, 'tokenId' | 'thirdParty' | 'tokenType' | 'status'> | undefined,
) {
  if (!token) return { outcome }
  const reuseToken = shownReuseToken(token)
  return { outcome, ...(reuseToken ? { reuse_token: reuseToken } : {}), token_status: token.status }
}
