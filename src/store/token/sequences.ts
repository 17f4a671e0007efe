// The highest `sequence` of a client that took effect on a token, over all kinds that change a token.
import { type Db, LostRace } from '../pool.ts'

export async function find(db: Db, clientId: string, tokenId: string): Promise<number | undefined> {
  const { rows } = await db.query<{ sequence: number }>({
    name: 'sequence-find',
    text: 'select sequence from tokenmill.sequence_mark where token_id = $1 and client_id = $2',
    values: [tokenId, clientId],
  })
  return rows[0]?.sequence
}

/** Raises the sequence; LostRace where a later one has taken effect meanwhile. */
export async function advance(db: Db, clientId: string, tokenId: string, sequence: number): Promise<void> {
  const { count } = await db.query({
    name: 'sequence-advance',
    text: `insert into tokenmill.sequence_mark (token_id, client_id, sequence) values ($1, $2, $3)
on conflict (token_id, client_id) do update set sequence = excluded.sequence where sequence_mark.sequence < excluded.sequence`,
    values: [tokenId, clientId, sequence],
  })
  if (count !== 1) throw new LostRace('a later sequence took effect meanwhile')
}
