// What a receipt remembers, as an answer again. Card details aren't in it: they are joined from the tokens of today,
// and are gone for those deleted since.
import { Fault } from '../src/errors.ts'
import type { OutboxRow } from '../src/store/outbox.ts'
import type { Store } from '../src/store/pool.ts'
import type { Receipt } from '../src/store/receipts.ts'
import * as receipts from '../src/store/receipts.ts'
import type { StoredToken } from '../src/store/tokens.ts'
import * as tokens from '../src/store/tokens.ts'
import { renderPatch, renderPut } from '../src/token/render.ts'
import { formatReuseToken } from '../src/token/token.ts'
import { type Answer, tell } from './answer.ts'
import { toResult, unpack } from './chunk-outcomes.ts'
import type { Directory } from './directory.ts'

interface Readers {
  store: Store
  directory: Directory
}

export async function answerOfReceipt(receipt: Receipt, { store, directory }: Readers): Promise<Answer> {
  const { receiptId, revision, kind, jti, reference, attempt, acceptedAt, completedAt, refusal, outcomes, tokenId } =
    receipt
  const head = { receiptId, revision, kind, jti, reference, attempt, acceptedAt, completedAt }
  if (refusal !== null) return { ...head, fields: refusal }
  if (outcomes !== null) return { ...head, records: await recordsOf(outcomes, store) }
  const [token] = tokenId === null ? [] : await tokens.findByIds(store, [tokenId])
  if (receipt.status === 'CANCELLED' || !token) return { ...head, fields: [{ field: 'body.jti', reason: 'jti_spent' }] }
  const code = receipt.code === 204 ? 204 : 200
  return { ...head, success: { code, record: await recordOf(receipt, token, directory) } }
}

async function recordOf(receipt: Receipt, token: StoredToken, directory: Directory): Promise<Record<string, unknown>> {
  const id = formatReuseToken(token.tokenId)
  if (receipt.kind === 'token-lifecycle') return { id, token_status: receipt.outcome ?? token.status }
  if (token.status === 'DELETED') return { reuse_token: id, token_status: 'DELETED' }
  const range = await directory.binRange(token.binRange)
  return receipt.kind === 'token-create' ? renderPut(token, range) : renderPatch(token, range)
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
