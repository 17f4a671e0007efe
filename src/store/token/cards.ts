// The directory of cards: which token has the card of a fingerprint. A card has one row for each version of the key under
// which it is known, and each row is unique by its own fingerprint alone. A token's row lists its fingerprints. Only this
// file writes the directory.
import { orderOf, pick, smallints, uuidBytes, uuids } from '../binary.ts'
import { plains } from '../columns.ts'
import { type Db, LostRace, limitStatements } from '../pool.ts'
import { assertTurn, CardPhaseChanged } from './card-phases.ts'
import type { NewTokens } from './new-tokens.ts'
import type { CardsOfRow } from './token-row.ts'

/** Another token has the card. */
export class CardTaken extends LostRace {
  override name = 'CardTaken'

  constructor() {
    super('a card got its token meanwhile')
  }
}

interface Card {
  /** The fingerprint. */
  fp: string
  version: number
  tokenId: string
}

/**
 * The fingerprints that a token's row gains and loses. `turn`: the turn of the key in which its fingerprints were made.
 */
interface Changes {
  gained: Card[]
  lost: Pick<Card, 'fp' | 'tokenId'>[]
  turn: string | undefined
}

function changesOf(rows: readonly CardsOfRow[]): Changes {
  const changes: Changes = { gained: [], lost: [], turn: undefined }
  for (const { tokenId, cards, storedCards = NONE, link } of rows) {
    if (link) changes.turn = onlyTurn(changes.turn, link.turn)
    if (cards === storedCards) continue
    for (const fp of storedCards) if (!cards.includes(fp)) changes.lost.push({ fp, tokenId })
    if (!link) continue
    for (const [index, fp] of cards.entries())
      if (!storedCards.includes(fp)) changes.gained.push({ fp, version: link.versions[index] ?? 0, tokenId })
  }
  return changes
}
const NONE: readonly string[] = []

/** Of two turns one is a former one, so what was hashed in it isn't written. Throws `CardPhaseChanged`. */
function onlyTurn(one: string | undefined, other: string | undefined): string | undefined {
  if (one !== undefined && other !== undefined && one !== other) throw new CardPhaseChanged()
  return one ?? other
}

/**
 * Writes the cards of new tokens, some of which may be in columns. Returns the tokens whose card another transaction has given
 * a token meanwhile; it removes all rows that it had inserted for these tokens. Throws `CardPhaseChanged`.
 */
export async function insertMissing(
  db: Db,
  rows: readonly CardsOfRow[],
  columns?: NewTokens,
): Promise<ReadonlySet<string>> {
  const { gained, turn: ofRows } = changesOf(rows)
  const turn = onlyTurn(ofRows, columns?.shared.turn)
  if (turn === undefined) return new Set()
  const { sent, inserted } = await insert(db, gained, turn, columns)
  if (inserted === sent.count) return new Set()
  await assertTurn(db, turn)
  const losers = await findLosers(db, sent)
  // A token in columns has one card: if it lost that one, it has no row here.
  await remove(
    db,
    gained.filter(({ tokenId }) => losers.has(tokenId)),
  )
  return losers
}

/**
 * Writes which fingerprints changed tokens gain and lose. Throws `CardTaken` if another token has one of the cards by now,
 * and `CardPhaseChanged`.
 */
export async function changeAll(db: Db, rows: readonly CardsOfRow[]): Promise<void> {
  const { gained, lost, turn } = changesOf(rows)
  // Removes first: another row of this set may gain a fingerprint that this one loses.
  const removed = remove(db, lost)
  if (turn === undefined) return removed
  if (gained.length === 0) {
    // The turn is checked here, too: a process of a former turn may take a fingerprint away that it doesn't know, or
    // give a number to a row that keeps its former fingerprint.
    await Promise.all([removed, assertTurn(db, turn)])
    return
  }
  const [{ inserted }] = await Promise.all([insert(db, gained, turn), removed])
  if (inserted === gained.length) return
  await assertTurn(db, turn)
  throw new CardTaken()
}

/** Cards and their tokens as parameters of a statement. */
interface Sent {
  fps: Buffer
  tokenIds: Buffer
  count: number
}

/** Inserts in the order of the fingerprints, so that two transactions with the same cards wait without a deadlock. */
async function insert(
  db: Db,
  cards: readonly Card[],
  turn: string,
  columns?: NewTokens,
): Promise<{ sent: Sent; inserted: number }> {
  const prints = Buffer.concat([uuidBytes(cards.map(({ fp }) => fp)), columns?.cards ?? NO_BYTES])
  const tokenIds = Buffer.concat([uuidBytes(cards.map(({ tokenId }) => tokenId)), columns?.ids ?? NO_BYTES])
  const order = orderOf(prints)
  const sent = { fps: uuids(pick(prints, order)), tokenIds: uuids(pick(tokenIds, order)), count: order.length }
  const versionOf = (index: number) => cards[index]?.version ?? columns?.shared.cardVersion ?? 0
  const { count } = await db.query({
    name: 'cards-insert',
    text: `insert into tokenmill.card (fp, version, token_id)
select v.fp, v.version, v.token_id
from unnest($1::uuid[], $2::smallint[], $3::uuid[]) as v(fp, version, token_id)
where (select phase from tokenmill.key_lives) = $4
on conflict (fp) do nothing`,
    values: [sent.fps, smallints(order.map(versionOf)), sent.tokenIds, turn],
  })
  return { sent, inserted: count }
}
const NO_BYTES = Buffer.alloc(0)

async function remove(db: Db, cards: readonly Pick<Card, 'fp' | 'tokenId'>[]): Promise<void> {
  if (cards.length === 0) return
  const sorted = cards.toSorted(byFingerprint)
  await db.query({
    name: 'cards-remove',
    text: `delete from tokenmill.card as c
using unnest($1::uuid[], $2::uuid[]) as v(fp, token_id)
where c.fp = v.fp and c.token_id = v.token_id`,
    values: [plains(sorted.map(({ fp }) => fp)), plains(sorted.map(({ tokenId }) => tokenId))],
  })
}

function byFingerprint(a: Pick<Card, 'fp'>, b: Pick<Card, 'fp'>): number {
  return a.fp < b.fp ? -1 : 1
}

/** The ids of those tokens whose card belongs to another token. */
async function findLosers(db: Db, { fps, tokenIds }: Sent): Promise<Set<string>> {
  const { rows } = await db.query<{ id: string }>({
    name: 'cards-losers',
    text: `select distinct v.token_id as id
from unnest($1::uuid[], $2::uuid[]) as v(fp, token_id)
left join lateral (select token_id as owner from tokenmill.card where fp = v.fp limit 1) as known on true
where known.owner is distinct from v.token_id`,
    values: [fps, tokenIds],
  })
  return new Set(rows.map(({ id }) => id))
}

/** The versions of the key under which these fingerprints were made; fingerprints without a row are left out. */
export async function findVersions(db: Db, fps: readonly string[]): Promise<Map<string, number>> {
  const { rows } = await db.query<{ fp: string; version: number }>({
    name: 'cards-versions',
    text: `select found.fp, found.version
from unnest($1::uuid[]) as wanted(fp)
cross join lateral (select fp, version from tokenmill.card where fp = wanted.fp limit 1) as found`,
    values: [plains(fps)],
  })
  return new Map(rows.map(row => [row.fp, row.version]))
}

interface Forgotten {
  fp: string
  tokenId: string
}

/**
 * Up to `limit` rows of a version after the fingerprint `after`, in their order. It may read the whole directory, so it
 * lifts the statement time-out of the transaction in which it is called.
 */
export async function findUnder(
  db: Db,
  { version, after, limit }: { version: number; after: string; limit: number },
): Promise<Forgotten[]> {
  await limitStatements(db, 0)
  const { rows } = await db.query<Forgotten>({
    text: `select fp, token_id as "tokenId"
from tokenmill.card
where fp > $1 and version = $2
order by fp
limit $3`,
    values: [after, version, limit],
  })
  return rows
}

/** Removes rows of a version that isn't looked for any more. The caller holds their tokens. */
export function removeForgotten(db: Db, forgotten: readonly Forgotten[]): Promise<void> {
  return remove(db, forgotten)
}
