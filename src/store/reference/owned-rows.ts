// Whether the tokens of a batch's rows still belong to the owners that the rows named. It only reads.
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface OwnedRow {
  tokenId: string
  /** The row's reference. If the row has the provider's id of its card, the reference is this id. */
  reference: string | null
}

export interface Ownership {
  /** The token has an owner. */
  isOwned: boolean
  /** One of its owners has the reference as the id of its card. */
  isNamed: boolean
}

/** In the order of `wanted`. */
export async function findOwnership(db: Db, wanted: readonly OwnedRow[]): Promise<Ownership[]> {
  if (wanted.length === 0) return []
  const { rows } = await db.query<{ owned: boolean; named: boolean }>({
    name: 'owned-rows',
    text: `select exists (select from tokenmill.source_reference where token_id = w.id) as owned,
  exists (select from tokenmill.source_reference where token_id = w.id and card_id = w.reference) as named
from unnest($1::uuid[], $2::text[]) with ordinality as w(id, reference, n)
order by n`,
    values: [plains(wanted.map(({ tokenId }) => tokenId)), texts(wanted.map(({ reference }) => reference))],
  })
  return rows.map(({ owned: isOwned, named: isNamed }) => ({ isOwned, isNamed }))
}
