// The records of a chunk that change scheme tokens: `scheme-token` records, and updates with `scheme_token_action`. The
// networks are called, in recorded steps per record, before the chunk is decided; an interrupted chunk continues where
// it stopped.
import { isRefusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { SchemeToken } from '../../src/job/scheme-token.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type SchemeAction, stepOf } from '../../src/token/scheme.ts'
import { tokensFor } from '../card/find-token.ts'
import type { Deps } from '../deps.ts'
import type { ActingJob } from '../provider/action-rules.ts'
import type { NetworkAction, NetworkResult } from '../provider/network-actions.ts'
import { runNetworkActions } from '../provider/network-actions.ts'
import { type RelinkAction, relinkAction, runRelinkActions } from '../provider/relink-actions.ts'
import { FIELD, supportRefusal } from '../provider/scheme-action.ts'
import { foldChanges, type PreparedChange, visibleTokens } from './changes.ts'
import type { ActedRecord, ActedRecords, ChunkContext, ChunkRecord, Decided } from './chunk.ts'
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

/**
 * Calls the networks. A record waits for the answers to earlier records of its token. Throws `Postponed` if a network must
 * be waited for.
 */
export async function actForRecords(
  schemes: readonly PreparedScheme[],
  changes: readonly PreparedChange[],
  context: ChunkContext,
  mayHaveReceipt: boolean,
  deps: Deps,
): Promise<ActedRecords> {
  const { receiptId, client } = context.work
  const job = { receiptId, clientId: client.clientId, mayHaveReceipt }
  const asked = { job, acted: new Map<number, ActedRecord>() }
  if (schemes.length > 0) {
    const visible = await tokensFor(client, [...new Set(schemes.map(({ id }) => id))], deps)
    await ask(
      schemes.map(({ line, id, action }) => ({ line, action, token: visible.get(id), isRelinked: false })),
      asked,
      deps,
    )
  }
  if (!changes.some(change => 'given' in change && change.schemeAction !== undefined)) return asked.acted
  const visible = await visibleTokens(changes, context, deps)
  const folding = { context, deps, visible, acted: asked.acted, stops: true }
  for (;;) {
    const { waiting } = await foldChanges(changes, folding)
    if (waiting.length === 0) return asked.acted
    // A scheme token that exists belongs to the stored card, and a new one to the card that the record gives.
    const wanted = waiting.map(({ base, row, ...one }) => ({ ...one, token: one.isRelinked ? row : base }))
    await ask(wanted, asked, deps)
  }
}

interface Wanted {
  line: number
  action: SchemeAction
  token: StoredToken | undefined
  /** The token is about to get the card of `token`. */
  isRelinked: boolean
}

/** Asks networks, and adds how each request ended to `acted`. */
async function ask(
  wanted: readonly Wanted[],
  { job, acted }: { job: ActingJob; acted: Map<number, ActedRecord> },
  deps: Deps,
): Promise<void> {
  const actions: NetworkAction[] = []
  const relinks: RelinkAction[] = []
  for (const { line, action, token, isRelinked } of wanted) {
    const scope = token && (await deps.directory.scope(token.tokenScope))
    const refusal = token && scope ? supportRefusal(scope) : refuse('token_not_found', 'body.id')
    if (refusal || !token || !scope) acted.set(line, refusal ?? refuse('token_not_found', 'body.id'))
    else if (isRelinked) relinks.push(relinkAction(job.receiptId, token, { line, field: FIELD }))
    else actions.push({ line, token, scope, action, field: FIELD })
  }
  for (const [line, one] of await runNetworkActions(job, actions, 'bulk', deps)) acted.set(line, one)
  for (const [line, one] of await runRelinkActions(job, relinks, 'bulk', deps)) acted.set(line, one)
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
