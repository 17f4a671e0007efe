// The highest `sequence` of a client that took effect on a token, across all kinds that change a token.
import { plains, texts } from '../columns.ts'
import { type Db, LostRace } from '../pool.ts'

export interface SequenceMark {
  clientId: string
  tokenId: string
  sequence: number
}

/** The stored marks of these clients on these tokens. */
export async function findAll(
  db: Db,
  wanted: readonly Pick<SequenceMark, 'clientId' | 'tokenId'>[],
): Promise<SequenceMark[]> {
  const { rows } = await db.query<SequenceMark>({
    name: 'sequences-find',
    text: `select found.client_id as "clientId", found.token_id as "tokenId", found.sequence
from unnest($1::uuid[], $2::text[]) as wanted(token, client)
cross join lateral (
  select client_id, token_id, sequence
  from tokenmill.sequence_mark
  where token_id = wanted.token and client_id = wanted.client
  limit 1
) as found`,
    values: [plains(wanted.map(({ tokenId }) => tokenId)), texts(wanted.map(({ clientId }) => clientId))],
  })
  return rows
}

/** Raises marks, at most one per client and token. Throws LostRace if a higher sequence has taken effect meanwhile. */
export async function advanceAll(db: Db, marks: readonly SequenceMark[]): Promise<void> {
  if (marks.length === 0) return
  const { count } = await db.query({
    name: 'sequences-advance',
    text: `insert into tokenmill.sequence_mark (token_id, client_id, sequence)
select v.token_id, v.client_id, v.sequence
from unnest($1::uuid[], $2::text[], $3::bigint[]) as v(token_id, client_id, sequence)
order by v.token_id, v.client_id
on conflict (token_id, client_id) do update
set sequence = excluded.sequence
where sequence_mark.sequence < excluded.sequence`,
    values: [
      plains(marks.map(({ tokenId }) => tokenId)),
      texts(marks.map(({ clientId }) => clientId)),
      plains(marks.map(({ sequence }) => sequence)),
    ],
  })
  if (count !== marks.length) throw new LostRace('a later sequence took effect meanwhile')
}
