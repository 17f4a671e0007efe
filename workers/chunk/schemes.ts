// The `scheme-token` records of a chunk. The networks are called, in recorded steps per record, before the chunk is decided;
// an interrupted chunk continues where it stopped.
import { isRefusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { SchemeToken } from '../../src/job/scheme-token.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as storedSchemes from '../../src/store/provider/stored-schemes.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type SchemeAction, stepOf } from '../../src/token/scheme.ts'
import { tokensFor } from '../card/find-token.ts'
import { supportRefusal } from '../card/scheme-view.ts'
import type { Deps } from '../deps.ts'
import { SCHEME_FIELD, type SchemeResult } from '../networks.ts'
import type { ActedRecords, ChunkContext, ChunkRecord, Decided, FeatureRecords } from './chunk.ts'
import { rejected } from './fold.ts'
import { actingJob, ask } from './scheme-actions.ts'

interface PreparedScheme {
  line: number
  reference: string | undefined
  id: string
  action: SchemeAction
}

export const schemeRecords: FeatureRecords = {
  request: SchemeToken,

  async reach(records, context, mayHaveReceipt, deps) {
    const schemes = schemesOf(records)
    if (schemes.length === 0) return new Map()
    const visible = await visibleOf(schemes, context, deps)
    const wanted = schemes.map(({ line, id, action }) => ({ line, action, token: visible.get(id), isRelinked: false }))
    return ask(wanted, actingJob(context, mayHaveReceipt), deps)
  },

  async decide(records, acted, context, deps) {
    const schemes = schemesOf(records)
    return schemes.length === 0 ? { save: async () => [] } : decideSchemes(schemes, acted, context, deps)
  },
}

/** In the order of the file; the lines of a block may be in another order. */
function schemesOf(records: readonly ChunkRecord[]): PreparedScheme[] {
  return records
    .flatMap(record => {
      if (!('request' in record)) return []
      const { line, reference } = record
      const { id, action } = record.request as SchemeToken
      return [{ line, reference, id, action }]
    })
    .sort((a, b) => a.line - b.line)
}

function visibleOf(
  schemes: readonly PreparedScheme[],
  { work }: ChunkContext,
  deps: Deps,
): Promise<Map<string, StoredToken>> {
  return tokensFor(work.client, [...new Set(schemes.map(({ id }) => id))], deps)
}

async function decideSchemes(
  prepared: readonly PreparedScheme[],
  acted: ActedRecords,
  context: ChunkContext,
  deps: Deps,
): Promise<Decided> {
  const { work } = context
  const visible = await visibleOf(prepared, context, deps)
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
  return (token: StoredToken, action: SchemeAction): SchemeResult => {
    const scope = scopes.get(token.tokenScope)
    const refusal = scope && supportRefusal(scope)
    if (refusal) return refusal
    const step = stepOf(byToken.get(token.tokenId), action)
    if (step === 'absent') return refuse('scheme_token_absent', SCHEME_FIELD)
    return step === 'stays' ? 'same' : 'changed'
  }
}
