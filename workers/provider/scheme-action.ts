// The action that a single job requests for a token's scheme token, and the refusals that are known before a network is
// called.
import { assert, type Refusal, refuse } from '../../src/errors.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { isSupported, stepOf } from '../../src/token/scheme.ts'
import type { Deps } from '../deps.ts'
import type { Work } from '../line/work.ts'
import { type NetworkResult, runNetworkActions } from './network-actions.ts'
import { type MadeScheme, relinkAction, runRelinkActions } from './relink-actions.ts'

/** The field that a refusal names if a scope doesn't support scheme tokens, or a token has none. */
export const FIELD = 'body.scheme_token_action'

export function supportRefusal(scope: Scope): Refusal | undefined {
  return isSupported(scope) ? undefined : refuse('scheme_not_supported', FIELD)
}

/** The refusal of a job with a stale sequence, which must not call a provider. */
export async function staleRefusal(
  { claims, client }: Work<unknown>,
  tokenId: string,
  { lookUps }: Pick<Deps, 'lookUps'>,
): Promise<Refusal | undefined> {
  if (claims.sequence === undefined) return undefined
  const last = await lookUps.sequence({ clientId: client.clientId, tokenId })
  return last !== undefined && claims.sequence <= last ? refuse('sequence_stale', 'body.sequence') : undefined
}

/** Activates or suspends at the network. Throws as `RunActions` says. */
export async function actFor(
  work: Work<unknown>,
  token: StoredToken,
  scope: Scope,
  action: 'ACTIVATE' | 'SUSPEND',
  deps: Deps,
): Promise<NetworkResult> {
  const job = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt: false }
  const results = await runNetworkActions(job, [{ line: 0, token, scope, action, field: FIELD }], 'interactive', deps)
  return results.get(0) ?? 'same'
}

/** Has a scheme token made for the card that the token is about to get. Throws as `RunActions` says. */
export async function makeFor(work: Work<unknown>, token: StoredToken, deps: Deps): Promise<MadeScheme | Refusal> {
  const job = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt: false }
  const action = relinkAction(work.receiptId, token, { line: 0, field: FIELD })
  const made = (await runRelinkActions(job, [action], 'interactive', deps)).get(0)
  assert(made, 'each action has a result')
  return made
}

/** Whether there is a scheme token to delete. The deletion is recorded with the job's receipt, and called for later. */
export async function deletionOf(tokenId: string, { store }: Pick<Deps, 'store'>): Promise<NetworkResult> {
  const [row] = await storedSchemes.findCurrent(store, [tokenId])
  const step = stepOf(row, 'DELETE')
  if (step === 'absent') return refuse('scheme_token_absent', FIELD)
  return step === 'retire' ? 'changed' : 'same'
}
