// The directory of the cards for which third parties make tokens: of several jobs with one card only one asks. A row goes
// with its provisioning's cards, by a trigger. Only this file writes the directory.
import type { Fingerprints } from '../../token/token.ts'
import { plains } from '../columns.ts'
import { type Db, limitStatements } from '../pool.ts'
import { assertTurn } from '../token/card-phases.ts'

export interface ProvisioningCard {
  provisionId: string
  /** Undefined: a network makes it, and may make several for one card. */
  link?: Fingerprints | undefined
}

interface Card {
  fp: string
  version: number
  provisionId: string
}

/**
 * Writes the cards of new provisionings. Returns the provisionings without those whose card has got another one
 * meanwhile: of these no row is left. Throws `CardPhaseChanged` if the fingerprints were made in another turn than the
 * stored one.
 */
export async function insertMissing<Row extends ProvisioningCard>(db: Db, rows: readonly Row[]): Promise<Row[]> {
  const cards = rows.flatMap(({ provisionId, link }) =>
    (link?.kept ?? []).map((fp, index): Card => ({ fp, version: link?.versions[index] ?? 0, provisionId })),
  )
  for (const turn of new Set(rows.flatMap(({ link }) => link?.turn ?? []))) await assertTurn(db, turn)
  const won = await insert(db, cards)
  const losers = new Set(cards.filter(({ fp }) => !won.has(fp)).map(({ provisionId }) => provisionId))
  const theirs = cards.filter(({ fp, provisionId }) => losers.has(provisionId) && won.has(fp))
  if (theirs.length > 0) await remove(db, theirs)
  return rows.filter(({ provisionId }) => !losers.has(provisionId))
}

/** Inserts in the order of the fingerprints, so that two transactions with the same cards wait without a deadlock. */
async function insert(db: Db, cards: readonly Card[]): Promise<ReadonlySet<string>> {
  const sorted = cards.toSorted((a, b) => (a.fp < b.fp ? -1 : 1))
  const { rows } = await db.query<{ fp: string }>({
    name: 'scheme-cards-insert',
    text: `insert into tokenmill.scheme_card (fp, version, provision_id)
select v.fp, v.version, v.provision_id
from unnest($1::uuid[], $2::smallint[], $3::uuid[]) as v(fp, version, provision_id)
on conflict (fp) do nothing
returning fp`,
    values: [
      plains(sorted.map(({ fp }) => fp)),
      plains(sorted.map(({ version }) => version)),
      plains(sorted.map(({ provisionId }) => provisionId)),
    ],
  })
  return new Set(rows.map(({ fp }) => fp))
}

async function remove(db: Db, cards: readonly Pick<Card, 'fp'>[]): Promise<void> {
  await db.query({
    name: 'scheme-cards-remove',
    text: `delete from tokenmill.scheme_card
where fp = any($1::uuid[])`,
    values: [plains(cards.map(({ fp }) => fp))],
  })
}

/** Removes the rows of a version that isn't looked for any more, in a transaction, whose limits it changes. */
export async function removeUnder(db: Db, version: number): Promise<void> {
  await limitStatements(db, 0)
  await db.query({
    text: `delete from tokenmill.scheme_card
where version = $1`,
    values: [version],
  })
}

/**
 * How many cards of provisionings that no token's row has taken over are under this version; the token's row has the other
 * cards, too. It reads the whole table, and changes the limits of the transaction in which it is called.
 */
export async function countUntakenUnder(db: Db, version: number): Promise<number> {
  await limitStatements(db, 0)
  await db.query({ text: 'set local enable_seqscan = on' })
  const { rows } = await db.query<{ cards: number }>({
    text: `select count(*) as cards
from tokenmill.scheme_card as c
where c.version = $1 and exists (
  select
  from tokenmill.scheme_token as s
  where s.provision_id = c.provision_id and s.taken_at is null
)`,
    values: [version],
  })
  return rows[0]?.cards ?? 0
}
