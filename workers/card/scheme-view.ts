// The scheme token that a token's record shows, and which scopes support scheme tokens. It asks no network.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { isSupported, type ShownScheme } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import { SCHEME_FIELD } from '../networks.ts'
import type { Success } from '../work.ts'

export function supportRefusal(scope: Scope): Refusal | undefined {
  return isSupported(scope) ? undefined : refuse('scheme_not_supported', SCHEME_FIELD)
}

/** Undefined if the token has none. If the scope doesn't support scheme tokens, the store isn't read. */
export async function shownScheme(
  tokenId: string,
  scope: Scope | undefined,
  { lookUps }: Pick<Deps, 'lookUps'>,
): Promise<ShownScheme | undefined> {
  if (!scope || !isSupported(scope)) return undefined
  const row = await lookUps.shownScheme(tokenId)
  return row && { row, support: scope }
}

export interface View {
  tokenId: string
  scope: Scope
  render: (shown: ShownScheme | undefined) => Record<string, unknown>
}

/** Makes the calls that a change brings, then returns the answer with the scheme token as it is then. */
export async function settleThenShow<S extends Success>(
  calls: readonly string[],
  answer: S,
  { tokenId, scope, render }: View,
  deps: Deps,
): Promise<S> {
  await deps.networks.schemeTokens.settle(calls, deps)
  const record = await shownScheme(tokenId, scope, deps).then(render, () => answer.record)
  return { ...answer, record }
}
