// Makes the content of a result again, from the receipt. Card details that an answer shows are read from the tokens as
// they are now; a deleted token has none.
import { Fault } from '../../src/errors.ts'
import { answerFrom } from '../../src/job/answer/receipt-answer.ts'
import type { Catalogue } from '../../src/job/catalogue.ts'
import { tokensNamed, toResultAgain, unpack } from '../../src/job/chunk-outcomes.ts'
import type { OutboxRow } from '../../src/store/job/outbox.ts'
import * as outbox from '../../src/store/job/outbox.ts'
import { isProved } from '../../src/store/job/receipt.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import * as receipts from '../../src/store/job/receipts.ts'
import type { Store } from '../../src/store/pool.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import type { RowBody } from '../answer/announce.ts'
import type { StoredHead, ToldAnswer } from '../answer/result-text.ts'
import { resultOf } from '../answer/result-text.ts'
import type { Deps } from '../deps.ts'
import type { Directory } from '../directory.ts'
import { type Handlers, handlerOf } from '../line/handlers.ts'
import type { LookUps } from '../set/look-ups.ts'
import { shownReference } from './claim.ts'
import { shownScheme } from './scheme-view.ts'

interface Readers {
  store: Store
  lookUps: LookUps
  directory: Directory
  handlers: Handlers
  catalogue: Catalogue
}

export async function storedAnswer(
  receipt: Receipt,
  { store, lookUps, directory, handlers, catalogue }: Readers,
): Promise<{ head: StoredHead; answer: ToldAnswer }> {
  const { refusal, outcomes, tokenId, kind, receiptId } = receipt
  const retell = catalogue.find(kind)?.retell
  const head = { ...headOf(receipt), retell }
  if (refusal === null && outcomes !== null) return { head, answer: { records: await recordsOf(outcomes, store) } }
  const handler = handlerOf(kind, { handlers })
  if (refusal === null && handler?.retell)
    return { head, answer: { code: 200, record: await handler.retell(receipt, { store }) } }
  const [token] = refusal !== null || tokenId === null ? [] : await tokens.findByIds(store, [tokenId])
  const range = await directory.binRange(token?.binRange ?? null)
  const scheme = token && (await shownScheme(token.tokenId, await directory.scope(token.tokenScope), { lookUps }))
  const answer = answerFrom(receipt, retell, token, range, scheme)
  if (!token || 'failure' in answer) return { head, answer }
  const { code, record } = answer
  return { head, answer: { code, record: { ...record, ...(await shownReference(receiptId, { store })) } } }
}

function headOf(receipt: Receipt): Omit<StoredHead, 'retell'> {
  const { receiptId, revision, envelopeDigest, kind, jti, reference, attempt, acceptedAt, completedAt } = receipt
  return { receiptId, revision, envelopeDigest, kind, jti, reference, attempt, acceptedAt, completedAt }
}

async function recordsOf(outcomes: string, store: Store) {
  const unpacked = unpack(outcomes)
  const rows = await tokens.findByIds(store, tokensNamed(unpacked))
  const found = new Map(rows.map(token => [token.tokenId, token]))
  return unpacked.map(record => toResultAgain(record, found))
}

/** Whether the result tells of records in columns: so does that of a dry run, which is stored as it was told. */
function isInColumns(body: string): boolean {
  const { columns } = JSON.parse(body) as { columns?: unknown }
  return columns !== undefined
}

/** What is told of an outbox row, if tokenmill wrote it, and its receipt, as they are. */
export async function bodyOfRow(
  row: OutboxRow,
  readers: Readers & Pick<Deps, 'ring' | 'onUnproved'>,
): Promise<RowBody> {
  const { ring, onUnproved } = readers
  if (!outbox.isProved(ring, row)) {
    onUnproved('outbox', row.outboxId)
    return 'unproved'
  }
  if (row.body !== null) return { body: row.body, inColumns: isInColumns(row.body) }
  const receipt = await receipts.find(readers.store, row.receiptId)
  if (!receipt) return 'gone'
  if (!isProved(ring, receipt)) {
    onUnproved('receipt', row.receiptId)
    return 'unproved'
  }
  if (receipt.revision < row.revision) throw new Fault('data')
  const { head, answer } = await storedAnswer(receipt, readers)
  const envelopeDigest = row.envelopeDigest ?? receipt.envelopeDigest
  return resultOf({ ...head, envelopeDigest, answers: row.answers, revision: row.revision }, answer)
}
