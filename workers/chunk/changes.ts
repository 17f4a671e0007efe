// The `token-update` and `token-lifecycle` records of a chunk: tokens looked up at once, the rules folded in file
// order, one update for all rows that changed.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { UpdateRecord } from '../../src/job/token-batch.ts'
import type { TokenLifecycle } from '../../src/job/token-lifecycle.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Db } from '../../src/store/pool.ts'
import * as beforeImages from '../../src/store/token/before-images.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import * as tokens from '../../src/store/token/tokens.ts'
import { type CardInput, checkCard } from '../../src/token/card.ts'
import { type Given, lifecycle, update } from '../../src/token/decide.ts'
import { isSupported, type SchemeAction } from '../../src/token/scheme.ts'
import { factsOf } from '../card/card-facts.ts'
import { tokensFor } from '../card/find-token.ts'
import { noteMisses } from '../card/guessing.ts'
import { openCapture } from '../card/open-capture.ts'
import { sealRow } from '../card/seal-row.ts'
import type { Deps } from '../deps.ts'
import { type Doer, replace, retire } from '../provider/follow.ts'
import type { ChunkContext, Decided } from '../token-batch.ts'
import { givenOf } from '../token-create.ts'
import { plainFieldsOf } from '../token-update.ts'
import type { ChunkRecord } from './chunk.ts'
import { rejected } from './fold.ts'
import { digitsOf, openRehearsedGuesses, type RehearsedGuesses } from './rehearsed-guesses.ts'
import type { ActedRecords } from './schemes.ts'

export type PreparedChange = { line: number; reference: string | undefined; id: string } & (
  | { action: TokenLifecycle['action'] }
  | { given: Given; card: CardInput | undefined; field: string; schemeAction: SchemeAction | undefined }
)

export async function prepareChanges(
  records: readonly ChunkRecord[],
  context: ChunkContext,
  deps: Deps,
): Promise<{ refused: RecordOutcome[]; prepared: PreparedChange[] }> {
  const refused: RecordOutcome[] = []
  const prepared: PreparedChange[] = []
  for (const record of records) {
    if (!('request' in record)) throw new Error('broken law: records without a request are settled before')
    const { line, reference } = record
    if ('action' in record.request) {
      prepared.push({ line, reference, id: record.request.id, action: record.request.action })
      continue
    }
    const request = record.request as UpdateRecord
    const card = await cardOf(request, reference, context, deps)
    if (isRefusal(card)) refused.push(rejected(record, card))
    else {
      const given = { ...(card ? givenOf(card) : {}), ...plainFieldsOf(request) }
      prepared.push({
        line,
        reference,
        id: request.id,
        given,
        card,
        field: request.card ? 'body.card' : 'body.encrypted_card',
        schemeAction: request.scheme_token_action,
      })
    }
  }
  // Rules are applied in file order, whatever order the lines of a block stand in.
  return { refused, prepared: prepared.sort((a, b) => a.line - b.line) }
}

async function cardOf(
  request: UpdateRecord,
  reference: string | undefined,
  context: ChunkContext,
  deps: Deps,
): Promise<CardInput | Refusal | undefined> {
  if (request.card !== undefined) {
    return request.encrypted_card === undefined
      ? checkCard(request.card, 'body.card')
      : refuse('field_conflict', 'body.card')
  }
  if (request.encrypted_card === undefined) return undefined
  if (request.public_key_alias === undefined) return refuse('field_required', 'body.public_key_alias')
  const { encrypted_card: encrypted, public_key_alias: alias } = request
  return openCapture(encrypted, alias, context.work.client, context.acceptedAt, { reference }, deps)
}

export async function decideChanges(
  prepared: readonly PreparedChange[],
  context: ChunkContext,
  deps: Deps,
  acted: ActedRecords,
): Promise<Decided> {
  if (prepared.length === 0) return { save: async () => [] }
  const { work } = context
  const visible = await tokensFor(work.client, [...new Set(prepared.map(({ id }) => id))], deps)
  const bases = new Map([...visible.values()].map(row => [row.tokenId, row]))
  const rows = new Map(bases)
  const outcomes: RecordOutcome[] = []
  /** Of tokens that stand for another card now, by id. */
  const wishes = new Map<string, SchemeAction | undefined>()
  const tries = work.request.dry_run ? openRehearsedGuesses(work.client.clientId, deps) : undefined
  const linked: StoredToken[] = []
  for (const change of prepared) {
    const tokenId = visible.get(change.id)?.tokenId
    const row = tokenId === undefined ? undefined : rows.get(tokenId)
    const scheme = acted.get(change.line)
    const refused = isRefusal(scheme) ? scheme : undefined
    const next =
      refused ?? (row ? await apply(change, row, rows, context, deps, tries) : refuse('token_not_found', 'body.id'))
    if (isRefusal(next)) outcomes.push(rejected(change, next))
    else {
      if (scheme === 'changed') next.outcome = 'UPDATED'
      if (row && !isSameCard(row, next.row)) {
        linked.push(next.row)
        if ('given' in change) wishes.set(next.row.tokenId, change.schemeAction)
      }
      rows.set(next.row.tokenId, next.row)
      const { line, reference } = change
      outcomes.push({ line, reference, outcome: next.outcome, reason: undefined, field: undefined, token: next.row })
    }
  }
  for (const outcome of outcomes) if (outcome.token) outcome.token = rows.get(outcome.token.tokenId)
  const changed = [...rows.values()].filter(row => row !== bases.get(row.tokenId))
  if (tries) {
    return {
      save: async db => {
        await tries.save(db)
        return outcomes.map(outcome => ({ ...outcome, token: undefined }))
      },
    }
  }
  noteMisses(work.client.clientId, linked, deps)
  return {
    save: async db => {
      await tokens.updateAll(
        db,
        changed.map(row => ({ ...row, version: (bases.get(row.tokenId)?.version ?? 0) + 1 })),
      )
      const deleted = changed.filter(row => row.status === 'DELETED')
      await beforeImages.eraseOf(
        db,
        deleted.map(row => row.tokenId),
      )
      await retire(
        db,
        deleted.map(row => row.tokenId),
        deps,
      )
      const doer = { receiptId: work.receiptId, clientId: work.client.clientId }
      for (const [tokenId, wish] of wishes) await replaceCard(db, rows.get(tokenId), wish, doer, deps)
      return outcomes
    },
  }
}

async function replaceCard(
  db: Db,
  row: StoredToken | undefined,
  wish: SchemeAction | undefined,
  doer: Doer,
  deps: Deps,
): Promise<void> {
  const scope = row && (await scopes.find(db, row.tokenScope))
  if (row && row.status !== 'DELETED' && scope && isSupported(scope))
    await replace(db, row, scope, wish === 'SUSPEND' ? undefined : wish, doer, deps)
}

/** What the rules say of an update without a card, before a network is asked for it. */
export function judgeChange(
  change: PreparedChange,
  row: StoredToken,
  { now, receiptId }: ChunkContext['work'],
): Refusal | undefined {
  const verdict = 'given' in change ? update(row, change.given, { now, receiptId }) : undefined
  return isRefusal(verdict) ? verdict : undefined
}

function isSameCard(one: StoredToken, other: StoredToken): boolean {
  return (
    one.fingerprint === other.fingerprint || (one.fingerprint?.equals(other.fingerprint ?? Buffer.alloc(0)) ?? false)
  )
}

/** One record's verdict over the rows as earlier records left them. */
async function apply(
  change: PreparedChange,
  row: StoredToken,
  rows: ReadonlyMap<string, StoredToken>,
  { work }: ChunkContext,
  deps: Deps,
  tries: RehearsedGuesses | undefined,
): Promise<{ outcome: 'UPDATED' | 'UNCHANGED'; row: StoredToken } | Refusal> {
  const at = { now: work.now, receiptId: work.receiptId }
  if ('action' in change) {
    const verdict = lifecycle(row, change.action, at, 'body.id')
    if (isRefusal(verdict)) return verdict
    if (!verdict.changed) return { outcome: 'UNCHANGED', row: confirmed(row, work) }
    return {
      outcome: 'UPDATED',
      row: { ...verdict.row, sealVersion: verdict.row.sealed === null ? null : row.sealVersion },
    }
  }
  const scope = change.card && (await deps.directory.scope(row.tokenScope))
  const facts = change.card && scope && factsOf(change.card, scope, undefined, true, deps, change.field)
  if (isRefusal(facts)) return facts
  // What can be refused without asking about other cards is: an answer about those is counted, or leaves its trace.
  const verdict = update(row, { ...change.given, ...(facts ? { card: facts } : {}) }, at)
  if (isRefusal(verdict)) return verdict
  if (facts && tries) {
    await tries.load(row.tokenScope, [digitsOf(facts)])
    if (tries.isSpent(row.tokenScope, digitsOf(facts))) return refuse('guesses', change.field)
  }
  if (facts && !row.fingerprint?.equals(facts.fingerprint)) {
    const inChunk = [...rows.values()].some(
      other => other.tokenId !== row.tokenId && other.fingerprint?.equals(facts.fingerprint),
    )
    const [other] = await tokens.findByFingerprints(deps.store, [facts.fingerprint])
    if (inChunk || (other && other.tokenId !== row.tokenId)) return refuse('pan_taken', change.field)
    tries?.miss(row.tokenScope, digitsOf(facts))
  }
  if (!verdict.changed) return { outcome: 'UNCHANGED', row: confirmed(row, work) }
  return { outcome: 'UPDATED', row: sealRow(verdict, row, change.card?.pan, deps.ring) }
}

/** A row that a reversal could still put back is told that this batch has built on it. */
function confirmed(row: StoredToken, { now, receiptId }: ChunkContext['work']): StoredToken {
  const isYoung = now - row.updatedAt < beforeImages.BEFORE_IMAGE_HOURS * 3_600_000
  return row.mark === null && isYoung && row.lastReceipt !== receiptId ? { ...row, lastReceipt: receiptId } : row
}
