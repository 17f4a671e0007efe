// What a single job asks of a token's scheme token, checked against all that is known before a network is spoken to.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { isSupported, type SchemeAction, stepOf } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import type { Work } from '../line/work.ts'
import type { Acted } from './record-intents.ts'
import { actAll } from './run-actions.ts'

/** What is named where a scope knows no scheme tokens, or a token has none. */
export const FIELD = 'body.scheme_token_action'

export function supportRefusal(scope: Scope): Refusal | undefined {
  return isSupported(scope) ? undefined : refuse('scheme_not_supported', FIELD)
}

/** A job that comes too late isn't to do anything outside. */
export async function staleRefusal(
  { claims, client }: Work<unknown>,
  tokenId: string,
  { store }: Pick<Deps, 'store'>,
): Promise<Refusal | undefined> {
  if (claims.sequence === undefined) return undefined
  const last = await sequences.find(store, client.clientId, tokenId)
  return last !== undefined && claims.sequence <= last ? refuse('sequence_stale', 'body.sequence') : undefined
}

/** Activates or suspends at the network; see `actAll` for what is thrown. */
export async function actFor(
  work: Work<unknown>,
  token: StoredToken,
  scope: Scope,
  action: 'ACTIVATE' | 'SUSPEND',
  deps: Deps,
): Promise<Acted> {
  const wisher = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt: false }
  const acted = await actAll(wisher, [{ line: 0, token, scope, action, field: FIELD }], 'interactive', deps)
  return acted.get(0) ?? 'same'
}

/** Whether there is something to delete; a deletion is recorded with the job's receipt and asked for after it. */
export async function deletionOf(tokenId: string, { store }: Pick<Deps, 'store'>): Promise<Acted> {
  const [row] = await storedSchemes.findCurrent(store, [tokenId])
  const step = stepOf(row, 'DELETE' satisfies SchemeAction)
  if (step === 'absent') return refuse('scheme_token_absent', FIELD)
  return step === 'retire' ? 'changed' : 'same'
}
