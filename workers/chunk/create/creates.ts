// The `token-create` records of a chunk. Cards are decrypted and fingerprinted first, a hundred records at a time so
// that the event loop stays responsive. Then the tokens of all cards are looked up at once, the rules are applied in
// file order (fold.ts), and the rows are written as sets. If another chunk has made a token for a card meanwhile, that
// card's records are decided again with it (`decideLost`).
import { randomBytes } from 'node:crypto'
import { isRefusal, type Refusal, refuse } from '../../../src/errors.ts'
import type { CreatedRecords } from '../../../src/job/answer/created-columns.ts'
import { withoutLost } from '../../../src/job/answer/created-records.ts'
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import { claimOf } from '../../../src/job/on-file.ts'
import type { CreateRecord } from '../../../src/job/token-batch.ts'
import type { Scope } from '../../../src/store/access/scopes.ts'
import { type Db, LostRace } from '../../../src/store/pool.ts'
import * as references from '../../../src/store/reference/source-references.ts'
import type { StoredToken } from '../../../src/store/token/tokens.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { type CardInput, checkCard } from '../../../src/token/card.ts'
import { type CardAsked, findByCards } from '../../card/by-card.ts'
import { scopeFor } from '../../card/card-facts.ts'
import { contextRefusal, contractFor } from '../../card/contract.ts'
import { countMisses } from '../../card/guess-limit.ts'
import { openCapture } from '../../card/open-capture.ts'
import { sealRow } from '../../card/seal-row.ts'
import type { Deps } from '../../deps.ts'
import type { NetworkEffect } from '../../effect/effect.ts'
import { writeEffects } from '../../effect/write-effect.ts'
import type { MadeToken, NewCard } from '../../networks.ts'
import { withFormer } from '../batch.ts'
import { type ChunkContext, type ChunkRecord, keeperOf } from '../chunk.ts'
import { ownersOf } from '../claims.ts'
import {
  type Folded,
  fold,
  type KeyedOutcome,
  type PreparedCreate,
  type ProvisionedCards,
  type Relinks,
  rejected,
} from '../fold.ts'
import { type FoundOlder, openOlderClaims } from '../older-claims.ts'
import { openRelinks, replacementsOf, writeRelinked } from '../relinks.ts'
import { type AddedClaim, saveWithClaims } from '../save-claims.ts'
import { giverOf, isNewest } from '../source-times.ts'
import {
  byLine,
  lostRecords,
  type NewPlain,
  newCardsOf,
  type PlainCreates,
  sealPlain,
  setKnownApart,
} from './plain-creates.ts'
import { expectKnownOwners } from './plain-owners.ts'
import { preparedOf } from './prepared.ts'
import type { CardField } from './records.ts'

/** Other work gets its turn after this many records. */
const RECORDS_AT_ONCE = 100
const NONCE_BYTES = 12

export async function prepareCreates(
  records: readonly ChunkRecord[],
  context: ChunkContext,
  deps: Deps,
): Promise<{ refused: RecordOutcome[]; prepared: PreparedCreate[] }> {
  const refused: RecordOutcome[] = []
  const prepared: PreparedCreate[] = []
  const scopes = await scopesOf(context, records, deps)
  for (let start = 0; start < records.length; start += RECORDS_AT_ONCE) {
    if (start > 0) await new Promise(setImmediate)
    const done = records
      .slice(start, start + RECORDS_AT_ONCE)
      .map(record => prepareCreate(record, scopes, context, deps))
    for (const one of done) {
      const result = one instanceof Promise ? await one : one
      if ('outcome' in result) refused.push(result)
      else prepared.push(result)
    }
  }
  // Rules are applied in file order; the lines of a block may be in another order.
  return { refused, prepared: prepared.sort((a, b) => a.line - b.line) }
}

/** Returns no promise if the card is in clear: a promise for each record would cost time. */
function prepareCreate(
  record: ChunkRecord,
  scopes: ReadonlyMap<string, Scope | Refusal>,
  context: ChunkContext,
  deps: Deps,
): PreparedCreate | RecordOutcome | Promise<PreparedCreate | RecordOutcome> {
  if (!('request' in record)) throw new Error('broken law: records without a request are refused before')
  const request = record.request as CreateRecord
  const { line, reference } = record
  const scope = scopes.get(request.token_scope ?? context.work.request.token_scope ?? '')
  if (scope === undefined) return rejected(record, refuse('field_required', 'body.token_scope'))
  if (isRefusal(scope)) return rejected(record, scope)
  const giver = giverOf({ line, sourceTime: request.source_time }, context)
  if (isRefusal(giver)) return rejected(record, giver)
  const contract = contextRefusal(request, context.work.client, deps) ?? contractFor(request, scope, deps)
  if (isRefusal(contract)) return rejected(record, contract)
  const claim = request.on_file && claimOf(request.on_file, scope)
  const relinks = context.work.request.policy?.relink === true
  const asked = { line, reference, request, scope, contract, claim, giver, relinks }
  const finish = (card: CardInput | Refusal, field: CardField) =>
    isRefusal(card) ? rejected(record, card) : preparedOf(asked, card, field, deps)
  const { card, encrypted_card: encryptedCard, public_key_alias: alias } = request
  if (card !== undefined && encryptedCard !== undefined) return rejected(record, refuse('field_conflict', 'body.card'))
  if (card !== undefined) return finish(checkCard(card, 'body.card'), 'body.card')
  if (encryptedCard === undefined) return rejected(record, refuse('field_required', 'body.encrypted_card'))
  if (alias === undefined) return rejected(record, refuse('field_required', 'body.public_key_alias'))
  const { work, acceptedAt, cards } = context
  const job = keeperOf(work)
  const capture = { encryptedCard, alias, client: work.client, acceptedAt, names: { reference }, cards, job }
  return openCapture(capture, deps).then(opened => finish(opened, 'body.encrypted_card'))
}

/** The scopes that the chunk and its records name; each is looked up once. */
async function scopesOf(
  context: ChunkContext,
  records: readonly ChunkRecord[],
  deps: Deps,
): Promise<Map<string, Scope | Refusal>> {
  const { client, request } = context.work
  const named = new Set(
    records.flatMap(record => ('request' in record ? ((record.request as CreateRecord).token_scope ?? []) : [])),
  )
  if (request.token_scope !== undefined) named.add(request.token_scope)
  const scopes = new Map<string, Scope | Refusal>()
  for (const name of named) scopes.set(name, await scopeFor(client, name, deps.directory, 'body.token_scope'))
  return scopes
}

/** The creates of a chunk, ready to be decided. */
interface CreatesOf {
  prepared: readonly PreparedCreate[]
  /** The creates that are worked in columns. */
  plain: PlainCreates | undefined
  provisioned: ProvisionedCards | undefined
}

/**
 * Creates that were decided. `save` writes them; it returns outcomes as values, and those of creates in columns as
 * columns (`created`).
 */
export interface DecidedCreates {
  save(db: Db): Promise<{ outcomes: RecordOutcome[]; created: CreatedRecords | undefined }>
}

export async function decideCreates(
  { prepared: others, plain: columns, provisioned }: CreatesOf,
  begun: ChunkContext,
  deps: Deps,
): Promise<DecidedCreates> {
  if (others.length === 0 && !columns) return { save: async () => ({ outcomes: [], created: undefined }) }
  const [storedOthers, knownOthers, apart] = await Promise.all([
    findByCards(deps.store, cardsOf(others)),
    references.findByOwners(deps.store, ownersOf(others)),
    columns && setKnownApart(columns, begun, deps),
  ])
  const prepared = apart ? byLine(others, apart.prepared) : others
  const stored = apart ? new Map([...storedOthers, ...apart.stored]) : storedOthers
  const known = new Map([...knownOthers, ...(apart?.references ?? [])])
  const context = await withFormer({ stored, known }, begun, deps)
  const older = await openOlderClaims(prepared, { stored, known }, context, deps)
  const relinks = await openRelinks(stored, known, context, deps)
  const first = decideCards(prepared, stored, context, deps, { provisioned, relinks, older })
  const fresh = apart && sealPlain(apart.plain, context)
  const replaced = await replacementsOf(first.relinked, context, deps)
  const { receiptId } = context.work
  const { thirdParties } = deps.networks
  return {
    save: async db => {
      if (provisioned && prepared.some(({ contract }) => contract))
        await writeEffects(
          db,
          [{ networks: thirdParties.takeUp(receiptId, takenUp(first.created, provisioned)) }],
          deps,
        )
      if (relinks && first.relinked.length > 0)
        await writeRelinked(db, { updates: first.relinked, networks: replaced }, relinks, deps)
      const losers = await tokens.insertMissing(db, first.created, fresh?.tokens)
      if ((relinks || isNewest(context.work.request)) && losers.size > 0)
        throw new LostRace('a card got its token meanwhile')
      const lost = new Set(first.created.filter(({ tokenId }) => losers.has(tokenId)).map(cardOf))
      const lostPlain = fresh && losers.size > 0 ? lostRecords(fresh, losers, context) : []
      const undecided = [...prepared.filter(({ key }) => lost.has(key)), ...lostPlain]
      const again = undecided.length === 0 ? NONE : await decideLost(undecided, context, db, deps)
      const outcomes = [...first.outcomes.filter(({ key }) => !lost.has(key)), ...again.outcomes]
      const effect = {
        updates: [...first.updated, ...again.updated],
        networks: firstSchemesOf(
          [...newCardsIn(first.made, lost), ...(fresh ? newCardsOf(fresh, losers) : [])],
          context,
          deps,
        ),
      }
      const bases = [...stored.values(), ...again.stored.values(), ...(older?.tokens.values() ?? [])]
      const beside = {
        effect,
        written: first.relinked,
        bases,
        references: known,
        relinks,
        added: addedOf(fresh, losers),
      }
      await saveWithClaims(db, outcomes, beside, context, deps).catch(error => {
        expectKnownOwners(String(context.batch?.batchNo))
        throw error
      })
      await older?.check(db)
      await apart?.releases?.check(db)
      const created = fresh && withoutLost(fresh.tokens, lostPlain)
      const made = [...first.created.filter(({ tokenId }) => !losers.has(tokenId)), ...first.relinked]
      countMisses(context.work.client.clientId, made, deps, created)
      return { outcomes, created }
    },
  }
}

/** The claims of plain records that made a token. */
function addedOf(fresh: NewPlain | undefined, losers: ReadonlySet<string>): AddedClaim[] {
  return fresh?.added.filter(({ tokenId }) => !losers.has(tokenId)) ?? []
}

function takenUp(created: readonly StoredToken[], provisioned: ProvisionedCards = new Map()): MadeToken[] {
  return created.flatMap(row => {
    const end = row.thirdParty ? provisioned.get(cardOf(row)) : undefined
    return end === undefined || end === 'known' || isRefusal(end) ? [] : [end]
  })
}

interface DecidedAgain {
  outcomes: KeyedOutcome[]
  updated: StoredToken[]
  /** The tokens of the records' cards, by card. */
  stored: ReadonlyMap<string, StoredToken>
}

const NONE: DecidedAgain = { outcomes: [], updated: [], stored: new Map() }

/** Decides records once more, with the token that another chunk has just made for their card. */
async function decideLost(
  again: readonly PreparedCreate[],
  context: ChunkContext,
  db: Db,
  deps: Deps,
): Promise<DecidedAgain> {
  const stored = await findByCards(db, cardsOf(again))
  const { outcomes, created, updated } = decideCards(again, stored, context, deps)
  if (created.length > 0) throw new LostRace('a token came and went meanwhile')
  return { outcomes, updated, stored }
}

/** The cards of the records, each once. */
export const cardsOf = (prepared: readonly PreparedCreate[]): CardAsked[] => [
  ...new Map(prepared.map(({ key, facts }) => [key, facts])).values(),
]

/** Decides and seals: which rows to insert, which to update, and the outcome of each record. */
function decideCards(
  prepared: readonly PreparedCreate[],
  stored: ReadonlyMap<string, StoredToken>,
  context: ChunkContext,
  deps: Deps,
  beside: {
    provisioned?: ProvisionedCards | undefined
    relinks?: Relinks | undefined
    older?: FoundOlder | undefined
  } = {},
) {
  const { outcomes, folded } = fold(prepared, stored, context, beside)
  sealAll(folded, deps)
  const rows = [...folded.values()]
  // All records of one token are answered with the token's final row.
  const known = [...(beside.older?.tokens.values() ?? []), ...stored.values(), ...rows.map(({ row }) => row)]
  const byId = new Map(known.map(row => [row.tokenId, row]))
  for (const outcome of outcomes) outcome.token = byId.get(outcome.tokenId ?? '')
  const made = rows.filter(({ base }) => !base)
  const created = made.map(({ row }) => row)
  const updated = rows.filter(({ base, relinked }) => base && !relinked).map(({ row }) => row)
  const relinked = rows.filter(({ base, relinked }) => base && relinked).map(({ row }) => row)
  return { outcomes, made, created, updated, relinked }
}

/** Cards for which another chunk was first (`lost`) are left out. */
function newCardsIn(folded: readonly Folded[], lost: ReadonlySet<string>): NewCard[] {
  return folded.filter(({ row }) => !lost.has(cardOf(row))).map(({ row, pan, scope }) => ({ token: row, pan, scope }))
}

/** The first scheme tokens of the tokens that this chunk inserted, in scopes that provision automatically. */
function firstSchemesOf(made: readonly NewCard[], { work }: ChunkContext, deps: Deps): NetworkEffect[] {
  const job = { receiptId: work.receiptId, clientId: work.client.clientId }
  const ours = made.filter(({ scope }) => scope.autoProvision)
  return deps.networks.schemeTokens.provision(ours, job, deps).effects
}

/** The first fingerprint of a row's card. It identifies the card among the records that make tokens. */
const cardOf = ({ cards }: StoredToken) => cards[0] ?? ''

/** Seals the rows that need it; all nonces are drawn at once. */
function sealAll(folded: ReadonlyMap<string, Folded>, deps: Deps): void {
  const nonces = randomBytes(folded.size * NONCE_BYTES)
  let index = 0
  for (const entry of folded.values()) {
    const nonce = nonces.subarray(index * NONCE_BYTES, (index + 1) * NONCE_BYTES)
    if (entry.needsSeal) entry.row = sealRow(entry, entry.base, entry.pan, deps.ring, nonce)
    index += 1
  }
}
