// Counts how often a client asked for unknown cards with the same BIN and last four digits: that is the trace of
// somebody who guesses PANs. A window lasts 24 hours from its first miss.
import { listOf, plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

/** A client asked for an unknown card with these digits. */
export interface Guess {
  clientId: string
  tokenScope: string
  /** BIN and last four. */
  digits: string
}

type Counted = Guess & { misses: number }
const COUNTED = `
  g.client_id as "clientId",
  g.token_scope as "tokenScope",
  g.digits,
  g.misses`

const GIVEN = `unnest(${listOf(1, 'text')}, ${listOf(2, 'uuid')}, ${listOf(3, 'text')}) as v(client_id, token_scope, digits)`
const valuesOf = (guesses: readonly Guess[]) => [
  texts(guesses.map(({ clientId }) => clientId)),
  plains(guesses.map(({ tokenScope }) => tokenScope)),
  texts(guesses.map(({ digits }) => digits)),
]

/** Adds one miss for each guess. Returns the new counts, in the same order. */
export async function addAll(db: Db, guesses: readonly Guess[]): Promise<number[]> {
  if (guesses.length === 0) return []
  const { rows } = await db.query<Counted>({
    name: 'guesses-add',
    text: `insert into tokenmill.guess as g (
  client_id,
  token_scope,
  digits,
  misses,
  since
)
select
  v.client_id,
  v.token_scope,
  v.digits,
  count(*),
  now()
from ${GIVEN}
group by v.client_id, v.token_scope, v.digits
order by v.client_id, v.token_scope, v.digits
on conflict (client_id, token_scope, digits) do update
set
  misses = case when g.since < now() - interval '24 hours' then excluded.misses else g.misses + excluded.misses end,
  since = case when g.since < now() - interval '24 hours' then now() else g.since end
returning ${COUNTED}`,
    values: valuesOf(guesses),
  })
  return missesOf(guesses, rows)
}

/** The misses within the window for each guess, in the same order. */
export async function countAll(db: Db, guesses: readonly Guess[]): Promise<number[]> {
  if (guesses.length === 0) return []
  const { rows } = await db.query<Counted>({
    name: 'guesses-count',
    text: `select ${COUNTED}
from ${GIVEN}
cross join lateral (
  select
    client_id,
    token_scope,
    digits,
    misses
  from tokenmill.guess
  where client_id = v.client_id and token_scope = v.token_scope and digits = v.digits
  and since >= now() - interval '24 hours'
  limit 1
) as g`,
    values: valuesOf(guesses),
  })
  return missesOf(guesses, rows)
}

function missesOf(guesses: readonly Guess[], rows: readonly Counted[]): number[] {
  const found = new Map(rows.map(row => [`${row.clientId} ${row.tokenScope} ${row.digits}`, row.misses]))
  return guesses.map(({ clientId, tokenScope, digits }) => found.get(`${clientId} ${tokenScope} ${digits}`) ?? 0)
}

/** Erases up to `limit` misses whose window began before `before` (ms). Returns how many. */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.guess
  where since < $1 and ctid = any(array(
  select ctid
  from tokenmill.guess
  where since < $1
  limit $2
))`,
    values: [new Date(before), limit],
  })
  return count
}
