// What a receipt remembers, as an answer again. Card details aren't in it: they are joined from the tokens of today,
// and are gone for those deleted since.
import { Fault } from '../../src/errors.ts'
import { toResult, unpack } from '../../src/job/chunk-outcomes.ts'
import { recall } from '../../src/job/recall.ts'
import type { OutboxRow } from '../../src/store/job/outbox.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Store } from '../../src/store/pool.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { Directory } from '../directory.ts'
import { handlerOf } from '../handlers.ts'
import { shownScheme } from '../provider/view.ts'
import { type Answer, tell } from './result-text.ts'

interface Readers {
  store: Store
  directory: Directory
}

export async function answerOfReceipt(receipt: Receipt, { store, directory }: Readers): Promise<Answer> {
  const { receiptId, revision, kind, jti, reference, attempt, acceptedAt, completedAt, refusal, outcomes, tokenId } =
    receipt
  const head = { receiptId, revision, kind, jti, reference, attempt, acceptedAt, completedAt }
  if (refusal === null && outcomes !== null) return { ...head, records: await recordsOf(outcomes, store) }
  const handler = handlerOf(kind)
  if (refusal === null && handler?.retell)
    return { ...head, success: { code: 200, record: await handler.retell(receipt, { store }) } }
  const [token] = refusal !== null || tokenId === null ? [] : await tokens.findByIds(store, [tokenId])
  const range = await directory.binRange(token?.binRange ?? null)
  const scheme = token && (await shownScheme(token.tokenId, await directory.scope(token.tokenScope), { store }))
  return { ...head, ...recall(receipt, token, range, scheme) }
}

async function recordsOf(outcomes: string, store: Store) {
  const unpacked = unpack(outcomes)
  const ids = [...new Set(unpacked.flatMap(({ tokenId }) => tokenId ?? []))]
  const found = new Map((await tokens.findByIds(store, ids)).map(token => [token.tokenId, token]))
  return unpacked.map(record => {
    const token = record.tokenId === undefined ? undefined : found.get(record.tokenId)
    return { ...toResult({ ...record, token }), ...(token ? { token_status: token.status } : {}) }
  })
}

/** The text of an outbox row that points to its receipt; undefined where retention has taken the receipt away. */
export async function bodyOfRow(row: OutboxRow, readers: Readers): Promise<string | undefined> {
  const receipt = await receipts.find(readers.store, row.receiptId)
  if (!receipt) return undefined
  if (receipt.revision < row.revision) throw new Fault('data')
  return tell({ ...(await answerOfReceipt(receipt, readers)), revision: row.revision }).body
}
