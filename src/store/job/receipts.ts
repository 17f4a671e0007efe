// Receipts: the stored end of each job, once per job. They make a job take effect exactly once: the first transaction
// that claims the receipt's id and writes the receipt decides. receipt-keys.ts says in which week a receipt is.
import type { Askers } from '../../job/answer/askers.ts'
import { addresseeOf } from '../../job/system-clients.ts'
import { type Code, type Coder, codeOf } from '../codes.ts'
import { type Column, plains, rowSet } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'
import * as outbox from './outbox.ts'
import { type Receipt, receiptText, type StoredReceipt } from './receipt.ts'
import * as receiptKeys from './receipt-keys.ts'

export type { Receipt, StoredReceipt }

/** A receipt that is to be written, with what only its outbox row says. */
export interface NewReceipt extends Receipt {
  /** The digest of what the envelope asks for; null if it isn't known. A receipt doesn't store it: others could guess at it. */
  answers: Buffer | null
}

const COLUMNS = `
  receipt_id as "receiptId",
  day,
  entity_id as "entityId",
  client_id as "clientId",
  iss,
  kind,
  jti,
  request_digest as "requestDigest",
  digest_version as "digestVersion",
  envelope_digest as "envelopeDigest",
  reply_to as "replyTo",
  reference,
  status,
  code,
  outcome,
  refusal,
  token_id as "tokenId",
  batch_no as "batchNo",
  chunk,
  counts,
  reasons,
  outcomes,
  failed_records as "failedRecords",
  revision,
  reversal,
  attempt,
  accepted_at as "acceptedAt",
  completed_at as "completedAt",
  askers,
  content_digest as "contentDigest",
  mac,
  mac_version as "macVersion"`

/** A receipt with its code, and the code of its outbox row under the same key. */
interface CodedReceipt extends NewReceipt, Code {
  toldMac: Buffer
}

const column = <Row = Receipt>(name: string, type: string, text: Column<Row>['text'], plain = false): Column<Row> => ({
  name,
  type,
  text,
  plain,
})
const binary = (value: Buffer) => `\\x${value.toString('hex')}`
const moment = (ms: number) => new Date(ms).toISOString()
const json = (value: unknown) => (value === null ? null : JSON.stringify(value))

/** Null if no record has a reason. */
function reasonsText({ reasons }: Receipt): string | null {
  return reasons === null || Object.keys(reasons).length === 0 ? null : JSON.stringify(reasons)
}

const NEW_COLUMNS: readonly Column<Receipt>[] = [
  column('receipt_id', 'uuid', r => r.receiptId, true),
  column('entity_id', 'uuid', r => r.entityId, true),
  column('client_id', 'text', r => r.clientId),
  column('iss', 'text', r => r.iss),
  column('kind', 'text', r => r.kind),
  column('jti', 'text', r => r.jti),
  column('request_digest', 'bytea', r => binary(r.requestDigest)),
  column('digest_version', 'smallint', r => r.digestVersion, true),
  column('content_digest', 'bytea', r => (r.contentDigest ? binary(r.contentDigest) : null)),
  column('envelope_digest', 'bytea', r => binary(r.envelopeDigest)),
  column('reply_to', 'text', r => r.replyTo),
  column('reference', 'text', r => r.reference),
  column('status', 'text', r => r.status),
  column('code', 'smallint', r => r.code, true),
  column('outcome', 'text', r => r.outcome),
  column('refusal', 'jsonb', r => json(r.refusal)),
  column('token_id', 'uuid', r => r.tokenId, true),
  column('batch_no', 'bigint', r => r.batchNo, true),
  column('chunk', 'integer', r => r.chunk, true),
  column('counts', 'jsonb', r => json(r.counts)),
  column('reasons', 'jsonb', r => reasonsText(r)),
  column('outcomes', 'text', r => r.outcomes),
  column('failed_records', 'integer', r => r.failedRecords, true),
  column('reversal', 'text', r => r.reversal),
  column('attempt', 'integer', r => r.attempt, true),
  column('accepted_at', 'timestamptz', r => moment(r.acceptedAt)),
  column('completed_at', 'timestamptz', r => moment(r.completedAt)),
]
const CODE: readonly Column<CodedReceipt>[] = [
  column<CodedReceipt>('mac', 'bytea', r => binary(r.mac)),
  column<CodedReceipt>('mac_version', 'smallint', r => r.macVersion, true),
]
/** What only the outbox row says: to whose results queue it goes, and what it answers. */
const TOLD: readonly Column<CodedReceipt>[] = [
  column<CodedReceipt>('addressee', 'text', r => addresseeOf(r)),
  column<CodedReceipt>('answers', 'bytea', r => r.answers && binary(r.answers)),
  column<CodedReceipt>('told_mac', 'bytea', r => binary(r.toldMac)),
]
const NEW_NAMES = [...NEW_COLUMNS, ...CODE].map(({ name }) => name).join(', ')

// The day is hidden from the planner: if it saw the day, a plan for one week would look cheaper than a general one, and
// PostgreSQL would plan each time.
const FIND_ONE = `select ${COLUMNS}
from tokenmill.receipt
where receipt_id = $1 and day = (select $2::date)`
// With `= any(…)` PostgreSQL could keep a plan that it made while the table was empty, which becomes slow as the table
// grows.
const FIND = `select found.*
from unnest($1::uuid[], $2::date[]) as wanted(id, on_day)
cross join lateral (
  select ${COLUMNS}
  from tokenmill.receipt
  where receipt_id = wanted.id and day = wanted.on_day
  limit 1
) as found`

/**
 * The receipts of these ids; missing ones are left out. One statement is enough if no id has a key; a second one reads
 * the receipts of the keys.
 */
export async function findAll(db: Db, receiptIds: readonly string[]): Promise<StoredReceipt[]> {
  if (receiptIds.length === 0) return []
  const days = await receiptKeys.findDays(db, receiptIds)
  return days.length === 0 ? [] : await readAll(db, days)
}

export async function find(db: Db, receiptId: string): Promise<StoredReceipt | undefined> {
  return (await findAll(db, [receiptId]))[0]
}

/** A chunk's receipt with the digest of its outcomes (isProvedByDigest) in place of them. */
export type ChunkReceipt = Omit<StoredReceipt, 'outcomes'> & { outcomesDigest: string | null }

/** The receipts of the next `limit` chunks of a batch after the number `after`, in order. */
export async function chunksAfter(db: Db, batchNo: number, after: number, limit: number): Promise<ChunkReceipt[]> {
  const { rows } = await db.query<ChunkReceipt>({
    name: 'receipts-chunks-after',
    text: `select ${COLUMNS.replace('  outcomes,', `  encode(sha256(convert_to(outcomes, 'UTF8')), 'hex') as "outcomesDigest",`)}
from tokenmill.receipt
where batch_no = $1 and chunk > $2 and day >= (select created_at::date - 1 from tokenmill.batch where batch_no = $1)
order by chunk
limit $3`,
    values: [batchNo, after, limit],
  })
  return rows
}

/** Reads the receipts of these keys. A key whose receipt retention has dropped gives none. */
async function readAll(db: Db, days: readonly receiptKeys.ReceiptDay[]): Promise<StoredReceipt[]> {
  const [first] = days
  const { rows } = await db.query<StoredReceipt>(
    first && days.length === 1
      ? { name: 'receipts-find-one', text: FIND_ONE, values: [first.receiptId, first.day] }
      : {
          name: 'receipts-find',
          text: FIND,
          values: [plains(days.map(({ receiptId }) => receiptId)), plains(days.map(({ day }) => day))],
        },
  )
  return rows
}

// One statement that claims the ids and inserts the receipts, with their revisions (above those of faults that were
// answered before) and their outbox rows.
const insertText = (source: string) => `with given as (
  select v.*
  from ${source}
), claimed as (
  ${receiptKeys.claimOf('given')}
), written as (
  insert into tokenmill.receipt (day, revision, ${NEW_NAMES})
  select now()::date, claimed.revision, ${NEW_NAMES.replace('receipt_id', 'given.receipt_id')}
  from claimed
  join given on given.receipt_id = claimed.receipt_id
  returning receipt_id, revision
)
${outbox.rowsOfReceipts({
  clientId: 'given.addressee',
  replyTo: 'given.reply_to',
  receiptId: 'given.receipt_id',
  envelope: 'given.envelope_digest',
  answers: 'given.answers',
  mac: 'given.told_mac',
  macVersion: 'given.mac_version',
  written: 'written join given on given.receipt_id = written.receipt_id',
})}`

/** A receipt that was just written, and its outbox row. */
export interface Written {
  revision: number
  outboxId: number
}

/**
 * Writes receipts of different jobs, and their outbox rows, in this order. Throws LostRace if one of the receipts
 * exists already.
 */
export async function insertAll(db: Db, coder: Coder, receipts: readonly NewReceipt[]): Promise<Written[]> {
  const written = await insertUnclaimed(db, coder, receipts)
  return receipts.map(({ receiptId }) => present(written.get(receiptId)))
}

/**
 * Writes receipts of different jobs, and their outbox rows. Returns what was written, by receipt id: receipts that exist
 * already are left out.
 */
export async function insertUnclaimed(
  db: Db,
  coder: Coder,
  receipts: readonly NewReceipt[],
): Promise<ReadonlyMap<string, Written>> {
  const written = await insertClaimed(db, coder, receipts)
  const lost = receipts.filter(({ receiptId }) => !written.has(receiptId))
  const ids = lost.map(({ receiptId }) => receiptId)
  if (lost.length === 0 || (await receiptKeys.removeLeft(db, ids)) === 0) return written
  return new Map([...written, ...(await insertClaimed(db, coder, lost))])
}

const WRITTEN: readonly Column<CodedReceipt>[] = [...NEW_COLUMNS, ...CODE, ...TOLD]

/** In the order of the ids, so that two transactions with the same receipts wait without a deadlock. */
async function insertClaimed(db: Db, coder: Coder, receipts: readonly NewReceipt[]): Promise<Map<string, Written>> {
  if (receipts.length === 0) return new Map()
  const sorted = receipts.toSorted((a, b) => (a.receiptId < b.receiptId ? -1 : 1))
  const coded = sorted.map(receipt => withCodes(receipt, coder))
  const { shape, source, values } = rowSet(WRITTEN, coded)
  const name = `receipts-insert-${shape}`
  const { rows } = await db.query<Written & Pick<Receipt, 'receiptId'>>({ name, text: insertText(source), values })
  return new Map(rows.map(row => [row.receiptId, row]))
}

function withCodes(receipt: NewReceipt, coder: Coder): CodedReceipt {
  const code = codeOf(coder, receiptText({ ...receipt, askers: null }))
  return { ...receipt, ...code, toldMac: codeOf(coder, outbox.textOf(outboxRowOf(receipt))).mac }
}

/** The row that points to the receipt. */
function outboxRowOf(receipt: NewReceipt): outbox.Pointing {
  const { receiptId, replyTo, envelopeDigest, answers } = receipt
  return { clientId: addresseeOf(receipt), replyTo, receiptId, envelopeDigest, answers, body: null }
}

function present(written: Written | undefined): Written {
  if (written === undefined) throw new LostRace('the receipt was written meanwhile')
  return written
}

// The code says how the receipt was read: its askers may have changed since, which leaves the revision as it is.
const REVISE = `with revised as (
  update tokenmill.receipt
  set
    status = $2,
    code = $3,
    counts = $4::jsonb,
    outcomes = $5,
    failed_records = $6,
    attempt = $7,
    completed_at = $8,
    envelope_digest = $9,
    reversal = $13,
    reasons = $14::jsonb,
    mac = $17,
    mac_version = $18,
    revision = revision + 1
  where receipt_id = $1 and day = $15 and revision = $10 and mac is not distinct from $20
  returning revision
)
${outbox.rowsOfReceipts({
  clientId: '$12',
  replyTo: '$11',
  receiptId: '$1',
  envelope: '$9',
  answers: '$16::bytea',
  mac: '$19::bytea',
  macVersion: '$18::smallint',
  written: 'revised',
})}`

/** What a revision changes. `answers` and `replyTo` are of its outbox row. */
export type Revision = Pick<NewReceipt, (typeof REVISED)[number] | 'replyTo' | 'answers'>
const REVISED = [
  'status',
  'code',
  'counts',
  'outcomes',
  'failedRecords',
  'attempt',
  'completedAt',
  'envelopeDigest',
  'reversal',
  'reasons',
] as const

/**
 * Writes a new outcome into a receipt, which the caller has proved: one revision higher, with another outbox row. `answers`
 * null: the envelope isn't at hand. Then an earlier outbox row of this envelope says it, as long as it is kept. Throws LostRace
 * if the receipt has changed since it was read.
 */
export async function revise(db: Db, coder: Coder, stored: StoredReceipt, revision: Revision): Promise<Written> {
  const changes = Object.fromEntries(REVISED.map(name => [name, revision[name]])) as Pick<
    Receipt,
    (typeof REVISED)[number]
  >
  const receipt = { ...stored, ...changes }
  const { receiptId, envelopeDigest } = receipt
  const { replyTo } = revision
  const answers = revision.answers ?? (await outbox.findAnswers(db, coder, receiptId, envelopeDigest))
  const code = codeOf(coder, receiptText(receipt))
  const told = codeOf(coder, outbox.textOf(outboxRowOf({ ...receipt, replyTo, answers })))
  const values = [
    receiptId,
    receipt.status,
    receipt.code,
    receipt.counts && JSON.stringify(receipt.counts),
    receipt.outcomes,
    receipt.failedRecords,
    receipt.attempt,
    new Date(receipt.completedAt),
    envelopeDigest,
    stored.revision,
    replyTo,
    addresseeOf(receipt),
    receipt.reversal,
    reasonsText(receipt),
    receipt.day,
    answers,
    code.mac,
    code.macVersion,
    told.mac,
    stored.mac,
  ]
  const { rows } = await db.query<Written>({ text: REVISE, values })
  return present(rows[0])
}

/**
 * Records who has asked for the effect, and who has given up. No answer changes, so the revision stays. The caller holds
 * the receipt's lock, and has read and proved the receipt under it.
 */
export async function recordAskers(db: Db, coder: Coder, stored: StoredReceipt, askers: Askers): Promise<void> {
  const { mac, macVersion } = codeOf(coder, receiptText({ ...stored, askers }))
  await db.query({
    text: `update tokenmill.receipt
set askers = $3::jsonb, mac = $4, mac_version = $5
where receipt_id = $1 and day = $2`,
    values: [stored.receiptId, stored.day, JSON.stringify(askers), mac, macVersion],
  })
}

/** Codes a receipt as it was read, which tokenmill may not have written. The caller holds the receipt's lock. */
export async function codeAnew(db: Db, coder: Coder, stored: StoredReceipt): Promise<void> {
  const { mac, macVersion } = codeOf(coder, receiptText(stored))
  await db.query({
    text: `update tokenmill.receipt
set mac = $3, mac_version = $4
where receipt_id = $1 and day = $2`,
    values: [stored.receiptId, stored.day, mac, macVersion],
  })
}

/** Up to `limit` ids of receipts from this id on, and over the end: a sample, because ids are hashes. */
export async function sampleIds(db: Db, from: string, limit: number): Promise<string[]> {
  const { rows } = await db.query<Pick<Receipt, 'receiptId'>>({
    text: `(
  select receipt_id as "receiptId"
  from tokenmill.receipt_key
  where receipt_id >= $1 and day is not null
  order by receipt_id
  limit $2
)
union all
(
  select receipt_id
  from tokenmill.receipt_key
  where receipt_id < $1 and day is not null
  order by receipt_id
  limit $2
)
limit $2`,
    values: [from, limit],
  })
  return rows.map(({ receiptId }) => receiptId)
}

const INSERT_CANCELLED = `with claimed as (
  ${receiptKeys.claimOf('(select $1::uuid as receipt_id) as given')}
)
insert into tokenmill.receipt (
  day,
  revision,
  receipt_id,
  client_id,
  iss,
  kind,
  jti,
  request_digest,
  envelope_digest,
  status,
  code,
  failed_records,
  attempt,
  accepted_at,
  completed_at,
  reversal,
  entity_id,
  mac,
  mac_version
)
select
  now()::date,
  revision,
  receipt_id,
  $2,
  $3,
  $4,
  $5,
  $6,
  $7,
  'CANCELLED',
  $8,
  0,
  $9,
  $10,
  $11,
  $12,
  $13,
  $14,
  $15
from claimed`

/** What the receipt of a cancelled job says of its own. */
export type Cancelled = Omit<Receipt, keyof typeof NOTHING_DONE | 'revision'>
const NOTHING_DONE = {
  digestVersion: 1,
  contentDigest: null,
  replyTo: null,
  reference: null,
  status: 'CANCELLED',
  outcome: null,
  refusal: null,
  tokenId: null,
  batchNo: null,
  chunk: null,
  counts: null,
  reasons: null,
  outcomes: null,
  failedRecords: 0,
  askers: null,
} as const

/**
 * Writes a receipt without an outcome for a job that hasn't begun, so that it never will. The job's kind isn't known;
 * `receipt` names who cancelled it. Nothing is published now: the job is answered from this receipt when a worker takes
 * it. Throws LostRace if there is a receipt.
 */
export async function insertCancelled(db: Db, coder: Coder, cancelled: Cancelled): Promise<void> {
  const receipt = { ...cancelled, ...NOTHING_DONE }
  const { mac, macVersion } = codeOf(coder, receiptText(receipt))
  const values = [
    receipt.receiptId,
    receipt.clientId,
    receipt.iss,
    receipt.kind,
    receipt.jti,
    receipt.requestDigest,
    receipt.envelopeDigest,
    receipt.code,
    receipt.attempt,
    new Date(receipt.acceptedAt),
    new Date(receipt.completedAt),
    receipt.reversal,
    receipt.entityId,
    mac,
    macVersion,
  ]
  const isWritten = async () => (await db.query({ text: INSERT_CANCELLED, values })).count === 1
  if (await isWritten()) return
  if ((await receiptKeys.removeLeft(db, [receipt.receiptId])) === 1 && (await isWritten())) return
  throw new LostRace('the receipt was written meanwhile')
}

/**
 * Records that the provider calls of a cancelled job have been compensated. The caller holds the receipt's lock, and has read and
 * proved the receipt under it.
 */
export async function recordCancelledCompensation(db: Db, coder: Coder, stored: StoredReceipt): Promise<void> {
  const { mac, macVersion } = codeOf(coder, receiptText({ ...stored, reversal: 'COMPLETED' }))
  await db.query({
    text: `update tokenmill.receipt
set reversal = 'COMPLETED', mac = $3, mac_version = $4
where receipt_id = $1 and day = $2 and reversal = 'REQUIRED'`,
    values: [stored.receiptId, stored.day, mac, macVersion],
  })
}
