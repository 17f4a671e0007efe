// Applies the rules to the `token-create` records of a chunk, in file order, over the rows as earlier records left them.
// Nothing is looked up, sealed or saved here.
import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { Secret } from '../../src/secret.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { LostRace } from '../../src/store/pool.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { create, update, type Decided as Verdict } from '../../src/token/decide.ts'
import type { Claim } from '../../src/token/on-file.ts'
import type { Giver } from '../../src/token/token.ts'
import { isRenewed } from '../card/by-card.ts'
import { onFileRefusal } from '../card/claim.ts'
import { nameOf } from '../card/contract.ts'
import { timeOf, tokenIdAt } from '../card/seal-row.ts'
import type { ThirdPartyResult } from '../networks.ts'
import type { CheckedCard } from '../token-create.ts'
import type { ChunkContext } from './chunk.ts'
import { reasonOf } from './chunk.ts'
import { isNewest } from './source-times.ts'

const ID_BYTES = 10

export interface PreparedCreate extends CheckedCard {
  line: number
  reference: string | undefined
  field: string
  key: string
  /** The claim of the record: for whom the card is on file. */
  claim: Claim | undefined
  giver: Giver
  /** The card as the record gives it (`presentedText`). */
  presented: string
}

export interface Folded {
  row: StoredToken
  base: StoredToken | undefined
  pan: Secret
  scope: Scope
  needsSeal: boolean
  /** This chunk has linked the token to this card; it had another card before. */
  relinked?: boolean
}

/** What third parties answered for the chunk's cards, by card. */
export type ProvisionedCards = ReadonlyMap<string, ThirdPartyResult>

export function rejected(
  { line, reference }: { line: number; reference: string | undefined },
  refusal: Refusal,
): RecordOutcome {
  const kept = refusal.reason === 'reference_pan' && refusal.field === 'body.reference' ? undefined : reference
  return { line, reference: kept, outcome: 'REJECTED', ...reasonOf(refusal), token: undefined }
}

/** A decided record that may say for whom its card is on file. */
export interface ClaimingOutcome extends RecordOutcome {
  token: StoredToken | undefined
  /** The record's claim; undefined if it has none, was refused, or comes too late for an owner without a token. */
  claim: Claim | undefined
  tokenId: string | undefined
  /** The token was another card's before, and is now linked to the record's card. */
  relinked?: boolean
  /** Default: the giver of the whole batch. */
  giver?: Giver
  /** The record comes too late only because a later giver changed the number of the owner's token. */
  outdated?: boolean
}

export interface KeyedOutcome extends ClaimingOutcome {
  /** Identifies the record's card; empty if the record was refused or comes too late. */
  key: string
}

/** Decides which records link their owner's token to their card. */
export interface Relinks {
  /**
   * The token to link to the record's card; undefined if the record is decided like any other. `isTaken`: another token
   * already has the card.
   */
  rowFor(record: PreparedCreate, isTaken: boolean): StoredToken | undefined
  /** The token as it is stored; undefined for a token that this chunk makes. */
  baseOf(tokenId: string): StoredToken | undefined
  /** Records that a record took effect, and its token's row. */
  note(record: PreparedCreate, row: StoredToken | undefined, relinked: boolean): void
}

interface LateRecord {
  tokenId: string | undefined
  outdated: boolean
}

/** Decides which records come too late for their owner. */
export interface OlderClaims {
  /**
   * The token of the record's owner, without an id if the owner has no token. Undefined if the record doesn't come too
   * late. `cardToken`: the token that the record's card has. `outdated`: only because the number of the owner's token was
   * changed later.
   */
  find(record: PreparedCreate, cardToken: string | undefined): LateRecord | undefined
  /** Records that a record took effect on that token. */
  note(record: PreparedCreate, tokenId: string | undefined, relinked: boolean): void
}

const NO_OLDER: OlderClaims = { find: () => undefined, note: () => {} }
const NO_RELINKS: Relinks = { rowFor: () => undefined, baseOf: () => undefined, note: () => {} }

/** Optional further data about a chunk's records. */
interface Beside {
  provisioned?: ProvisionedCards | undefined
  relinks?: Relinks | undefined
  older?: OlderClaims | undefined
}

/**
 * Applies the rules record by record in file order, over the rows as earlier records of the chunk left them. Without
 * `provisioned` the result must not be saved if a record has a contract with a third party.
 */
export function fold(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  context: ChunkContext,
  { provisioned, relinks = NO_RELINKS, older = NO_OLDER }: Beside = {},
): { outcomes: KeyedOutcome[]; folded: Map<string, Folded> } {
  const random = randomBytes(prepared.length * ID_BYTES).toString('hex')
  const time = timeOf(context.work.now)
  const folding: Folding = {
    stored,
    context,
    provisioned,
    relinks,
    older,
    policy: policyOf(context),
    folded: new Map(),
    freed: new Set(),
    keys: new Map(prepared.flatMap(({ key, facts }) => facts.fingerprints.known.map(fp => [fp, key]))),
    newTokenId: index => tokenIdAt(time, random, index * 2 * ID_BYTES),
  }
  const outcomes = prepared.map((record, index) => foldRecord(record, index, folding))
  return { outcomes, folded: folding.folded }
}

/** What the records of a chunk share while they are decided. */
interface Folding {
  provisioned: ProvisionedCards | undefined
  relinks: Relinks
  older: OlderClaims
  stored: ReadonlyMap<string, StoredToken>
  context: ChunkContext
  policy: ReturnType<typeof policyOf>
  folded: Map<string, Folded>
  /** Cards whose token was linked to another card. */
  freed: Set<string>
  /** The chunk's cards, by each of their fingerprints. */
  keys: ReadonlyMap<string, string>
  newTokenId: (index: number) => string
}

function foldRecord(record: PreparedCreate, index: number, folding: Folding): KeyedOutcome {
  const { stored, folded, freed, provisioned, relinks, older } = folding
  const { key } = record
  const standing = standingOf(record, freed.has(key) ? NOWHERE : stored, folded, provisioned)
  const late = older.find(record, standing.current?.tokenId)
  if (late) return lateOutcome(record, late)
  const owned = relinks.rowFor(record, folded.has(key) || stored.has(key))
  if (!owned) return foldCard(record, index, standing, folding)
  const linked = relink(record, owned, folding)
  older.note(record, linked.tokenId, true)
  return linked
}

/** Decides the record about the token of its card, whoever the owner is. */
function foldCard(
  record: PreparedCreate,
  index: number,
  { before, base, current, end, made }: ReturnType<typeof standingOf>,
  { context, policy, folded, provisioned, relinks, older, newTokenId }: Folding,
): KeyedOutcome {
  const { line, key, contract, giver, field } = record
  const { now, receiptId } = context.work
  const judged = create(current, record.given, record.facts, {
    now,
    receiptId,
    giver,
    field,
    tokenId: current?.tokenId ?? made?.tokenId ?? newTokenId(index),
    tokenScope: record.scope.tokenScope,
    thirdParty: contract && made && nameOf(contract, made),
    batch: { ...policy, line },
  })
  const verdict = isRefusal(end) && !isRefusal(judged) ? end : judged
  if (isRefusal(verdict)) return keyless(record, verdict)
  if (contract && !current && provisioned && !made)
    throw new LostRace('the token of a third party was deleted meanwhile')
  // A change of the mark alone is saved too: without it an earlier line that is worked later would overwrite what
  // this line confirmed.
  // A row that gains a fingerprint is saved, too.
  const isSaved = verdict.changed || verdict.marked
  if (isSaved) folded.set(key, foldedBy(verdict, record, before, base))
  else if (!before && base && isRenewed(base))
    folded.set(key, foldedBy({ ...verdict, row: { ...verdict.row } }, record, before, base))
  const row = folded.get(key)?.row ?? base
  relinks.note(record, row, false)
  older.note(record, row?.tokenId, false)
  const outcome = outcomeOf(record, verdict.outcome, row?.tokenId)
  const isHidden = context.work.request.dry_run && verdict.changed && verdict.outcome === 'DUPLICATE'
  return isHidden ? { ...outcome, changes: true } : outcome
}

const NOWHERE: ReadonlyMap<string, StoredToken> = new Map()

/** Links the owner's token to the record's card. */
function relink(
  record: PreparedCreate,
  owned: StoredToken,
  { relinks, folded, freed, keys, context, policy }: Folding,
): KeyedOutcome {
  const { given, facts, field, key, claim, giver } = record
  const { work } = context
  const { now, receiptId } = work
  const newest = isNewest(work.request) ? policy : undefined
  // references.ts compares the data on file with the chunk's cards; here they are compared with the owned token's card.
  const telling = claim && onFileRefusal([claim.onFile, { ...claim.owner, tokenScope: '' }], owned)
  const verdict = telling ?? update(owned, { ...given, card: facts }, { now, receiptId, field, giver, newest })
  if (isRefusal(verdict)) return keyless(record, verdict)
  const formerKey = owned.cards.map(fp => keys.get(fp)).find(known => known !== undefined) ?? ''
  const before = folded.get(formerKey)
  const base = before ? before.base : relinks.baseOf(owned.tokenId)
  folded.delete(formerKey)
  freed.add(formerKey)
  const entry = { ...foldedBy(verdict, record, before, base), relinked: true }
  folded.set(key, entry)
  relinks.note(record, entry.row, true)
  return { ...outcomeOf(record, verdict.outcome, owned.tokenId), relinked: true }
}

/** The row of a record's card when the record is decided. */
function standingOf(
  { key, contract }: PreparedCreate,
  stored: ReadonlyMap<string, StoredToken>,
  folded: ReadonlyMap<string, Folded>,
  provisioned: ProvisionedCards | undefined,
) {
  const before = folded.get(key)
  const base = before ? before.base : stored.get(key)
  const current = before?.row ?? base
  const end = contract && !current ? provisioned?.get(key) : undefined
  const made = end === 'known' || isRefusal(end) ? undefined : end
  return { before, base, current, end, made }
}

/** The row of a card after one more record. The version grows by one, however many records of the chunk changed the row. */
function foldedBy(
  verdict: Verdict,
  { pan, scope }: PreparedCreate,
  before: Folded | undefined,
  base: StoredToken | undefined,
): Folded {
  const sealVersion = verdict.row.sealed === null ? null : ((before?.row ?? base)?.sealVersion ?? null)
  // The row may be changed in place, because the rules made it for this call; a copy of a wide row would cost time.
  const row = Object.assign(verdict.row, { sealVersion, version: base ? base.version + 1 : 1 })
  const needsSeal = verdict.needsSeal || before?.needsSeal === true
  return { row, base, pan, scope, needsSeal, ...(before?.relinked ? { relinked: true } : {}) }
}

/** The outcome of a record that comes too late: it changes nothing. */
function lateOutcome(record: PreparedCreate, { tokenId, outdated }: LateRecord): KeyedOutcome {
  const { line, reference, claim, giver, presented } = record
  const none = { reason: undefined, field: undefined, token: undefined }
  const told = { line, reference, outcome: 'UNCHANGED', ...none, presented } as const
  if (tokenId !== undefined) return { ...told, key: '', claim, tokenId, giver, outdated }
  return { ...told, key: '', claim: undefined, tokenId, claimed: { outcome: 'OLDER', previous: undefined } }
}

function outcomeOf(
  { line, reference, key, claim, giver, presented }: PreparedCreate,
  outcome: Verdict['outcome'],
  tokenId: string | undefined,
): KeyedOutcome {
  const told = { line, reference, outcome, reason: undefined, field: undefined, token: undefined, presented }
  return { ...told, key, claim, tokenId, giver }
}

function keyless(record: PreparedCreate, refusal: Refusal): KeyedOutcome {
  return { ...rejected(record, refusal), token: undefined, key: '', claim: undefined, tokenId: undefined }
}

/** What the rules must know of the batch. */
export function policyOf({ work, batch, acceptedAt, former }: ChunkContext) {
  const policy = work.request.policy
  return {
    batchNo: batch?.batchNo ?? 0,
    onConflict: policy?.on_conflict ?? 'update',
    onExpired: policy?.on_expired ?? 'import',
    acceptedAt,
    former,
  } as const
}
