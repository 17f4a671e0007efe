// The actions that single jobs, and the records of chunks, request for tokens' scheme tokens.
import { assert, type Refusal, refuse } from '../../src/errors.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { stepOf } from '../../src/token/scheme.ts'
import {
  type ActingJob,
  type AskedAction,
  type JobIds,
  type MadeScheme,
  SCHEME_FIELD,
  type SchemeResult,
} from '../networks.ts'
import type { ProviderDeps } from './deps.ts'
import { type NetworkAction, runNetworkActions } from './network-actions.ts'
import { type RelinkAction, relinkAction, runRelinkActions } from './relink-actions.ts'

/** Activates or suspends at the network. Throws as `RunActions` says. */
export async function actFor(
  { receiptId, clientId }: JobIds,
  { token, scope, action }: Pick<AskedAction, 'token' | 'scope' | 'action'>,
  deps: ProviderDeps,
): Promise<SchemeResult> {
  if (action === 'DELETE') return deletionOf(token.tokenId, deps)
  const job = { receiptId, clientId, mayHaveReceipt: false }
  const asked = { line: 0, token, scope, action, field: SCHEME_FIELD }
  return (await runNetworkActions(job, [asked], 'interactive', deps)).get(0) ?? 'same'
}

/** Has a scheme token made for the card that the token is about to get. Throws as `RunActions` says. */
export async function makeFor(
  { receiptId, clientId }: JobIds,
  token: StoredToken,
  deps: ProviderDeps,
): Promise<MadeScheme | Refusal> {
  const job = { receiptId, clientId, mayHaveReceipt: false }
  const action = relinkAction(receiptId, token, { line: 0, field: SCHEME_FIELD })
  const made = (await runRelinkActions(job, [action], 'interactive', deps)).get(0)
  assert(made, 'each action has a result')
  return made
}

/** Whether there is a scheme token to delete. The deletion is recorded with the job's receipt, and called for later. */
async function deletionOf(tokenId: string, { store }: Pick<ProviderDeps, 'store'>): Promise<SchemeResult> {
  const [row] = await storedSchemes.findCurrent(store, [tokenId])
  const step = stepOf(row, 'DELETE')
  if (step === 'absent') return refuse('scheme_token_absent', SCHEME_FIELD)
  return step === 'retire' ? 'changed' : 'same'
}

/** How the actions of a chunk's records ended, by line. Throws as `RunActions` says. */
export async function actForRecords(
  job: ActingJob,
  asked: readonly AskedAction[],
  deps: ProviderDeps,
): Promise<Map<number, SchemeResult | MadeScheme>> {
  const actions: NetworkAction[] = []
  const relinks: RelinkAction[] = []
  for (const { line, token, scope, action, isRelinked } of asked) {
    const at = { line, field: SCHEME_FIELD }
    if (isRelinked) relinks.push(relinkAction(job.receiptId, token, at))
    else actions.push({ ...at, token, scope, action })
  }
  const ends = new Map<number, SchemeResult | MadeScheme>()
  for (const [line, end] of await runNetworkActions(job, actions, 'bulk', deps)) ends.set(line, end)
  for (const [line, end] of await runRelinkActions(job, relinks, 'bulk', deps)) ends.set(line, end)
  return ends
}
