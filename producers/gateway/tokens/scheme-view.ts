// The scheme token of a token as HTTP shows it: with its full number if the merchant is the token requestor and this
// process has the key for that number. On results queues the number is masked.
import { Fault } from '../../../src/errors.ts'
import { findThirdPartyTokens } from '../../../src/store/provider/scheme-tokens.ts'
import * as shownSchemes from '../../../src/store/provider/scheme-views.ts'
import { isSupported, type SchemeRecord, type SchemeRow } from '../../../src/token/scheme.ts'
import { parseReuseToken } from '../../../src/token/token.ts'
import { withReload } from '../../../src/vault/ring/reload.ts'
import type { GatewayDeps, SchemeTokens } from '../deps.ts'

type ViewDeps = Pick<GatewayDeps, 'store' | 'ring' | 'log'>

export function openSchemeView(deps: ViewDeps): SchemeTokens {
  const find = async (tokenId: string) => (await shownSchemes.findByTokens(deps.store, [tokenId])).get(tokenId)
  return {
    async find(tokenId, scope) {
      const row = scope && isSupported(scope) ? await find(tokenId) : undefined
      if (!scope || !row) return undefined
      const number = scope.requestor === 'MERCHANT' ? await numberOf(row, deps) : undefined
      return { row, support: scope, number }
    },
    findThirdPartyTokens: value => findThirdPartyTokens(deps.store, [value]),
    async unmask(record, reuseToken) {
      const shown = record['scheme_token'] as SchemeRecord | undefined
      const tokenId = parseReuseToken(reuseToken)
      const lastFour = shown?.network_token?.slice(-4)
      if (lastFour === undefined || tokenId === undefined) return record
      try {
        const row = await find(tokenId)
        // The network may have replaced the number since; the new number doesn't belong in this answer.
        const number = row?.lastFour === lastFour ? await numberOf(row, deps) : undefined
        return number === undefined ? record : { ...record, scheme_token: { ...shown, network_token: number } }
      } catch (error) {
        // The write has taken effect, so its answer must not be lost because this read failed.
        deps.log.warn({ err: error }, 'a network token could not be read; it was answered masked')
        return record
      }
    },
  }
}

/**
 * The full number; undefined if there is none, or if this process doesn't have its key: then the number stays masked.
 */
async function numberOf(
  { lastFour, provisionId, tokenId }: SchemeRow,
  { store, ring }: ViewDeps,
): Promise<string | undefined> {
  if (lastFour === null) return undefined
  const found = await shownSchemes.findSealed(store, provisionId)
  if (!found) return undefined
  const { sealed, version } = found
  try {
    return await withReload(ring, async () => ring.openNetworkToken(sealed, version, { provisionId, tokenId }).reveal())
  } catch (error) {
    if (error instanceof Fault && error.code === 'key_unavailable') return undefined
    throw error
  }
}
