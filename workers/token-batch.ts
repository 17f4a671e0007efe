// `token-batch`: a chunk of up to a thousand records walks the line as one job. One asymmetric operation decrypts the
// chunk, its records are checked in memory, and one statement per table writes them. The receipt is the checkpoint.
import { isRefusal, type Refusal, refuse } from '../src/errors.ts'
import type { CreatedRecords } from '../src/job/answer/created-columns.ts'
import { textsOf } from '../src/job/answer/created-records.ts'
import {
  count,
  countReasons,
  joinTokens,
  pack,
  type RecordOutcome,
  tokensNamed,
  toResult,
  unpack,
} from '../src/job/chunk-outcomes.ts'
import { chunkText } from '../src/job/envelope/digest.ts'
import type { BlockForm } from '../src/job/record-columns.ts'
import { batchLayout, RECORD_REQUESTS, type TokenBatch } from '../src/job/token-batch.ts'
import * as audits from '../src/store/access/audits.ts'
import * as dryRuns from '../src/store/batch/dry-runs.ts'
import type { Receipt } from '../src/store/job/receipts.ts'
import * as tokens from '../src/store/token/tokens.ts'
import { holdBatch, joinBatch, pauseOf, takeLast } from './chunk/batch.ts'
import { decideChanges, type PreparedChange, prepareChanges } from './chunk/changes.ts'
import {
  type ActedRecords,
  type ChunkContext,
  type ChunkRecord,
  contentOfChunk,
  type FeatureRecords,
  formOf,
  openChunk,
  type RecordSchema,
  readRecords,
  recordRolesRefusal,
} from './chunk/chunk.ts'
import { decideCreates } from './chunk/create/creates.ts'
import { readMixed } from './chunk/create/plain.ts'
import { openPlainWay, type PlainCreates } from './chunk/create/plain-creates.ts'
import { prepareAll } from './chunk/create/prepare.ts'
import { decideDryRun } from './chunk/dry-run.ts'
import type { PreparedCreate, ProvisionedCards } from './chunk/fold.ts'
import { refuseCardLikeReferences } from './chunk/references.ts'
import { decideReleases, type PreparedRelease, prepareReleases } from './chunk/releases.ts'
import { actForChanges } from './chunk/scheme-actions.ts'
import { sourceTimeRefusal } from './chunk/source-times.ts'
import { provisionCards } from './chunk/third-parties.ts'
import type { Deps } from './deps.ts'
import type { ChunkAnswer, Decision, Handler, Selection, Work } from './work.ts'

interface Prepared {
  context: ChunkContext
  /** Outcomes of the records that are decided before any row of the store is read. */
  known: RecordOutcome[]
  creates: PreparedCreate[]
  /** Creates that are worked in columns. */
  plain: PlainCreates | undefined
  changes: PreparedChange[]
  /** Records of the kind `scheme-token`. */
  schemes: readonly ChunkRecord[]
  releases: PreparedRelease[]
  /** What networks answered to records. */
  acted: ActedRecords
  /** What third parties made; undefined for a dry run, which calls none. */
  provisioned: ProvisionedCards | undefined
}

const CARD_AGE_MS_MAX = 86_400_000
const BATCH_AGE_MS_MAX = 7 * 86_400_000
const SKEW_MS = 60_000

/** `schemeRecords`: absent in a product without networks, which refuses chunks of such records. */
export function openTokenBatch({
  schemeRecords,
}: {
  schemeRecords?: FeatureRecords
}): Handler<TokenBatch, Buffer, Prepared> {
  const schemaOf = ({ request: { record_kind: kind } }: Work<TokenBatch>) =>
    kind === 'scheme-token' ? schemeRecords?.request : RECORD_REQUESTS[kind]
  return {
    pauseOf,
    takeBeside: takeLast,
    open: openChunk,
    permits(work, plaintext, deps) {
      const schema = schemaOf(work)
      return schema && recordRolesRefusal(work, plaintext, schema, deps)
    },
    digestText: (work, plaintext) => chunkText(work.claims.request, plaintext),
    contentOf: contentOfChunk,

    async prepare(work, plaintext, deps, previous, selection) {
      const schema = schemaOf(work)
      if (!schema) return refuse('field_value', 'body.request.record_kind')
      return prepare(work, { plaintext, schema }, deps, previous, selection)
    },

    async reach(work, prepared, deps, previous) {
      const { creates, schemes, changes, context } = prepared
      if (work.request.dry_run) return prepared
      const again = previous !== undefined
      const provisioned = await provisionCards(creates, context, again, deps)
      const acted =
        schemeRecords && schemes.length > 0
          ? await schemeRecords.reach(schemes, context, again, deps)
          : await actForChanges(changes, context, again, deps)
      return { ...prepared, provisioned, acted }
    },

    async decide(work, prepared, deps): Promise<Decision> {
      const { context, known, creates, plain, provisioned, changes, schemes, releases, acted } = prepared
      const made = context.batch
        ? await decideCreates({ prepared: creates, plain, provisioned }, context, deps)
        : await decideDryRun({ prepared: creates, plain }, context, deps)
      const changed = await decideChanges(changes, context, deps, acted)
      const asked = await schemeRecords?.decide(schemes, acted, context, deps)
      const released = decideReleases(releases, context, deps)
      return {
        save: async db => {
          const { outcomes, created } = await made.save(db)
          const saved = [...outcomes]
          for (const decided of [changed, asked, released]) if (decided) saved.push(...(await decided.save(db)))
          // Third parties' tokens for records that made no token, and scheme tokens for cards that no token has got.
          if (mayLeave(work) && context.batch) await deps.networks.leftovers.end(db, work.receiptId, deps.clock())
          const records = [...known, ...saved].sort((a, b) => a.line - b.line)
          if (context.batch && !context.isProbe) await holdBatch(db, context.batch, work.request.chunk)
          return {
            recordKind: work.request.record_kind,
            batchNo: context.batch?.batchNo ?? null,
            chunk: work.request.chunk,
            reasons: countReasons(records),
            ...toldOf(records, created, work.claims.optional?.result_columns === true),
            dryRun: work.request.dry_run === true,
          }
        },
      }
    },

    // If a chunk ends without a receipt, third parties' tokens that it asked for are retired, too.
    async abandon(work, { networks, store, clock }) {
      await networks.leftovers.abandon(store, work.receiptId, clock())
    },
  }
}

async function prepare(
  work: Work<TokenBatch>,
  { plaintext, schema }: { plaintext: Buffer; schema: RecordSchema },
  deps: Deps,
  previous: Receipt | undefined,
  selection: Selection,
): Promise<Prepared | Refusal> {
  const { request } = work
  const misnamed = jtiRefusal(work)
  if (misnamed) return misnamed
  const way = previous || isPartial(selection) ? undefined : await openPlainWay(work, deps)
  const form = formOf(work)
  const mixed = way && readMixed(plaintext, { request, form }, way.reader)
  const begun = mixed ?? readRecords(plaintext, request, schema, form)
  if (isRefusal(begun)) return begun
  const hasSealed = way !== undefined && way.reader.sealed.length > 0
  const batched = await contextOf(work, begun.records, deps, { ...selection, form, hasSealed })
  if (isRefusal(batched)) return batched
  // Each record of a cancelled batch is answered as an object.
  const isCancelled = batched.batch !== undefined && batched.batch.cancelledAt !== null
  const plain = isCancelled ? undefined : mixed?.plain
  const read = mixed && !plain ? readRecords(plaintext, request, schema, form) : begun
  if (isRefusal(read)) return read
  const { records, cards } = read
  const context: ChunkContext = { ...batched, cards, former: new Set() }
  const before = previous?.outcomes ? await decidedBefore(previous.outcomes, deps) : undefined
  const { known, open } = sortOut(records, context, before, selection)
  for (const record of open) deps.inspect?.(record)
  const none = {
    context,
    creates: [],
    plain: undefined,
    changes: [],
    schemes: [],
    releases: [],
    acted: new Map(),
    provisioned: undefined,
  }
  if (request.record_kind === 'scheme-token') {
    const judged = refuseCardLikeReferences({ known, prepared: open }, cards)
    return { ...none, known: judged.known, schemes: judged.prepared }
  }
  if (request.record_kind === 'reference') {
    const { refused, prepared } = await prepareReleases(open, context, deps)
    const judged = refuseCardLikeReferences({ known: [...known, ...refused], prepared }, cards)
    return { ...none, known: judged.known, releases: judged.prepared }
  }
  if (request.record_kind === 'token-create') {
    return { ...none, ...(await prepareAll({ open, known, way: plain && way }, context, deps)) }
  }
  const { refused, prepared } = await prepareChanges(open, context, deps)
  const judged = refuseCardLikeReferences({ known: [...known, ...refused], prepared }, cards)
  return { ...none, known: judged.known, changes: judged.prepared }
}

/** Whether records of this kind may have had something made at a provider that no token's row takes over. */
function mayLeave({ request: { record_kind: kind } }: Work<TokenBatch>): boolean {
  return kind === 'token-create' || kind === 'token-update'
}

/** Not all records are worked. */
function isPartial({ probe, skipped }: Selection): boolean {
  return probe !== undefined || skipped.size > 0
}

/** `created`: the records in columns that made a token; their outcomes are no objects. */
function toldOf(
  records: readonly RecordOutcome[],
  created: CreatedRecords | undefined,
  inColumns: boolean,
): Pick<ChunkAnswer, 'counts' | 'asObjects' | 'records' | 'columns' | 'packed'> {
  const asObjects = count(records)
  if (!created) return { counts: asObjects, asObjects, records: records.map(toResult), packed: pack(records) }
  const counts = { ...asObjects, CREATED: asObjects.CREATED + created.byLine.length }
  return { counts, asObjects, ...textsOf(records, created, inColumns) }
}

/** A chunk's jti must name the chunk; a dry run has a random jti. */
function jtiRefusal({ request, claims }: Work<TokenBatch>): Refusal | undefined {
  const named = request.dry_run
    ? /^dry-[A-Za-z0-9_-]{8,64}-\d+$/.test(claims.jti)
    : claims.jti === `${request.batch_id}-${request.chunk}`
  return named && claims.jti.endsWith(`-${request.chunk}`) ? undefined : refuse('field_format', 'body.jti')
}

async function contextOf(
  work: Work<TokenBatch>,
  records: ChunkRecord[],
  deps: Deps,
  { probe, form, hasSealed }: Selection & { form: BlockForm; hasSealed: boolean },
): Promise<Omit<ChunkContext, 'cards' | 'former'> | Refusal> {
  const { request, client, acceptedAt: iat, claims } = work
  const untimed = sourceTimeRefusal(request)
  if (untimed) return untimed
  const given = request.accepted_at * 1000
  if (given > iat + SKEW_MS) return refuse('envelope_future', 'body.request.accepted_at')
  if (request.dry_run) {
    // The attempt before this probe was counted.
    if (probe) return { work, batch: undefined, isProbe: true, acceptedAt: given }
    const used = await dryRuns.use(deps.store, client.clientId, request.block.records)
    if (used > deps.settings.dryRunRowsMax) return refuse('dry_run_rows', 'body.request.dry_run')
    // A dry run has no effect, but an audit row shows that a client asked which cards have a token.
    const subject = request.token_scope ?? request.record_kind
    const detail = { jti: claims.jti, rows: request.block.records }
    await audits.insert(deps.store, { actor: client.clientId, action: 'dry-run', subject, detail })
    return { work, batch: undefined, isProbe: false, acceptedAt: given }
  }
  const first = {
    clientId: client.clientId,
    entityId: await entityOf(work, deps),
    batchId: request.batch_id,
    recordKind: request.record_kind,
    tokenScope: request.token_scope ?? null,
    chunkRecords: request.chunk_records,
    layout: batchLayout(request, form),
    acceptedAt: given,
  }
  const batch = await joinBatch(deps.store, first, request)
  if (isRefusal(batch)) return batch
  const oldest = hasSealed || records.some(isSealed) ? CARD_AGE_MS_MAX : BATCH_AGE_MS_MAX
  if (claims.iat * 1000 - batch.acceptedAt > oldest) return refuse('batch_too_old', 'body.request.accepted_at')
  return { work, batch, isProbe: probe !== undefined, acceptedAt: batch.acceptedAt }
}

function isSealed(record: ChunkRecord): boolean {
  return 'request' in record && 'encrypted_card' in record.request && record.request.encrypted_card !== undefined
}

/** Whose batch it is: of the entity of its scope, if the client acts for that one; else of the one that the envelope claims. */
async function entityOf({ request, client, claims }: Work<TokenBatch>, { directory }: Deps): Promise<string> {
  const scope = request.token_scope === undefined ? undefined : await directory.scope(request.token_scope)
  return scope && client.entities.includes(scope.entityId) ? scope.entityId : claims.entity_id
}

/** The outcomes in the receipt of this chunk, by line, with the present data of the tokens. */
async function decidedBefore(outcomes: string, { store }: Pick<Deps, 'store'>): Promise<Map<number, RecordOutcome>> {
  const unpacked = unpack(outcomes)
  const rows = await tokens.findByIds(store, tokensNamed(unpacked))
  const byId = new Map(rows.map(row => [row.tokenId, row]))
  return new Map(unpacked.map(record => [record.line, joinTokens(record, byId)]))
}

/**
 * Separates the records whose outcome is known without the store: refused by the file's reader or for their form,
 * cancelled, skipped, or decided by an earlier run of this chunk.
 */
function sortOut(
  records: ChunkRecord[],
  context: ChunkContext,
  decided: ReadonlyMap<number, RecordOutcome> | undefined,
  { skipped, probe }: Selection,
): { known: RecordOutcome[]; open: ChunkRecord[] } {
  const known: RecordOutcome[] = []
  const open: ChunkRecord[] = []
  const cancelled = context.batch !== undefined && context.batch.cancelledAt !== null
  for (const [index, record] of records.entries()) {
    const { line, reference } = record
    const before = decided?.get(line)
    if (probe && (index < probe.from || index >= probe.to)) continue
    if (before && before.outcome !== 'FAILED') known.push(before)
    else if (cancelled)
      known.push({ line, reference, outcome: 'CANCELLED', reason: 'cancelled', field: undefined, token: undefined })
    else if (skipped.has(index))
      known.push({ line, reference, outcome: 'FAILED', reason: 'internal', field: undefined, token: undefined })
    else if ('reason' in record)
      known.push({
        line,
        reference,
        outcome: 'REJECTED',
        reason: record.reason,
        field: record.field,
        token: undefined,
      })
    else open.push(record)
  }
  return { known, open }
}
