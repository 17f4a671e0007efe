// `migrate --scheme-tokens`: when the tokens of a chunk are made, a second job asks for their scheme tokens. The
// outcome of a row stays that of its token; if only the scheme token failed, `failed_facet` and the reason say so.
import { isRefusal, type Reason } from '../../src/errors.ts'
import { recordsOf } from '../../src/job/answer/created-columns.ts'
import type { Result } from '../../src/job/answer/result.ts'
import { type RecordResult, tookEffect } from '../../src/job/outcome.ts'
import { reasonIn } from '../../src/job/problem.ts'
import { untilSent } from '../client/bulk.ts'
import type { Client } from '../client.ts'
import { type BatchPlan, tokenBatch } from '../token-batch.ts'
import { derivedBatchId } from './batch-identity.ts'

export interface SchemePart {
  /** The batch of the tokens. Their scheme tokens are requested in another batch. */
  plan: BatchPlan
  chunk: number
  /** This is the last chunk. */
  isLast: boolean
  timeoutMs: number
  stop: AbortSignal
  /** Writes one line for the person who runs the command. */
  tell: (line: string) => void
}

/**
 * How many batch ids are tried. If a token was made only at a second try, the list of scheme tokens differs
 * from the list that was sent before, so the chunk needs another batch id.
 */
const NAMES_MAX = 5

/**
 * Adds the outcome of the scheme tokens to the records of `result`, which then tells of all in rows. It may come in
 * columns: the queue may still have the envelope of an earlier run, which asked for them.
 */
export async function withSchemeTokens(result: Result, part: SchemePart, client: Client): Promise<Result> {
  const { columns: _, ...told } = result
  const records = recordsOf(result)
  // For a chunk that failed as a whole no scheme tokens are requested now; a later run sends the chunk again and
  // requests them.
  if (!records) return told
  const wanted = records.filter(isWanted)
  if (wanted.length === 0) {
    if (records[0]) await passOver(records[0].line, part, client)
    return { ...told, records }
  }
  const schemeResult = await askAny(wanted.map(lineOf), part, client)
  const byLine = new Map(schemeResult.records?.map(record => [record.line, record]))
  return {
    ...told,
    records: records.map(record => (isWanted(record) ? merged(record, byLine.get(record.line), schemeResult) : record)),
  }
}

function isWanted({ outcome, reuse_token: id, token_status: status }: RecordResult): boolean {
  return tookEffect(outcome) && id !== undefined && status !== 'DELETED'
}

function lineOf({ line, reuse_token: id }: RecordResult): string {
  return JSON.stringify({ line, request: { id, action: 'ACTIVATE' } })
}

/**
 * Sends a chunk of one rejected row in place of a chunk that asks for no scheme tokens: a batch finishes only when all
 * its chunks are answered, and a chunk needs a record. If the chunk was sent before, it stays as it was.
 */
async function passOver(line: number, part: SchemePart, client: Client): Promise<void> {
  const placeholder = JSON.stringify({ line, rejected: { reason: 'token_not_found' satisfies Reason } })
  const told = await ask([placeholder], 1, part, client)
  if (told.status === 'SUCCEEDED' || isTaken(told)) return
  const { batchId } = schemeChunk(1, part).plan
  part.tell(
    `the batch ${batchId} stays open: a chunk without tokens was refused there (${reasonOf(told)}). Scheme tokens that were made stand; once that is mended, the same command, run again after its end, ends the batch, or \`tokenmill batch cancel ${batchId}\` does`,
  )
}

/** Whether the refusal says that the chunk was sent before with other rows. */
function isTaken({ error }: Result): boolean {
  return error?.details?.['body.jti']?.code === 'jti_reused'
}

function reasonOf({ error }: Result): string {
  return reasonIn(error).reason
}

async function askAny(lines: string[], part: SchemePart, client: Client): Promise<Result> {
  for (let name = 1; ; name += 1) {
    const told = await ask(lines, name, part, client)
    if (name === NAMES_MAX || !isTaken(told)) return told
  }
}

async function ask(lines: string[], name: number, part: SchemePart, client: Client): Promise<Result> {
  const { timeoutMs, stop } = part
  const { plan, chunk } = schemeChunk(name, part)
  const asked = await tokenBatch(client.clientId, plan, { ...chunk, lines })
  if (isRefusal(asked)) throw new Error(`broken law: a chunk has its form (${asked.reason} ${asked.field})`)
  const given = { jti: asked.jti, block: asked.block, timeoutMs }
  return untilSent(() => client.call('token-batch', asked.request, given), stop)
}

/**
 * The batch and the number of a chunk of scheme tokens. With name 1 the batch holds all chunks of the file; with
 * another name it holds this chunk alone, so that it finishes, too.
 */
function schemeChunk(name: number, { plan, chunk, isLast }: SchemePart) {
  // The extent is left out: only rows that made a token ask for a scheme token, so the number of rows isn't known.
  const { policy: _, tokenScope: __, extent: ___, limit, ...rest } = plan
  const scheme = { ...rest, recordKind: 'scheme-token' as const }
  if (name === 1)
    return {
      plan: { ...scheme, limit, batchId: derivedBatchId(plan.batchId, '-s1') },
      chunk: { number: chunk, isLast },
    }
  return {
    plan: { ...scheme, batchId: derivedBatchId(plan.batchId, `-s${name}-${chunk}`) },
    chunk: { number: 0, isLast: true },
  }
}

function merged(token: RecordResult, scheme: RecordResult | undefined, told: Result): RecordResult {
  if (scheme && tookEffect(scheme.outcome)) return token
  return { ...token, reason: scheme?.reason ?? reasonOf(told), failed_facet: 'scheme_token' }
}
