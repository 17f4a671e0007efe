// The results of a finished batch, in the order of its rows: CSV with the columns of `migrate`, or NDJSON. The store is
// read page by page as the caller takes the text, and no connection is held in between.
import { z } from 'zod'
import { readResult } from '../../../src/job/answer/result.ts'
import { tokensNamed, toResultAgain, unpack } from '../../../src/job/chunk-outcomes.ts'
import type { AnyRecordResult } from '../../../src/job/outcome.ts'
import { type ChunkEnd, page } from '../../../src/store/batch/intake-results.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as shownTokens from '../../../src/store/token/token-views.ts'
import { headerOf, textOf } from '../../rows/outcome/result-row.ts'

/** Number of chunks per page: their records are in memory. */
const PAGE = 8

export type ResultsFormat = 'csv' | 'ndjson'

/** Yields the text of the file, in pieces. */
export async function* resultsText(store: Store, intakeNo: number, format: ResultsFormat): AsyncGenerator<string> {
  if (format === 'csv') yield headerOf({})
  for await (const records of resultsOf(store, intakeNo)) {
    yield format === 'csv' ? textOf(records, {}) : records.map(record => `${JSON.stringify(record)}\n`).join('')
  }
}

async function* resultsOf(store: Store, intakeNo: number): AsyncGenerator<AnyRecordResult[]> {
  for (let after = -1; ; ) {
    const ends = await page(store, intakeNo, after, PAGE)
    const last = ends.at(-1)
    if (!last) return
    after = last.chunk
    const read = ends.map(end => ({ end, outcomes: end.outcomes === null ? [] : unpack(end.outcomes) }))
    const ids = tokensNamed(read.flatMap(({ outcomes }) => outcomes))
    const tokens = new Map((await shownTokens.findByIds(store, ids)).map(token => [token.tokenId, token]))
    for (const { end, outcomes } of read) {
      if (end.outcomes === null) yield withoutReceipt(end)
      else yield outcomes.map(record => toResultAgain(record, tokens))
    }
  }
}

/** The line and reference of each row, as stored with its chunk. */
const StoredLines = z.array(z.tuple([z.int(), z.string().optional()]))

/**
 * The rows of a chunk without a receipt: of a dry run, or of a chunk that was never worked, whose rows all ended as the
 * chunk did.
 */
function withoutReceipt({ state, code, reason, lines, body }: ChunkEnd): AnyRecordResult[] {
  if (state === 'DONE') return body === null ? [] : (readResult(body).records ?? [])
  const failed = code === 500
  const outcome = state === 'CANCELLED' ? 'CANCELLED' : failed ? 'FAILED' : 'REJECTED'
  return StoredLines.parse(JSON.parse(lines ?? '[]')).map(([line, reference]) => ({
    line,
    ...(reference !== undefined && { reference }),
    outcome,
    code: code ?? 500,
    reason: reason ?? 'internal',
    ...(failed && { reversal_status: 'NONE' }),
  }))
}
