// Decides the `token-update` and `token-lifecycle` records of a chunk: the tokens are looked up at once, the rules
// applied in file order, and the changed rows updated at once.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import { claimOf, type OnFileRecord } from '../../src/job/on-file.ts'
import type { UpdateRecord } from '../../src/job/token-batch.ts'
import type { TokenLifecycle } from '../../src/job/token-lifecycle.ts'
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
import { findReplacements, relinkedOf, relinkRefusal } from '../card/scheme-replacement.ts'
import { sealRow } from '../card/seal-row.ts'
import type { Deps } from '../deps.ts'
import type { Effect } from '../line/effect.ts'
import { writeEffects } from '../line/write-effect.ts'
import { givenOf } from '../token-create.ts'
import { plainFieldsOf } from '../token-update.ts'
import { type ActedRecords, type ChunkContext, type ChunkRecord, type Decided, keeperOf } from './chunk.ts'
import { ownersOf } from './claims.ts'
import { type DryRunGuesses, isSpent, openDryRunGuesses } from './dry-run-guesses.ts'
import { rejected } from './fold.ts'
import { type ClaimingOutcome, predictClaims, saveWithClaims } from './save-claims.ts'

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
  const visible = await tokensFor(work.client, [...new Set(prepared.map(({ id }) => id))], deps)
  const bases = new Map([...visible.values()].map(row => [row.tokenId, row]))
  const claims = await claimsOf(prepared, visible, deps)
  const known = await references.findByOwners(deps.store, ownersOf([...claims.values()].map(claim => ({ claim }))))
  const guesses = work.request.dry_run ? openDryRunGuesses(deps) : undefined
  const changes: Changes = { rows: new Map(bases), outcomes: [], linked: [], schemeActions: new Map() }
  for (const change of prepared) {
    const tokenId = visible.get(change.id)?.tokenId
    const row = tokenId === undefined ? undefined : changes.rows.get(tokenId)
    const scheme = acted.get(change.line)
    const next = isRefusal(scheme) ? scheme : await apply(change, row, changes.rows, { context, deps, guesses })
    if (isRefusal(next))
      changes.outcomes.push({ ...rejected(change, next), token: undefined, claim: undefined, tokenId: undefined })
    else record(changes, change, row, scheme === 'changed' ? { ...next, outcome: 'UPDATED' } : next, claims.get(change))
  }
  const { outcomes, rows, linked } = changes
  for (const outcome of outcomes) if (outcome.token) outcome.token = rows.get(outcome.token.tokenId)
  const effect = guesses ? guesses.effect() : await effectOf(changes, bases, work, deps)
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

/** What the records of a chunk, up to the current one, have changed. */
interface Changes {
  /** The tokens as earlier records left them, by id. */
  rows: Map<string, StoredToken>
  outcomes: ClaimingOutcome[]
  /** Tokens that are now linked to another card. */
  linked: StoredToken[]
  /** What the records want of the scheme tokens of `linked`, by token id. */
  schemeActions: Map<string, SchemeAction | undefined>
}

interface Applied {
  outcome: 'UPDATED' | 'UNCHANGED'
  row: StoredToken
}

function record(
  changes: Changes,
  change: PreparedChange,
  before: StoredToken | undefined,
  { outcome, row }: Applied,
  claim: Claim | undefined,
) {
  if (before && !isSameRow(before, row)) {
    changes.linked.push(row)
    if ('given' in change) changes.schemeActions.set(row.tokenId, change.schemeAction)
  }
  changes.rows.set(row.tokenId, row)
  const { line, reference } = change
  const told = { line, reference, outcome, reason: undefined, field: undefined, token: row }
  changes.outcomes.push({ ...told, claim, tokenId: row.tokenId })
}

async function effectOf(
  { rows, schemeActions }: Changes,
  bases: ReadonlyMap<string, StoredToken>,
  work: ChunkContext['work'],
  deps: Deps,
): Promise<Effect> {
  const updates = [...rows.values()]
    .filter(row => row !== bases.get(row.tokenId))
    .map(row => ({ ...row, version: (bases.get(row.tokenId)?.version ?? 0) + 1 }))
  const deleted = updates.filter(row => row.status === 'DELETED').map(row => row.tokenId)
  const linked = [...schemeActions].flatMap(([tokenId, action]) => {
    const token = rows.get(tokenId)
    return token ? { token, action } : []
  })
  const relinked = await relinkedOf(deps.store, linked)
  const job = { receiptId: work.receiptId, clientId: work.client.clientId }
  const replacements = await findReplacements(deps.store, relinked, job, deps)
  return { updates, erasedImages: deleted, retirements: deleted, replacements }
}

/** The rules' refusal of an update without a card, found before a network is called; undefined if there is none. */
export function judgeChange(
  change: PreparedChange,
  row: StoredToken,
  { now, receiptId }: ChunkContext['work'],
): Refusal | undefined {
  if (!('given' in change)) return undefined
  const verdict = update(row, change.given, { now, receiptId })
  return isRefusal(verdict) ? verdict : onFileRefusal(change.onFile, row)
}

/** Whether the row still has its card. */
function isSameRow({ cards: one }: StoredToken, { cards: other }: StoredToken): boolean {
  return one === other || isSameCard(one, other)
}

interface Applying {
  context: ChunkContext
  deps: Deps
  /** Undefined unless the chunk is a dry run. */
  guesses: DryRunGuesses | undefined
}

/** Decides one record, over the rows as earlier records left them. */
async function apply(
  change: PreparedChange,
  row: StoredToken | undefined,
  rows: ReadonlyMap<string, StoredToken>,
  applying: Applying,
): Promise<Applied | Refusal> {
  if (!row) return refuse('token_not_found', 'body.id')
  return 'action' in change ? applyAction(change, row, applying.context) : applyUpdate(change, row, rows, applying)
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
  rows: ReadonlyMap<string, StoredToken>,
  { context: { work, acceptedAt }, deps, guesses }: Applying,
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
  if (facts && !isSameCard(row.cards, facts.fingerprints.known)) {
    const unfit = relinkRefusal(schemeAction, verdict.row, deps)
    if (unfit) return unfit
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
