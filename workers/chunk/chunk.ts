// A chunk's block, opened and read: each record has the form of its kind, or is refused on its own. What a record does
// to a token is decided elsewhere.
import { isUtf8 } from 'node:buffer'
import type { z } from 'zod'
import { isRefusal, type Reason, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { canonical, chunkText } from '../../src/job/envelope/digest.ts'
import { mayNeedMore, recordsRefusal } from '../../src/job/envelope/roles.ts'
import { someText } from '../../src/job/on-file.ts'
import { clearNumbersOf, couldHoldNumber, nameRefusal } from '../../src/job/pan-in-names.ts'
import { type BlockForm, spreadColumns } from '../../src/job/record-columns.ts'
import type { ReferenceRecord } from '../../src/job/reference.ts'
import { parse } from '../../src/job/refusal.ts'
import { CHUNK, type CreateRecord, RecordHead, type TokenBatch, type UpdateRecord } from '../../src/job/token-batch.ts'
import type { TokenLifecycle } from '../../src/job/token-lifecycle.ts'
import type { Batch } from '../../src/store/batch/batch-row.ts'
import type { Db } from '../../src/store/pool.ts'
import { couldLookLikeCard, openPanLookalikes, type PanLookalikes } from '../../src/token/pan-lookalike.ts'
import { blockFormOf } from '../../src/vault/capture/block.ts'
import { openBlockByLine } from '../../src/vault/capture/line.ts'
import { openForClient } from '../card/open-capture.ts'
import type { Deps } from '../deps.ts'
import { rolesHeld } from '../line/admit.ts'
import type { MadeScheme, SchemeResult } from '../networks.ts'
import type { AskedCard, RequestContent, Work } from '../work.ts'

export type RecordRequest = CreateRecord | UpdateRecord | TokenLifecycle | ReferenceRecord
/** The schema of the requests of one kind of record. */
export type RecordSchema = z.ZodType<RecordRequest>

export type ChunkRecord = { line: number; reference: string | undefined } & (
  | { request: RecordRequest }
  | { reason: Reason; field: string | undefined }
)

/** What the records of a chunk have in common. `batch` is undefined in a dry run, which stores no token. */
export interface ChunkContext {
  work: Work<TokenBatch>
  batch: Batch | undefined
  /** The attempt is a probe of bisection: nothing is stored. */
  isProbe: boolean
  /** ms since the epoch; freshness and expiry of all records of the batch are decided by this time. */
  acceptedAt: number
  /**
   * The numbers of the client's other batches of the same file with the same policy, as far as they have written what the
   * chunk reads (`withFormer` in batch.ts).
   */
  former: ReadonlySet<number>
  /**
   * The cards of the chunk; cards are added when they are decrypted. Undefined if no text of a record could look like a
   * card.
   */
  cards: PanLookalikes | undefined
}

/** The records that were decided. `save` writes them and returns how each ended. */
export interface Decided {
  save(db: Db): Promise<RecordOutcome[]>
}

/** How the network action of a record ended; for a token with another card, what was made for that card. */
export type ActedRecord = SchemeResult | MadeScheme

/** How the network actions of records ended, by line. */
export type ActedRecords = ReadonlyMap<number, ActedRecord>

/** Works the records of a kind that a feature has. The composition hands it down. */
export interface FeatureRecords {
  request: RecordSchema
  /** Asks for what the records want, before the chunk is decided. Throws `Postponed`. */
  reach(
    records: readonly ChunkRecord[],
    context: ChunkContext,
    mayHaveReceipt: boolean,
    deps: Deps,
  ): Promise<ActedRecords>
  decide(records: readonly ChunkRecord[], acted: ActedRecords, context: ChunkContext, deps: Deps): Promise<Decided>
}

/** Decrypts the block. A refusal if it can't be decrypted, or has a form that this release doesn't know. */
export async function openChunk(
  { request, claims, client, block = '' }: Work<TokenBatch>,
  { directory, captureUse }: Pick<Deps, 'directory' | 'captureUse'>,
): Promise<Buffer | Refusal> {
  const { public_key_alias: alias } = request.block
  const opened = await openForClient({ alias, client }, directory, line =>
    openBlockByLine(block, line, { iss: claims.iss, jti: claims.jti }),
  )
  if (isRefusal(opened))
    return opened.reason === 'alias_unknown' ? refuse('alias_unknown', 'body.request.block.public_key_alias') : opened
  captureUse.note(opened.keyId, client.clientId)
  return blockFormOf(block) ? opened.plaintext : refuse('field_format', 'body.request.block')
}

/** The form of a block; `rows` if its header names none that is known. */
export function formOf({ block = '' }: Work<TokenBatch>): BlockForm {
  return blockFormOf(block) ?? 'rows'
}

/** The job that keeps what its cards say; undefined for a dry run, which leaves no receipt. */
export const keeperOf = (work: Work<TokenBatch>) => (work.request.dry_run ? undefined : work)

/** The records as NDJSON, whatever the block's form; undefined if its columns can't be read. */
function rowsOf(text: Buffer, { block }: Pick<TokenBatch, 'block'>, form: BlockForm): Buffer | undefined {
  return form === 'rows' ? text : spreadColumns(text, block.records)
}

/**
 * What a chunk says. Each record with an encrypted card counts by its other members and by what the card says; any other
 * byte for byte.
 */
export function contentOfChunk(work: Work<TokenBatch>, opened: Buffer): RequestContent {
  const { request } = work
  const lines = (rowsOf(opened, request, formOf(work)) ?? opened).toString('latin1').split('\n')
  const records = lines.map(line => ({ line, sealed: sealedOf(line, request.token_scope) }))
  return {
    cards: records.flatMap(({ sealed }) => sealed?.card ?? []),
    textOf(says) {
      const texts = records.map(({ line, sealed }) => {
        const card = sealed && says(sealed.card.encryptedCard)
        return card === undefined ? line : `${sealed?.rest} ${card}`
      })
      return chunkText(request, Buffer.from(texts.join('\n')))
    },
  }
}

/** The encrypted card of a record, and the text of the record without it; undefined for any other line. */
function sealedOf(line: string, chunkScope: string | undefined): { card: AskedCard; rest: string } | undefined {
  if (!line.includes('"encrypted_card"')) return undefined
  const value = parseLine(Buffer.from(line, 'latin1')) as { request?: Record<string, unknown> } | null | undefined
  const { encrypted_card: encryptedCard, public_key_alias: alias, ...request } = value?.request ?? {}
  if (typeof encryptedCard !== 'string' || typeof alias !== 'string') return undefined
  const { token_scope: tokenScope = chunkScope, id } = request
  const of = { ...(typeof tokenScope === 'string' && { tokenScope }), ...(typeof id === 'string' && { id }) }
  try {
    return { card: { encryptedCard, alias, ...of }, rest: canonical({ ...value, request }) }
  } catch {
    // It is nested too deeply, and was rejected.
    return undefined
  }
}

const NEWLINE = 0x0a

export interface ReadChunk {
  /** One entry for each record of the block. */
  records: ChunkRecord[]
  /** The requests of `records` as they were sent; undefined for a record that can't be read. */
  requests: unknown[]
  /** The cards in clear; undefined if no text of a record could be one of them. */
  cards: PanLookalikes | undefined
}

/**
 * Reads the records. A refusal if the block is too large, doesn't have the stated form, or has another number of
 * records than stated.
 */
export function readRecords(
  text: Buffer,
  { block }: Pick<TokenBatch, 'block'>,
  schema: RecordSchema,
  form: BlockForm = 'rows',
): ReadChunk | Refusal {
  if (text.length > CHUNK.bytesMax) return refuse('block_records', 'body.request.block')
  const plaintext = rowsOf(text, { block }, form)
  if (!plaintext) return refuse('field_format', 'body.request.block')
  const records: ChunkRecord[] = []
  const requests: unknown[] = []
  for (let start = 0; start < plaintext.length; ) {
    let end = plaintext.indexOf(NEWLINE, start)
    if (end === -1) end = plaintext.length
    if (end > start) {
      if (records.length === block.records) return refuse('block_records', 'body.request.block')
      const { record, request } = readRecord(plaintext, start, end, schema, records.length)
      records.push(record)
      requests.push(request)
    }
    start = end + 1
  }
  if (records.length !== block.records) return refuse('block_records', 'body.request.block')
  return { records, requests, cards: pansOf(requests, records) }
}

/**
 * The refusal of a chunk with a record that needs, beside the role of its kind, one that the sender lacks. Nothing is done
 * for a sender who may not ask for all of it. A chunk that can't be read is refused for that, later.
 */
export function recordRolesRefusal(
  work: Work<TokenBatch>,
  plaintext: Buffer,
  schema: RecordSchema,
  { catalogue }: Pick<Deps, 'catalogue'>,
): Refusal | undefined {
  const { request, claims, client } = work
  const held = rolesHeld(claims, client)
  // The records of a sender who holds every role that a record could need aren't read for it.
  const kind = catalogue.entry(request.record_kind)
  if (!mayNeedMore(kind, held)) return undefined
  const read = readRecords(plaintext, request, schema, formOf(work))
  if (isRefusal(read)) return undefined
  const { records, requests } = read
  const asked = records.map(({ line }, index) => ({ line, request: requests[index] }))
  return recordsRefusal(held, kind, asked)
}

/** The cards in clear; undefined if no text of a record could be one of them. */
export function pansOf(requests: readonly unknown[], records: readonly ChunkRecord[]): PanLookalikes | undefined {
  if (!records.some(({ reference }) => couldLookLikeCard(reference)) && !requests.some(couldNameCard)) return undefined
  return numbersOf(requests)
}

/** The cards in clear. */
export function numbersOf(requests: readonly unknown[]): PanLookalikes {
  const cards = openPanLookalikes()
  for (const request of requests) for (const number of clearNumbersOf(request)) cards.add(number)
  return cards
}

/** Whether a text in the record's `on_file` could look like a card number. */
function couldNameCard(request: unknown): boolean {
  const given = (request as { on_file?: unknown } | null | undefined)?.on_file
  return given !== undefined && someText(given, couldLookLikeCard)
}

/** A record, and its request as it was sent. `index`: its place in the chunk. */
export function readRecord(
  plaintext: Buffer,
  start: number,
  end: number,
  schema: RecordSchema,
  index: number,
): { record: ChunkRecord; request?: unknown } {
  // A record whose line number can't be read gets its place in the chunk as number.
  const nameless = { line: index + 1, reference: undefined }
  if (end - start > CHUNK.lineBytesMax) return { record: { ...nameless, reason: 'record_too_large', field: undefined } }
  const text = plaintext.subarray(start, end)
  if (!isUtf8(text)) return { record: { ...nameless, reason: 'row_utf8', field: undefined } }
  const value = parseLine(text)
  if (value === undefined) return { record: { ...nameless, reason: 'row_json', field: undefined } }
  // The request as it was sent: the schema's copy lacks unknown members.
  const request = (value as { request?: unknown } | null)?.request
  return { record: recordOf(value, request, schema, nameless), request }
}

/** The value; undefined for anything but JSON. */
function parseLine(text: Buffer): unknown {
  try {
    return JSON.parse(text.toString('utf8'))
  } catch {
    return undefined
  }
}

function recordOf(
  value: unknown,
  request: unknown,
  schema: RecordSchema,
  nameless: { line: number; reference: undefined },
): ChunkRecord {
  const head = parse(RecordHead, value, 'body')
  if (isRefusal(head)) return { ...nameless, ...lineOf(value), ...reasonOf(head) }
  const { line, rejected } = head.value
  // An empty one is none, as a receipt has it.
  const reference = head.value.reference || undefined
  const named = couldHoldNumber(reference) && nameRefusal({ reference }, clearNumbersOf(request))
  if (named) return { line, reference: undefined, ...reasonOf(named) }
  if (rejected) return { line, reference, reason: rejected.reason as Reason, field: rejected.field }
  const parsed = parse(schema, request ?? {}, 'body')
  return isRefusal(parsed) ? { line, reference, ...reasonOf(parsed) } : { line, reference, request: parsed.value }
}

function lineOf(value: unknown): { line?: number } {
  const line = (value as { line?: unknown } | null)?.line
  return RecordHead.shape.line.safeParse(line).success ? { line: line as number } : {}
}

export function reasonOf({ reason, field }: Refusal): { reason: Reason; field: string } {
  return { reason, field }
}
