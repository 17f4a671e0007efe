// Makes tokens of the plain records of a chunk, in columns: fingerprints, then ids, seals, the rows to insert and what the
// answer says, in straight loops. A plain record that needs a decision (its card has a token or occurs again in the chunk, or
// has expired in a batch with a rule for that) becomes an object and is decided by fold.ts, as is a record that isn't plain.
import { randomBytes } from 'node:crypto'
import { openCache } from '../../../src/cache.ts'
import { dateOf } from '../../../src/clock.ts'
import { assert, isRefusal } from '../../../src/errors.ts'
import type { CreatedRecords } from '../../../src/job/answer/created-columns.ts'
import { checkAt, expiryText, presentedText, versionText } from '../../../src/job/presented-card.ts'
import type { TokenBatch } from '../../../src/job/token-batch.ts'
import { Secret } from '../../../src/secret.ts'
import type { Scope } from '../../../src/store/access/scopes.ts'
import {
  compareAt,
  indexesOf,
  orderOf,
  pick,
  placesByValue,
  UUID_BYTES,
  uuidBytes,
  uuidTexts,
} from '../../../src/store/binary.ts'
import type { NewTokens } from '../../../src/store/token/new-tokens.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { shownBin } from '../../../src/token/brand.ts'
import { isExpired } from '../../../src/token/card.ts'
import type { Given } from '../../../src/token/card-fields.ts'
import type { CardFacts } from '../../../src/token/decide.ts'
import { firstGivers } from '../../../src/token/newest.ts'
import type { GivenAt, Giver } from '../../../src/token/token.ts'
import { type NewCards, SEAL_BYTES } from '../../../src/vault/ring/new-cards.ts'
import { matchCards } from '../../card/by-card.ts'
import { scopeFor } from '../../card/card-facts.ts'
import { tokenIdsAt } from '../../card/seal-row.ts'
import type { Deps } from '../../deps.ts'
import type { NewCard } from '../../networks.ts'
import type { Work } from '../../work.ts'
import type { ChunkContext } from '../chunk.ts'
import type { PreparedCreate } from '../fold.ts'
import { openReleases } from '../older-claims.ts'
import type { AddedClaim } from '../save-claims.ts'
import { giverOf, isNewest } from '../source-times.ts'
import { type GiverOf, openPlainReader, type PlainReader } from './plain.ts'
import {
  addedClaims,
  findReferences,
  ownersAt,
  placesOfKnownOwners,
  placesOfReleased,
  repeatedOwners,
} from './plain-owners.ts'
import type { PlainRecords } from './records.ts'

export interface PlainCreates {
  records: PlainRecords
  scope: Scope
  cards: NewCards
  /** Makes the analytics token of a card; undefined unless a record may become the card of a token for analytics. */
  analyticsToken: ((pan: Secret) => string) | undefined
  /** The fingerprint of each record's card: 16 bytes. */
  prints: Buffer
  /** The places of the records that are worked in columns, in the order of their fingerprints. */
  order: readonly number[]
}

/** What the plain records of a chunk are worked with. */
export interface PlainWay extends Pick<PlainCreates, 'scope' | 'cards' | 'analyticsToken'> {
  reader: PlainReader
}

/**
 * Undefined if the chunk can't be worked in columns: because of its kind, policy or scope, or the phase of the key.
 */
export async function openPlainWay(
  work: Work<TokenBatch>,
  { directory, ring, settings }: Pick<Deps, 'directory' | 'ring' | 'settings'>,
): Promise<PlainWay | undefined> {
  const { request, client } = work
  const { record_kind, token_scope } = request
  if (record_kind !== 'token-create' || token_scope === undefined) return undefined
  const scope = await scopeFor(client, token_scope, directory, 'body.token_scope')
  if (isRefusal(scope)) return undefined
  const cards = ring.newCards(token_scope)
  const rules = { bins: directory.bins(), localSchemes: settings.localSchemes }
  if (!cards) return undefined
  const analyticsToken = request.policy?.relink ? (pan: Secret) => ring.analyticsToken(pan, token_scope) : undefined
  const givers = isNewest(request) ? giversOf(work) : undefined
  return { reader: openPlainReader(scope, rules, givers), scope, cards, analyticsToken }
}

/** Whether a source time lies ahead is found out later (`refuseFuture`): only the batch's row says when it was accepted. */
function giversOf(work: Work<TokenBatch>): GiverOf {
  return (line, sourceTime) => {
    if (sourceTime !== undefined && typeof sourceTime !== 'string') return undefined
    const giver = giverOf({ line, sourceTime }, { work, acceptedAt: Number.POSITIVE_INFINITY })
    return isRefusal(giver) ? undefined : giver
  }
}

/** Other work gets its turn after this many records. */
const RECORDS_AT_ONCE = 100

/** Fingerprints the plain records. `others`: records that aren't plain; plain records that need a decision are added to them. */
export async function preparePlain(
  records: PlainRecords,
  { scope, cards, analyticsToken, others }: Omit<PlainWay, 'reader'> & { others: readonly PreparedCreate[] },
  context: ChunkContext,
  { inspect }: Pick<Deps, 'inspect'>,
): Promise<{ plain: PlainCreates; prepared: PreparedCreate[] }> {
  const pans = records.pans.reveal()
  const prints = Buffer.allocUnsafe(pans.length * UUID_BYTES)
  for (let index = 0; index < pans.length; index += 1) {
    const pan = pans[index] ?? ''
    if (index > 0 && index % RECORDS_AT_ONCE === 0) await new Promise(setImmediate)
    // Those whose card was encrypted were inspected before it was opened.
    if (inspect && records.fields[index] === 'body.card')
      inspect({ line: records.lines[index] ?? 0, reference: records.references[index] })
    cards.print(pan, prints, index * UUID_BYTES)
  }
  const all: PlainCreates = { records, scope, cards, analyticsToken, prints, order: orderOf(prints) }
  const set = new Set([
    ...repeated(all),
    ...sharedWith(others, all),
    ...refusable(all, context),
    ...repeatedOwners(records, others),
  ])
  const { plain, prepared } = setApart(all, set, context)
  return { plain, prepared: byLine(others, prepared) }
}

/** The places of records whose card occurs more than once. */
function repeated({ prints, order }: PlainCreates): number[] {
  return order.filter((place, at) => isSame(prints, place, order[at - 1]) || isSame(prints, place, order[at + 1]))
}

function isSame(prints: Buffer, one: number, other: number | undefined): boolean {
  return other !== undefined && compareAt(prints, one, other) === 0
}

/** The places of records whose card a record of `others` has, too. */
function sharedWith(others: readonly PreparedCreate[], plain: PlainCreates): number[] {
  const known = others.flatMap(({ facts }) => facts.fingerprints.known)
  return placesOf(known, plain)
}

/** The places of these fingerprints. Fingerprints that no record has are left out. */
export function placesOf(fingerprints: readonly string[], { prints, order }: PlainCreates): number[] {
  return indexesOf(uuidBytes(fingerprints), prints, order)
}

/** The places of records that a rule about dates may refuse or suspend: the rules decide. */
function refusable(
  { records: { months, years, more }, order }: PlainCreates,
  { work, acceptedAt }: ChunkContext,
): number[] {
  const importsExpired = (work.request.policy?.on_expired ?? 'import') === 'import'
  const today = dateOf(acceptedAt)
  return order.filter(place => {
    const { tokenExpiryDate } = more[place] ?? {}
    if (typeof tokenExpiryDate === 'string' && tokenExpiryDate < today) return true
    return !importsExpired && isExpired(datesAt(months, years, place), acceptedAt)
  })
}

/** What the record gives beside its number. */
export function givenBy({ months, years, names, more }: PlainRecords, place: number): Given {
  const name = names[place] ?? null
  return {
    ...datesAt(months, years, place),
    ...(name !== null && { cardHolderName: name }),
    ...more[place],
  }
}

function datesAt(months: readonly number[], years: readonly number[], place: number) {
  const [expiryMonth = 0, expiryYear = 0] = [months[place], years[place]]
  return expiryMonth === 0 ? {} : { expiryMonth, expiryYear }
}

/** The records at these places become objects. */
export function setApart(plain: PlainCreates, places: ReadonlySet<number>, context: ChunkContext) {
  if (places.size === 0) return { plain, prepared: [] }
  const order = plain.order.filter(place => !places.has(place))
  return { plain: { ...plain, order }, prepared: [...places].map(place => asObject(plain, place, context)) }
}

export function byLine(some: readonly PreparedCreate[], more: readonly PreparedCreate[]): PreparedCreate[] {
  return [...some, ...more].sort((a, b) => a.line - b.line)
}

/** The record as an object, the form that the rules of fold.ts take. */
function asObject(plain: PlainCreates, place: number, { acceptedAt }: ChunkContext): PreparedCreate {
  const { records, scope, analyticsToken, prints } = plain
  const { lines, references, fields, pans, claims } = records
  const pan = new Secret(pans.reveal()[place] ?? '')
  const line = lines[place] ?? 0
  const facts = factsAt(plain, place, uuidTexts(pick(prints, [place])))
  const given = givenBy(records, place)
  return {
    line,
    reference: references[place],
    field: fields[place] ?? 'body.card',
    scope,
    pan,
    facts: { ...facts, ...(analyticsToken && { analyticsToken: analyticsToken(pan) }) },
    given,
    key: facts.fingerprints.kept[0] ?? '',
    contract: undefined,
    claim: claims[place],
    giver: giverAt(records, place, acceptedAt),
    presented: presentedText(given, facts.fingerprints),
  }
}

/** `kept`: the fingerprint of the record's card. */
export function factsAt(
  { records: { pans, brands, binRanges }, scope, cards }: PlainCreates,
  place: number,
  kept: readonly string[],
): CardFacts {
  const pan = pans.reveal()[place] ?? ''
  return {
    fingerprints: { kept, versions: [cards.version], known: kept, turn: cards.turn },
    bin: shownBin(pan, scope.binDigits),
    lastFour: pan.slice(-4),
    brand: brands[place] ?? null,
    binRange: binRanges[place] ?? null,
  }
}

export function giverAt({ givers, lines }: PlainRecords, place: number, acceptedAt: number): Giver {
  return givers[place] ?? [acceptedAt, '', lines[place] ?? 0]
}

const BATCHES_MAX = 1_000
/** By batch number: of the cards in columns of the last chunk in this process, the part that had tokens already. */
const knownParts = openCache<{ part: number }>({ max: BATCHES_MAX })
/**
 * Above this part the cards of the next chunk are looked up before they are inserted. Where few are known, to insert them and
 * to take their rows back costs less than the look-up of all (docs/decisions/columns.md says what was measured).
 */
const LOOKED_UP_ABOVE = 0.1

/**
 * The records whose cards have tokens, or whose owners have references, are set apart: `stored` holds these tokens, by
 * card, `references` these references, by `ownerKey`. After a chunk of which few cards were known, this process looks up no
 * cards of the batch until an insert meets many known ones. Owners: see `findReferences`. A dry run, which inserts none, looks up
 * all. `releases`: of the other owners, in a batch with `newest`.
 */
export async function setKnownApart(
  plain: PlainCreates,
  context: ChunkContext,
  { store: db, ring }: Pick<Deps, 'store' | 'ring'>,
) {
  const { records, prints, order } = plain
  const { request } = context.work
  const batch = context.batch && String(context.batch.batchNo)
  // With these a card that turns out to have a token ends the attempt.
  const mustLookUp = batch === undefined || request.policy?.relink === true || isNewest(request)
  const isLookedUp = order.length > 0 && (mustLookUp || (knownParts.get(batch)?.part ?? 1) > LOOKED_UP_ABOVE)
  const [rows, known] = await Promise.all([
    isLookedUp ? tokens.findByCards(db, pick(prints, order)) : [],
    // Whether an owner has a reference decides whether a release of him counts.
    findReferences(db, ownersAt(records, order), isNewest(request) ? undefined : batch),
  ])
  const ofKnownCards = placesOf(
    rows.flatMap(({ cards }) => cards),
    plain,
  )
  if (isLookedUp && batch !== undefined) knownParts.set(batch, { part: ofKnownCards.length / order.length })
  const set = new Set([...ofKnownCards, ...placesOfKnownOwners(records, order, known)])
  const left = order.filter(place => !set.has(place))
  const releases = isNewest(request) ? await openReleases(db, ownersAt(records, left), ring) : undefined
  if (releases) for (const place of placesOfReleased(records, left, releases)) set.add(place)
  const { plain: rest, prepared } = setApart(plain, set, context)
  const facts = prepared.map(one => one.facts)
  return { plain: rest, prepared, stored: matchCards(rows, facts), references: known, releases }
}

/** The tokens that plain records make. */
export interface NewPlain {
  plain: PlainCreates
  /** As they are stored, and as the answer tells of them. */
  tokens: NewTokens & CreatedRecords
  added: readonly AddedClaim[]
}

/** Makes and seals the tokens; undefined if there are none to make. */
export function sealPlain(plain: PlainCreates, { work, batch }: ChunkContext): NewPlain | undefined {
  const { records, scope, cards, prints, order } = plain
  if (order.length === 0) return undefined
  const { now, receiptId } = work
  const ids = tokenIdsAt(now, order.length)
  const told = { ...toldOf(plain, ids), isNamed: true }
  const tokens = {
    ...told,
    cards: pick(prints, order),
    ...sealAll(plain, ids),
    cardHolderNames: order.map(place => records.names[place] ?? null),
    binRanges: order.map(place => records.binRanges[place] ?? null),
    more: moreAt(records, order),
    givenAt:
      records.givers.length === 0 ? undefined : order.map(place => JSON.stringify(firstGiversAt(records, place))),
    shared: {
      tokenScope: scope.tokenScope,
      cardVersion: cards.version,
      turn: cards.turn,
      now,
      receiptId,
      batchNo: batch?.batchNo ?? 0,
    },
  }
  return { plain, tokens, added: addedClaims(records, order, told.tokenIds) }
}

/** The tokens and their cards. `losers`: tokens that weren't stored. */
export function newCardsOf({ plain, tokens }: NewPlain, losers: ReadonlySet<string>): NewCard[] {
  if (!plain.scope.autoProvision) return []
  const { records, scope, order } = plain
  const pans = records.pans.reveal()
  return order.flatMap((place, index) => {
    const tokenId = tokens.tokenIds[index] ?? ''
    if (losers.has(tokenId)) return []
    const token = {
      tokenId,
      tokenScope: scope.tokenScope,
      sealed: tokens.sealed.subarray(tokens.sealedEnds[index - 1] ?? 0, tokens.sealedEnds[index]),
      brand: records.brands[place] ?? null,
      expiryMonth: records.months[place] || null,
      expiryYear: records.years[place] || null,
      cardHolderName: records.names[place] ?? null,
    }
    return [{ token, pan: new Secret(pans[place] ?? ''), scope }]
  })
}

/** Who gives what of the record. */
function firstGiversAt(records: PlainRecords, place: number): GivenAt {
  const giver = records.givers[place]
  assert(giver, 'each record of a batch with `newest` has its giver')
  return firstGivers(givenBy(records, place), giver)
}

/** Undefined if none of the records gives more, so that most statements have no parameters for it. */
function moreAt({ more }: PlainRecords, order: readonly number[]): NewTokens['more'] {
  if (!order.some(place => more[place] !== undefined)) return undefined
  return {
    cardSequences: order.map(place => more[place]?.cardSequence ?? null),
    startMonths: order.map(place => more[place]?.startMonth ?? null),
    startYears: order.map(place => more[place]?.startYear ?? null),
    cardBrands: order.map(place => more[place]?.cardBrand ?? null),
    tokenExpiryDates: order.map(place => more[place]?.tokenExpiryDate ?? null),
  }
}

/** The seals of the cards, in their order. `ids`: those of their tokens. */
function sealAll(
  { records, cards, order }: PlainCreates,
  ids: Buffer,
): Pick<NewTokens, 'sealed' | 'sealedEnds' | 'sealVersions'> {
  const pans = records.pans.reveal()
  // Random bytes at the place of each seal serve as its nonce.
  const sealed = randomBytes(order.reduce((bytes, place) => bytes + SEAL_BYTES + (pans[place] ?? '').length, 0))
  const sealedEnds: number[] = []
  const sealVersions: number[] = []
  let end = 0
  for (let index = 0; index < order.length; index += 1) {
    const pan = pans[order[index] ?? 0] ?? ''
    sealVersions.push(cards.seal(pan, ids, index, sealed, end))
    end += SEAL_BYTES + pan.length
    sealedEnds.push(end)
  }
  return { sealed, sealedEnds, sealVersions }
}

/** What the answer says of the tokens, in the order of the cards. */
export function toldOf(
  { records, scope, cards, prints, order }: PlainCreates,
  ids: Buffer,
): Omit<CreatedRecords, 'isNamed'> {
  const pans = records.pans.reveal()
  const version = versionText(cards.version)
  const lines = order.map(place => records.lines[place] ?? 0)
  return {
    ids,
    tokenIds: uuidTexts(ids),
    lines,
    references: order.map(place => records.references[place]),
    bins: order.map(place => shownBin(pans[place] ?? '', scope.binDigits)),
    lastFours: order.map(place => (pans[place] ?? '').slice(-4)),
    expiryMonths: order.map(place => records.months[place] ?? 0),
    expiryYears: order.map(place => records.years[place] ?? 0),
    brands: order.map(place => records.brands[place] ?? null),
    presented: order.map(
      place => expiryText(records.months[place], records.years[place]) + checkAt(prints, place * UUID_BYTES) + version,
    ),
    isAdded: order.map(place => records.claims[place] !== undefined),
    byLine: placesByValue(lines),
  }
}

/** The records whose cards turned out to have other tokens (`lost`), as objects for the rules of fold.ts. */
export function lostRecords(
  { plain, tokens }: NewPlain,
  lost: ReadonlySet<string>,
  context: ChunkContext,
): PreparedCreate[] {
  const lines = new Set(tokens.lines.filter((_, at) => lost.has(tokens.tokenIds[at] ?? '')))
  knownParts.set(String(context.batch?.batchNo), { part: lines.size / plain.order.length })
  const places = plain.order.filter(place => lines.has(plain.records.lines[place] ?? 0))
  return byLine(
    places.map(place => asObject(plain, place, context)),
    [],
  )
}
