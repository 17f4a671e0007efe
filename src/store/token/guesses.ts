// Counts how often a client asked for unknown cards with the same BIN and last four digits, as somebody would who
// guesses PANs. A window is 24 hours.
import { texts } from '../columns.ts'
import type { Db } from '../pool.ts'

/** Adds one miss per entry of `digits` (BIN and last four) and returns the highest count reached. */
export async function add(db: Db, clientId: string, tokenScope: string, digits: readonly string[]): Promise<number> {
  const { rows } = await db.query<{ most: number | null }>({
    name: 'guess-add',
    text: `with missed as (
  insert into tokenmill.guess (client_id, token_scope, digits, misses, since)
  select $1, $2, v.digits, count(*), now() from unnest($3::text[]) as v(digits) group by v.digits order by v.digits
  on conflict (client_id, token_scope, digits) do update set
    misses = case when guess.since < now() - interval '24 hours' then excluded.misses else guess.misses + excluded.misses end,
    since = case when guess.since < now() - interval '24 hours' then now() else guess.since end
  returning misses
)
select max(misses) as most from missed`,
    values: [clientId, tokenScope, texts(digits)],
  })
  return rows[0]?.most ?? 0
}

/** Misses within the window; digits without any are left out. */
export async function count(
  db: Db,
  clientId: string,
  tokenScope: string,
  digits: readonly string[],
): Promise<Map<string, number>> {
  const { rows } = await db.query<{ digits: string; misses: number }>({
    text: `select g.digits, g.misses from unnest($3::text[]) as v(digits)
cross join lateral (select digits, misses from tokenmill.guess where client_id = $1 and token_scope = $2
  and digits = v.digits and since >= now() - interval '24 hours' limit 1) as g`,
    values: [clientId, tokenScope, texts(digits)],
  })
  return new Map(rows.map(row => [row.digits, row.misses]))
}

/** Which of `digits` have reached `most` misses within the window. */
export async function findAbove(
  db: Db,
  clientId: string,
  tokenScope: string,
  digits: readonly string[],
  most: number,
): Promise<Set<string>> {
  const { rows } = await db.query<{ digits: string }>({
    name: 'guess-above',
    text: `select g.digits from unnest($3::text[]) as v(digits)
cross join lateral (select digits from tokenmill.guess where client_id = $1 and token_scope = $2 and digits = v.digits
  and misses >= $4 and since >= now() - interval '24 hours' limit 1) as g`,
    values: [clientId, tokenScope, texts(digits), most],
  })
  return new Set(rows.map(row => row.digits))
}

/** Misses whose window began before `before` (ms). Returns how many. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: 'delete from tokenmill.guess where since < $1',
    values: [new Date(before)],
  })
  return count
}
