// Decides the `token-update` and `token-lifecycle` records of a chunk: the tokens are looked up at once, the rules
// applied in file order, and the changed rows updated at once.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { claimOf, type OnFileRecord } from '../../src/job/on-file.ts'
import type { UpdateRecord } from '../../src/job/token-batch.ts'
import type { TokenLifecycle } from '../../src/job/token-lifecycle.ts'
import { LostRace } from '../../src/store/pool.ts'
import * as references from '../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { type CardInput, checkCard } from '../../src/token/card.ts'
import { type CardFacts, type Given, lifecycle, update } from '../../src/token/decide.ts'
import type { Claim } from '../../src/token/on-file.ts'
import type { SchemeAction } from '../../src/token/scheme.ts'
import { isSameCard } from '../../src/token/token.ts'
import { confirmed } from '../card/before-image.ts'
import { findByCard } from '../card/by-card.ts'
import { factsOf } from '../card/card-facts.ts'
import { onFileRefusal } from '../card/claim.ts'
import { tokensFor } from '../card/find-token.ts'
import { countMisses, guessOf } from '../card/guess-limit.ts'
import { openCapture } from '../card/open-capture.ts'
import { sealRow } from '../card/seal-row.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from '../effect/effect.ts'
import { writeEffects } from '../effect/write-effect.ts'
import type { LinkedToken } from '../networks.ts'
import { givenOf } from '../token-create.ts'
import { plainFieldsOf } from '../token-update.ts'
import {
  type ActedRecord,
  type ActedRecords,
  type ChunkContext,
  type ChunkRecord,
  type Decided,
  keeperOf,
} from './chunk.ts'
import { ownersOf } from './claims.ts'
import { type DryRunGuesses, isSpent, openDryRunGuesses } from './dry-run-guesses.ts'
import { type ClaimingOutcome, rejected } from './fold.ts'
import { predictClaims, saveWithClaims } from './save-claims.ts'

interface GivenChange {
  given: Given
  card: CardInput | undefined
  /** The field that a refusal of the card names. */
  field: string
  schemeAction: SchemeAction | undefined
  onFile: OnFileRecord | undefined
}

export type PreparedChange = { line: number; reference: string | undefined; id: string } & (
  | { action: TokenLifecycle['action'] }
  | GivenChange
)

export async function prepareChanges(
  records: readonly ChunkRecord[],
  context: ChunkContext,
  deps: Deps,
): Promise<{ refused: RecordOutcome[]; prepared: PreparedChange[] }> {
  const refused: RecordOutcome[] = []
  const prepared: PreparedChange[] = []
  for (const record of records) {
    if (!('request' in record)) throw new Error('broken law: records without a request are refused before')
    const { line, reference } = record
    if ('action' in record.request && 'id' in record.request) {
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
        onFile: request.on_file,
      })
    }
  }
  // Rules are applied in file order; the lines of a block may be in another order.
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
  const { encrypted_card: encryptedCard, public_key_alias: alias } = request
  const { work, acceptedAt, cards } = context
  const capture = { encryptedCard, alias, client: work.client, acceptedAt, names: { reference }, cards }
  return openCapture({ ...capture, job: keeperOf(work) }, deps)
}

export async function decideChanges(
  prepared: readonly PreparedChange[],
  context: ChunkContext,
  deps: Deps,
  acted: ActedRecords,
): Promise<Decided> {
  if (prepared.length === 0) return { save: async () => [] }
  const { work } = context
  const visible = await visibleTokens(prepared, context, deps)
  const claims = await claimsOf(prepared, visible, deps)
  const known = await references.findByOwners(deps.store, ownersOf([...claims.values()].map(claim => ({ claim }))))
  const guesses = work.request.dry_run ? openDryRunGuesses(deps) : undefined
  const changes = await foldChanges(prepared, { context, deps, guesses, visible, acted, claims })
  // Neither a dry run nor a probe asks networks.
  if (changes.waiting.length > 0 && !guesses && !context.isProbe)
    throw new LostRace('a token got another card meanwhile')
  const { outcomes, rows, linked, bases } = changes
  for (const outcome of outcomes) if (outcome.token) outcome.token = rows.get(outcome.token.tokenId)
  const effect = guesses ? guesses.effect() : await effectOf(changes, work, deps)
  if (!guesses) countMisses(work.client.clientId, linked, deps)
  return {
    save: async db => {
      if (!guesses) {
        const beside = { effect, bases: [...bases.values()], references: known }
        await saveWithClaims(db, outcomes, beside, context, deps)
        return outcomes
      }
      await writeEffects(db, [effect], deps)
      predictClaims(outcomes, known, context)
      return outcomes.map(outcome => ({ ...outcome, token: undefined }))
    },
  }
}

/** The tokens that the records name, by the name that they use. */
export function visibleTokens(
  prepared: readonly PreparedChange[],
  { work }: ChunkContext,
  deps: Deps,
): Promise<Map<string, StoredToken>> {
  return tokensFor(work.client, [...new Set(prepared.map(({ id }) => id))], deps)
}

interface Folding {
  context: ChunkContext
  deps: Deps
  /** The tokens as they are stored, by the name that records use. */
  visible: ReadonlyMap<string, StoredToken>
  /** What networks have answered so far. */
  acted: ActedRecords
  /** Undefined unless the chunk is a dry run. */
  guesses?: DryRunGuesses | undefined
  claims?: ReadonlyMap<PreparedChange, Claim>
  /** Records of a token after the one that waits aren't decided before its answer is known. */
  stops?: boolean
}

/** Decides the records in file order. */
export async function foldChanges(prepared: readonly PreparedChange[], folding: Folding): Promise<Changes> {
  const { visible, acted, claims, stops = false } = folding
  const bases = new Map([...visible.values()].map(row => [row.tokenId, row]))
  const changes: Changes = {
    bases,
    rows: new Map(bases),
    outcomes: [],
    linked: [],
    schemes: new Map(),
    waiting: [],
  }
  const stopped = new Set<string>()
  for (const change of prepared) {
    const base = visible.get(change.id)
    if (base && stopped.has(base.tokenId)) continue
    const row = base && changes.rows.get(base.tokenId)
    const answer = acted.get(change.line)
    const end = isRefusal(answer) ? answer : await apply(change, row, changes, folding)
    if (isRefusal(end)) {
      changes.outcomes.push({ ...rejected(change, end), token: undefined, claim: undefined, tokenId: undefined })
      continue
    }
    const scheme = isRefusal(answer) ? undefined : answer
    const waiting = base && scheme === undefined ? waitingOf(change, base, end.row) : undefined
    if (waiting) changes.waiting.push(waiting)
    if (waiting && stops) stopped.add(waiting.base.tokenId)
    else record(changes, change, row, { ...end, scheme, claim: claims?.get(change) })
  }
  return changes
}

/** The network that a record waits for; undefined if it waits for none. `row`: the token as the record leaves it. */
function waitingOf(change: PreparedChange, base: StoredToken, row: StoredToken): WaitingChange | undefined {
  if (!('given' in change) || change.schemeAction === undefined) return undefined
  const { line, schemeAction: action } = change
  const isRelinked = !isSameCard(base.cards, row.cards)
  return isRelinked && action === 'DELETE' ? undefined : { line, action, base, row, isRelinked }
}

/** The claims of the records on source references. */
async function claimsOf(
  prepared: readonly PreparedChange[],
  visible: ReadonlyMap<string, StoredToken>,
  { directory }: Deps,
): Promise<Map<PreparedChange, Claim>> {
  const claims = new Map<PreparedChange, Claim>()
  for (const change of prepared) {
    const row = 'given' in change && change.onFile ? visible.get(change.id) : undefined
    const scope = row && (await directory.scope(row.tokenScope))
    if (scope && 'given' in change && change.onFile) claims.set(change, claimOf(change.onFile, scope))
  }
  return claims
}

/** A network's answer that is no refusal. */
type Answered = Exclude<ActedRecord, Refusal>

/** A record that asks a network which hasn't answered yet. */
export interface WaitingChange {
  line: number
  action: SchemeAction
  base: StoredToken
  row: StoredToken
  /** The token has another card than the stored one. */
  isRelinked: boolean
}

/** What the records of a chunk, up to the current one, have changed. */
interface Changes {
  /** The tokens as they are stored, by id. */
  bases: ReadonlyMap<string, StoredToken>
  /** The tokens as earlier records left them, by id. */
  rows: Map<string, StoredToken>
  outcomes: ClaimingOutcome[]
  /** Tokens that are now linked to another card. */
  linked: StoredToken[]
  /** What the records want of the scheme tokens of `linked`, by token id. */
  schemes: Map<string, Pick<LinkedToken, 'action' | 'made'>>
  waiting: WaitingChange[]
}

interface Applied {
  outcome: 'UPDATED' | 'UNCHANGED'
  row: StoredToken
}

function record(
  changes: Changes,
  change: PreparedChange,
  before: StoredToken | undefined,
  { outcome, row, scheme, claim }: Applied & { scheme: Answered | undefined; claim: Claim | undefined },
) {
  const isLinked = before !== undefined && !isSameRow(before, row)
  if (isLinked) changes.linked.push(row)
  if ('given' in change && (isLinked || change.schemeAction !== undefined)) {
    // A card without an action keeps what an earlier record of the chunk wanted of the token.
    const action = change.schemeAction ?? changes.schemes.get(row.tokenId)?.action
    changes.schemes.set(row.tokenId, { action, made: typeof scheme === 'object' ? scheme.provisionId : undefined })
  }
  changes.rows.set(row.tokenId, row)
  const { line, reference } = change
  const told = {
    line,
    reference,
    outcome: scheme === 'changed' ? ('UPDATED' as const) : outcome,
    reason: undefined,
    field: undefined,
    token: row,
  }
  changes.outcomes.push({ ...told, claim, tokenId: row.tokenId })
}

async function effectOf({ rows, schemes, bases }: Changes, work: ChunkContext['work'], deps: Deps): Promise<Effect> {
  const updates = [...rows.values()]
    .filter(row => row !== bases.get(row.tokenId))
    .map(row => ({ ...row, version: (bases.get(row.tokenId)?.version ?? 0) + 1 }))
  const deleted = updates.filter(row => row.status === 'DELETED').map(row => row.tokenId)
  const linked = [...schemes].flatMap(([tokenId, scheme]) => {
    const [token, base] = [rows.get(tokenId), bases.get(tokenId)]
    return token && base && !isSameRow(base, token) ? { token, ...scheme } : []
  })
  const job = { receiptId: work.receiptId, clientId: work.client.clientId }
  const { effects } = await deps.networks.schemeTokens.replace(deps.store, linked, job, deps)
  return { updates, erasedImages: deleted, networks: effects }
}

/** Whether the row still has its card. */
function isSameRow({ cards: one }: StoredToken, { cards: other }: StoredToken): boolean {
  return one === other || isSameCard(one, other)
}

/** Decides one record, over the rows as earlier records left them. */
async function apply(
  change: PreparedChange,
  row: StoredToken | undefined,
  changes: Changes,
  folding: Folding,
): Promise<Applied | Refusal> {
  if (!row) return refuse('token_not_found', 'body.id')
  return 'action' in change ? applyAction(change, row, folding.context) : applyUpdate(change, row, changes, folding)
}

function applyAction(
  { action, line }: { action: TokenLifecycle['action']; line: number },
  row: StoredToken,
  { work, acceptedAt }: ChunkContext,
): Applied | Refusal {
  const at = { now: work.now, receiptId: work.receiptId, giver: [acceptedAt, '', line] } as const
  const verdict = lifecycle(row, action, at, 'body.id')
  if (isRefusal(verdict)) return verdict
  if (verdict.touched) return { outcome: 'UNCHANGED', row: confirmed(row, work) }
  const sealVersion = verdict.row.sealed === null ? null : row.sealVersion
  return { outcome: verdict.changed ? 'UPDATED' : 'UNCHANGED', row: { ...verdict.row, sealVersion } }
}

async function applyUpdate(
  change: GivenChange & { line: number },
  row: StoredToken,
  { rows, bases }: Changes,
  { context: { work, acceptedAt }, deps, guesses }: Folding,
): Promise<Applied | Refusal> {
  const { card, field, onFile, schemeAction } = change
  const scope = card && (await deps.directory.scope(row.tokenScope))
  const facts = card && scope && factsOf(card, { scope, withAnalytics: true, field }, deps)
  if (isRefusal(facts)) return facts
  // The rules decide before other cards are searched: an answer about another card is counted as a guess.
  const given = { ...change.given, ...(facts ? { card: facts } : {}) }
  const at = { now: work.now, receiptId: work.receiptId, giver: [acceptedAt, '', change.line] } as const
  const verdict = update(row, given, at)
  if (isRefusal(verdict)) return verdict
  // The token's card may be another than the record's: the data on the card on file is compared with both.
  const telling = onFileRefusal(onFile, row) ?? onFileRefusal(onFile, verdict.row)
  if (telling) return telling
  const guess = facts && guessOf(work.client.clientId, row.tokenScope, facts)
  if (guess && (await isSpent(guess, guesses))) return refuse('guesses', field)
  const base = bases.get(row.tokenId)
  const { relinkRefusal } = deps.networks.schemeTokens
  const unfit = base && !isSameCard(base.cards, verdict.row.cards) && relinkRefusal(schemeAction, verdict.row)
  if (unfit) return unfit
  if (facts && !isSameCard(row.cards, facts.fingerprints.known)) {
    if (await isTaken(facts, row, rows, deps)) return refuse('pan_taken', field)
    if (guess) guesses?.miss(guess)
  }
  if (verdict.touched) return { outcome: 'UNCHANGED', row: confirmed(row, work) }
  return { outcome: verdict.changed ? 'UPDATED' : 'UNCHANGED', row: sealRow(verdict, row, card?.pan, deps.ring) }
}

/** Whether another token, of this chunk or in the store, belongs to the card. */
async function isTaken(
  facts: CardFacts,
  row: StoredToken,
  rows: ReadonlyMap<string, StoredToken>,
  deps: Deps,
): Promise<boolean> {
  const stored = await findByCard(facts, deps)
  if (stored && stored.tokenId !== row.tokenId) return true
  const { known } = facts.fingerprints
  return [...rows.values()].some(other => other.tokenId !== row.tokenId && isSameCard(other.cards, known))
}
