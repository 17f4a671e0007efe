// The rules applied to the `token-create` records of a chunk, in file order, over the rows as earlier records left them.
// Nothing is looked up, sealed or saved here.
import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal } from '../../src/errors.ts'
import type { RecordOutcome } from '../../src/job/chunk-outcomes.ts'
import type { Secret } from '../../src/secret.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import { LostRace } from '../../src/store/pool.ts'
import type { StoredToken } from '../../src/store/token/tokens.ts'
import { type CardFacts, create, type Given, type Decided as Verdict } from '../../src/token/decide.ts'
import type { Claim } from '../../src/token/on-file.ts'
import { timeOf, tokenIdAt } from '../card/seal-row.ts'
import { type Contract, nameOf } from '../card/third-party.ts'
import type { ThirdPartyResult } from '../provider/third-party-actions.ts'
import type { ChunkContext } from './chunk.ts'
import { reasonOf } from './chunk.ts'

const ID_BYTES = 10

export interface PreparedCreate {
  line: number
  reference: string | undefined
  field: string
  scope: Scope
  pan: Secret
  facts: CardFacts
  given: Given
  key: string
  /** Under which a third party makes the token. */
  contract: Contract | undefined
  /** For whom the card is on file. */
  claim: Claim | undefined
}

export interface Folded {
  row: StoredToken
  base: StoredToken | undefined
  pan: Secret
  scope: Scope
  needsSeal: boolean
}

/** What third parties made for the chunk's cards, by card. */
export type ProvisionedCards = ReadonlyMap<string, ThirdPartyResult>

export function rejected(
  { line, reference }: { line: number; reference: string | undefined },
  refusal: Refusal,
): RecordOutcome {
  const kept = refusal.reason === 'reference_pan' && refusal.field === 'body.reference' ? undefined : reference
  return { line, reference: kept, outcome: 'REJECTED', ...reasonOf(refusal), token: undefined }
}

export interface KeyedOutcome extends RecordOutcome {
  token: StoredToken | undefined
  /** The card it stands for; empty for a record that stands for none. */
  key: string
  /** Undefined where the record took no effect. */
  claim: Claim | undefined
}

/**
 * The rules, record by record in file order, over the rows as earlier records of the chunk left them. Without `provisioned`
 * nothing of it is to be saved.
 */
export function fold(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  context: ChunkContext,
  provisioned?: ProvisionedCards | undefined,
): { outcomes: KeyedOutcome[]; folded: Map<string, Folded> } {
  const { work } = context
  const random = randomBytes(prepared.length * ID_BYTES).toString('hex')
  const time = timeOf(work.now)
  const policy = policyOf(context)
  const folded = new Map<string, Folded>()
  const outcomes: KeyedOutcome[] = []
  for (const [index, record] of prepared.entries()) {
    const { line, key, contract } = record
    const { before, base, current, end, made } = standingOf(record, stored, folded, provisioned)
    const verdict = create(current, record.given, record.facts, {
      now: work.now,
      tokenId: current?.tokenId ?? made?.tokenId ?? tokenIdAt(time, random, index * 2 * ID_BYTES),
      tokenScope: record.scope.tokenScope,
      thirdParty: contract && made && nameOf(contract, made),
      receiptId: work.receiptId,
      field: record.field,
      batch: { ...policy, line },
    })
    if (isRefusal(verdict)) {
      outcomes.push(keyless(record, verdict))
      continue
    }
    if (isRefusal(end)) {
      outcomes.push(keyless(record, end))
      continue
    }
    if (contract && !current && provisioned && !made)
      throw new LostRace('the token of a third party was deleted meanwhile')
    // A mark alone is saved too: without it an earlier line, coming later, would overwrite what this one confirmed.
    if (verdict.changed || verdict.marked) folded.set(key, foldedBy(verdict, record, before, base))
    outcomes.push(outcomeOf(record, verdict.outcome))
  }
  return { outcomes, folded }
}

/** What stands for a record's card when its turn comes. */
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

/** A card's row after one more record. Its version grows once, however many records of the chunk changed it. */
function foldedBy(
  verdict: Verdict,
  { pan, scope }: PreparedCreate,
  before: Folded | undefined,
  base: StoredToken | undefined,
): Folded {
  const sealVersion = verdict.row.sealed === null ? null : ((before?.row ?? base)?.sealVersion ?? null)
  // In place: the rules made this row, and a spread of a wide row costs a chunk more than its rules.
  const row = Object.assign(verdict.row, { sealVersion, version: base ? base.version + 1 : 1 })
  return { row, base, pan, scope, needsSeal: verdict.needsSeal || before?.needsSeal === true }
}

function outcomeOf({ line, reference, key, claim }: PreparedCreate, outcome: Verdict['outcome']): KeyedOutcome {
  return { line, reference, outcome, reason: undefined, field: undefined, token: undefined, key, claim }
}

function keyless(record: PreparedCreate, refusal: Refusal): KeyedOutcome {
  return { ...rejected(record, refusal), token: undefined, key: '', claim: undefined }
}

function policyOf({ work, batch, acceptedAt }: ChunkContext) {
  const policy = work.request.policy
  return {
    batchNo: batch?.batchNo ?? 0,
    onConflict: policy?.on_conflict ?? 'update',
    onExpired: policy?.on_expired ?? 'import',
    acceptedAt,
  } as const
}
