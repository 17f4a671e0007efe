// Sends a list as a batch over HTTP: in parts, each of which is a batch of its own with its name and number, a few of them in
// flight, and yields the result of each record in the order of the list. A part that is sent again is the same batch.
import { RECORD_KINDS, type RecordKind } from '../../src/job/choices.ts'
import type { RecordResult } from '../../src/job/outcome.ts'
import { BatchError } from '../batch/batch-error.ts'
import { type Piece, sendInOrder } from '../batch/in-order.ts'
import type { BatchOptions, BatchRecord, Ended } from '../batch/interface.ts'
import type { HttpClient } from './interface.ts'

type Sender = Pick<HttpClient, 'submitBatch' | 'batchEnd' | 'batchResults'>

const IN_FLIGHT = 6
/** Records of a part: few enough that a part fits into the memory of both sides and into any gateway's limit. */
const PART_RECORDS = 10_000

/** What one name of a record or of its card is called in a row. Whatever isn't here can't be said over HTTP. */
const COLUMNS: Readonly<Record<string, string>> = {
  reference: 'reference',
  id: 'id',
  action: 'action',
  card_brand: 'card_brand',
  token_type: 'token_type',
  token_expiry_date: 'token_expiry_date',
  scheme_token_action: 'scheme_token_action',
  encrypted_card: 'encrypted_card',
  public_key_alias: 'public_key_alias',
  card_holder_name: 'cardholder_name',
  card_holder_email: 'cardholder_email',
  expiry_month: 'expiry_month',
  expiry_year: 'expiry_year',
  provider: 'provider',
  provider_account: 'provider_account',
  customer_id: 'customer_id',
  card_id: 'card_id',
  on_orphan: 'on_orphan',
  'card.cardNumber': 'card_number',
  'card.expiryMonth': 'expiry_month',
  'card.expiryYear': 'expiry_year',
  'card.cardholderName': 'cardholder_name',
  'card.sequenceNumber': 'sequence_number',
}

interface Part<Record> extends Piece<Record> {
  rows: string
}

export async function* sendBatch<Kind extends RecordKind>(
  options: BatchOptions<Kind>,
  records: AsyncIterable<BatchRecord<Kind>> | Iterable<BatchRecord<Kind>>,
  { sender, tokenScope, now }: { sender: Sender; tokenScope: string | undefined; now: number },
): AsyncGenerator<Ended<BatchRecord<Kind>>, void, void> {
  type Record = BatchRecord<Kind>
  checkNames(options)
  const { batchId, checkpoint, timeoutMs, inFlight = IN_FLIGHT } = options
  const query = queryOf(options, tokenScope)

  async function send({ position, rows }: Part<Record>): Promise<RecordResult[]> {
    const { batch_id: id } = await sender.submitBatch(rows, {
      ...query,
      ...(options.dryRun ? {} : { batch_id: `${batchId}-${position}` }),
      timeoutMs,
    })
    await sender.batchEnd(id, { timeoutMs })
    const results: RecordResult[] = []
    for await (const result of sender.batchResults(id)) results.push(result)
    return results
  }
  yield* sendInOrder<Record, Part<Record>, RecordResult[]>(partsOf<Record>(records), options, {
    inFlight,
    requestsOf: ({ records }) => records,
    send,
    endedOf,
    acceptedAt: checkpoint?.acceptedAt ?? Math.floor(now / 1_000),
    form: () => 'rows',
  })
}

/** Throws for what the type of the options excludes, but JavaScript doesn't: a list without a name would be taken for another. */
function checkNames({ batchId, kind }: Partial<BatchOptions>): void {
  if (typeof batchId !== 'string' || !/^[\w-]{1,56}$/.test(batchId))
    throw new BatchError('batchId: name the list with 1 to 56 letters, digits, _ and -')
  if (!RECORD_KINDS.some(known => known === kind)) throw new BatchError(`kind: it is one of ${RECORD_KINDS.join(', ')}`)
}

function queryOf({ kind, scope, policy = {}, dryRun }: BatchOptions, tokenScope: string | undefined) {
  const { on_conflict: onConflict, on_expired: onExpired, ...others } = policy
  const [other] = Object.keys(others)
  if (other !== undefined || onConflict === 'newest')
    throw new BatchError(
      `policy.${other ?? 'on_conflict'}: this can't be said over HTTP; send the batch over the queues`,
    )
  const ofScope = kind === 'token-create' ? (scope ?? tokenScope) : undefined
  return {
    kind,
    ...(ofScope !== undefined && { token_scope: ofScope }),
    ...(onConflict !== undefined && { on_conflict: onConflict }),
    ...(onExpired !== undefined && { on_expired: onExpired }),
    ...(dryRun && { dry_run: 'true' as const }),
  }
}

async function* partsOf<Record extends object>(
  list: AsyncIterable<Record> | Iterable<Record>,
): AsyncGenerator<Part<Record>, void, void> {
  let part: Part<Record> = { position: 0, before: 0, records: [], rows: '' }
  for await (const record of list) {
    if (part.records.length === PART_RECORDS) {
      yield part
      const { position, before, records } = part
      part = { position: position + 1, before: before + records.length, records: [], rows: '' }
    }
    part.rows += `${JSON.stringify(rowOf(record, part.before + part.records.length))}\n`
    part.records.push(record)
  }
  if (part.records.length > 0) yield part
}

/** The record as a flat row. Throws for a member that no row has. */
function rowOf(record: object, index: number): Record<string, unknown> {
  const row: Record<string, unknown> = {}
  const put = (name: string, value: unknown): void => {
    if (value === undefined) return
    const column = COLUMNS[name]
    if (column === undefined)
      throw new BatchError(
        `record ${index + 1}: ${name} is no member of a record, or can't be said over HTTP; correct it, or send the batch over the queues`,
      )
    row[column] = value
  }
  for (const [name, value] of Object.entries(record)) {
    if (name !== 'card' || typeof value !== 'object' || value === null) put(name, value)
    else for (const [part, of] of Object.entries(value)) put(`card.${part}`, of)
  }
  return row
}

/** A row of a part has the number of its line there; a record that of its place in the list. */
function endedOf<Record>({ before, records }: Part<Record>, results: RecordResult[]): Ended<Record>[] {
  if (results.length !== records.length)
    throw new BatchError(`a part of ${records.length} records has ${results.length} results`)
  return records.map((record, index) => ({
    record,
    result: { ...(results[index] as RecordResult), line: before + index + 1 },
  }))
}
