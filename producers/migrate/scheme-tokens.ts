// `migrate --scheme-tokens`: when the tokens of a chunk are made, a second job asks for their scheme tokens. The
// outcome of a row stays that of its token; where only the scheme token failed, `failed_facet` and the reason say so.
import { isRefusal } from '../../src/errors.ts'
import { type RecordResult, tookEffect } from '../../src/job/outcome.ts'
import type { Result } from '../../src/job/result.ts'
import { untilSent } from '../client/bulk.ts'
import type { Client } from '../client.ts'
import { type BatchPlan, tokenBatch } from '../token-batch.ts'

export interface SchemePart {
  /** The batch of the tokens. Their scheme tokens are asked for under a batch id of their own. */
  plan: BatchPlan
  chunk: number
  timeoutMs: number
  stop: AbortSignal
}

/** A token that was made on a second try changes the list of scheme tokens, which then needs another batch id. */
const NAMES_MAX = 5

/** Adds the outcome of the scheme tokens to the records of `result`. */
export async function withSchemeTokens(result: Result, part: SchemePart, client: Client): Promise<Result> {
  const { records } = result
  const wanted = records?.filter(isWanted) ?? []
  if (!records || wanted.length === 0) return result
  const schemeResult = await ask(wanted, part, client)
  const byLine = new Map(schemeResult.records?.map(record => [record.line, record]))
  return {
    ...result,
    records: records.map(record => (isWanted(record) ? merged(record, byLine.get(record.line), schemeResult) : record)),
  }
}

function isWanted({ outcome, reuse_token: id, token_status: status }: RecordResult): boolean {
  return tookEffect(outcome) && id !== undefined && status !== 'DELETED'
}

async function ask(wanted: readonly RecordResult[], part: SchemePart, client: Client): Promise<Result> {
  const { plan, chunk, timeoutMs, stop } = part
  const lines = wanted.map(({ line, reuse_token: id }) => JSON.stringify({ line, request: { id, action: 'ACTIVATE' } }))
  for (let name = 1; ; name += 1) {
    const batchId = `${plan.batchId.slice(0, 60)}-s${name}`
    // Only chunks that made tokens ask for something: how many there will be isn't known.
    const { policy: _, tokenScope: __, extent: ___, limit: ____, ...rest } = plan
    const scheme: BatchPlan = { ...rest, batchId, recordKind: 'scheme-token' }
    const asked = await tokenBatch(client.clientId, scheme, { number: chunk, lines })
    if (isRefusal(asked)) throw new Error(`broken law: a chunk has its form (${asked.reason} ${asked.field})`)
    const given = { jti: asked.jti, block: asked.block, timeoutMs }
    const told = await untilSent(() => client.call('token-batch', asked.request, given), stop)
    if (name === NAMES_MAX || told.error?.details?.['body.jti']?.code !== 'jti_reused') return told
  }
}

function merged(token: RecordResult, scheme: RecordResult | undefined, told: Result): RecordResult {
  if (scheme && tookEffect(scheme.outcome)) return token
  const [refusal] = Object.values(told.error?.details ?? {})
  return { ...token, reason: scheme?.reason ?? refusal?.code ?? 'internal', failed_facet: 'scheme_token' }
}
