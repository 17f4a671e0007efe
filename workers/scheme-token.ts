// `scheme-token`: provisions, resumes, suspends or deletes the scheme token of one token.
import { isRefusal, refuse } from '../src/errors.ts'
import type { SchemeToken } from '../src/job/scheme-token.ts'
import { renderPatch } from '../src/token/render.ts'
import type { ShownScheme } from '../src/token/scheme.ts'
import { tokenFor } from './card/find-token.ts'
import { settleThenShow, shownScheme, supportRefusal } from './card/scheme-view.ts'
import { decideInSequence, staleRefusal } from './line/in-sequence.ts'
import type { SchemeResult } from './networks.ts'
import { type Handler, noEffect, type Success } from './work.ts'

interface Prepared extends SchemeToken {
  acted?: SchemeResult
}

export const schemeToken: Handler<SchemeToken, undefined, Prepared> = {
  async reach(work, asked, deps) {
    const { id, action } = asked
    const token = await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(token)) return token
    const scope = await deps.directory.scope(token.tokenScope)
    if (!scope) return refuse('token_not_found', 'body.id')
    const refusal = supportRefusal(scope) ?? (await staleRefusal(work, token.tokenId, deps))
    if (refusal) return refusal
    const job = { receiptId: work.receiptId, clientId: work.client.clientId }
    const acted = await deps.networks.schemeTokens.act(job, { token, scope, action }, deps)
    return isRefusal(acted) ? acted : { ...asked, acted }
  },

  async decide(work, { acted = 'same' }, deps) {
    const { id, action } = work.request
    const token = await tokenFor(work.client, id, deps, 'body.id')
    if (isRefusal(token)) return noEffect(token)
    const scope = await deps.directory.scope(token.tokenScope)
    if (!scope) return noEffect(refuse('token_not_found', 'body.id'))
    const { tokenId, version } = token
    const range = await deps.directory.binRange(token.binRange)
    const render = (shown: ShownScheme | undefined) => renderPatch(token, range, shown)
    return decideInSequence(work, tokenId, deps, async () => {
      const isDeletion = action === 'DELETE' && acted === 'changed'
      const outcome = isDeletion ? 'DELETED' : acted === 'changed' ? 'UPDATED' : 'UNCHANGED'
      const shown = await shownScheme(tokenId, scope, deps)
      const answer: Success = { code: 200, outcome, tokenId, record: render(shown) }
      const touches = [{ tokenId, receiptId: work.receiptId, version }]
      if (!isDeletion) return { answer, effect: { touches } }
      const { effects, calls = [] } = deps.networks.schemeTokens.retire(tokenId, shown)
      return {
        answer,
        effect: { touches, networks: effects },
        // The token no longer shows the scheme token; the network is called now, or as soon as possible.
        after: () => settleThenShow(calls, answer, { tokenId, scope, render }, deps),
      }
    })
  },
}
