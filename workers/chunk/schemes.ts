// The records of a chunk that change scheme tokens: `scheme-token` records, and updates with `scheme_token_action`. The
// networks are called, in recorded steps per record, before the chunk is decided; an interrupted chunk continues where
// it stopped.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { SchemeToken } from '../../src/job/scheme-token.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type SchemeAction, stepOf } from '../../src/token/scheme.ts'
import { tokensFor } from '../card/find-token.ts'
import type { Deps } from '../deps.ts'
import type { NetworkAction, NetworkResult } from '../provider/network-actions.ts'
import { runNetworkActions } from '../provider/network-actions.ts'
import { FIELD, supportRefusal } from '../provider/scheme-action.ts'
import { judgeChange, type PreparedChange } from './changes.ts'
import type { ActedRecords, ChunkContext, ChunkRecord, Decided } from './chunk.ts'
import { rejected } from './fold.ts'

export interface PreparedScheme {
  line: number
  reference: string | undefined
  id: string
  action: SchemeAction
}

export function prepareSchemes(records: readonly ChunkRecord[]): PreparedScheme[] {
  return records
    .flatMap(record => {
      if (!('request' in record)) return []
      const { line, reference } = record
      const { id, action } = record.request as SchemeToken
      return [{ line, reference, id, action }]
    })
    .sort((a, b) => a.line - b.line)
}

/** Calls the networks. Throws `Postponed` if a network must be waited for. */
export async function actForRecords(
  schemes: readonly PreparedScheme[],
  changes: readonly PreparedChange[],
  { work }: ChunkContext,
  mayHaveReceipt: boolean,
  deps: Deps,
): Promise<ActedRecords> {
  const asking = changes.filter(change => 'given' in change && change.schemeAction !== undefined)
  const ids = [...schemes, ...asking].map(({ id }) => id)
  if (ids.length === 0) return new Map()
  const visible = await tokensFor(work.client, [...new Set(ids)], deps)
  const acted = new Map<number, NetworkResult>()
  const actions: NetworkAction[] = []
  const actionFor = async (line: number, id: string, action: SchemeAction): Promise<NetworkAction | Refusal> => {
    const token = visible.get(id)
    const scope = token && (await deps.directory.scope(token.tokenScope))
    if (!token || !scope) return refuse('token_not_found', 'body.id')
    return supportRefusal(scope) ?? { line, token, scope, action, field: FIELD }
  }
  const take = (line: number, planned: NetworkAction | Refusal) => {
    if (isRefusal(planned)) acted.set(line, planned)
    else actions.push(planned)
  }
  for (const { line, id, action } of schemes) take(line, await actionFor(line, id, action))
  for (const change of asking) {
    if (!('given' in change) || change.schemeAction === undefined) continue
    const planned = await actionFor(change.line, change.id, change.schemeAction)
    // For a record that links another card, the scheme token is decided together with the card.
    const refusal = isRefusal(planned) || change.card ? undefined : judgeChange(change, planned.token, work)
    if (!change.card) take(change.line, refusal ?? planned)
    else if (isRefusal(planned)) take(change.line, planned)
  }
  const job = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt }
  for (const [line, one] of await runNetworkActions(job, actions, 'bulk', deps)) acted.set(line, one)
  return acted
}

export async function decideSchemes(
  prepared: readonly PreparedScheme[],
  acted: ActedRecords,
  { work }: ChunkContext,
  deps: Deps,
): Promise<Decided> {
  if (prepared.length === 0) return { save: async () => [] }
  const visible = await tokensFor(work.client, [...new Set(prepared.map(({ id }) => id))], deps)
  const named = new Set<string>()
  const predicted = work.request.dry_run ? await predict(visible, deps) : undefined
  const outcomes: RecordOutcome[] = []
  for (const record of prepared) {
    const { line, reference, id, action } = record
    const token = visible.get(id)
    const end = token ? (predicted ? predicted(token, action) : acted.get(line)) : refuse('token_not_found', 'body.id')
    if (end === undefined || isRefusal(end) || !token) {
      outcomes.push(rejected(record, isRefusal(end) ? end : refuse('token_not_found', 'body.id')))
      continue
    }
    named.add(token.tokenId)
    const outcome = end === 'changed' ? 'UPDATED' : 'UNCHANGED'
    const shown = predicted ? undefined : token
    outcomes.push({ line, reference, outcome, reason: undefined, field: undefined, token: shown })
  }
  return {
    save: async db => {
      if (!predicted) await tokens.nameReceipt(db, [...named], work.receiptId)
      return outcomes
    },
  }
}

/** The answer of a dry run: the calls that would be made, by the current state of the scheme tokens. */
async function predict(visible: ReadonlyMap<string, StoredToken>, deps: Deps) {
  const rows = await storedSchemes.findCurrent(
    deps.store,
    [...visible.values()].map(({ tokenId }) => tokenId),
  )
  const byToken = new Map(rows.map(row => [row.tokenId, row]))
  const scopes = new Map<string, Scope | undefined>()
  for (const { tokenScope } of visible.values())
    if (!scopes.has(tokenScope)) scopes.set(tokenScope, await deps.directory.scope(tokenScope))
  return (token: StoredToken, action: SchemeAction): NetworkResult => {
    const scope = scopes.get(token.tokenScope)
    const refusal = scope && supportRefusal(scope)
    if (refusal) return refusal
    const step = stepOf(byToken.get(token.tokenId), action)
    if (step === 'absent') return refuse('scheme_token_absent', FIELD)
    return step === 'stays' ? 'same' : 'changed'
  }
}
