// Counts how often a client asked for unknown cards with the same BIN and last four digits: that is the trace of
// somebody who guesses PANs. A window lasts 24 hours from its first miss.
import { type Column, listOf, plains, rowSet, texts } from '../columns.ts'
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

const ADDED: readonly Column<Counted>[] = [
  { name: 'digits', type: 'text', plain: true, text: ({ digits }) => digits },
  { name: 'client_id', type: 'text', plain: false, text: ({ clientId }) => clientId },
  { name: 'token_scope', type: 'uuid', plain: true, text: ({ tokenScope }) => tokenScope },
  { name: 'misses', type: 'integer', plain: true, text: ({ misses }) => misses },
]

/** A guess that missed. */
export interface Missed extends Guess {
  /** The misses that may be counted; default: any number. */
  missesMax?: number | undefined
}

/** Adds one miss for each guess. Returns whether more misses of one are counted now than may be. */
export async function addAll(db: Db, guesses: readonly Missed[]): Promise<boolean> {
  if (guesses.length === 0) return false
  const { shape, rows: given, values } = rowSet(ADDED, counted(guesses))
  const least = Math.min(INTEGER_MAX, ...guesses.map(({ missesMax = INTEGER_MAX }) => missesMax))
  const { rows } = await db.query<Counted>({
    name: `guesses-add-${shape}`,
    text: `with g as (
  insert into tokenmill.guess as g (
    digits,
    client_id,
    token_scope,
    misses,
    since
  )
  ${given}, now()
  on conflict (client_id, token_scope, digits) do update
  set
    misses = case when g.since < now() - interval '24 hours' then excluded.misses else g.misses + excluded.misses end,
    since = case when g.since < now() - interval '24 hours' then now() else g.since end
  returning g.*
)
select ${COUNTED}
from g
where misses > $${values.length + 1}`,
    values: [...values, least],
  })
  const reached = missesOf(guesses, rows)
  return guesses.some(({ missesMax = INTEGER_MAX }, index) => (reached[index] ?? 0) > missesMax)
}

const INTEGER_MAX = 2_147_483_647

/** Each guess once, with the number of its misses; in one order for all transactions, so that none waits for another in a circle. */
function counted(guesses: readonly Guess[]): Counted[] {
  const byKey = new Map<string, Counted>()
  for (const guess of guesses) {
    const { clientId, tokenScope, digits } = guess
    const known = byKey.get(keyOf(guess))
    if (known) known.misses += 1
    else byKey.set(keyOf(guess), { clientId, tokenScope, digits, misses: 1 })
  }
  return [...byKey.entries()].sort(([one], [other]) => (one < other ? -1 : 1)).map(([, guess]) => guess)
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
  const found = new Map(rows.map(row => [keyOf(row), row.misses]))
  return guesses.map(guess => found.get(keyOf(guess)) ?? 0)
}

const keyOf = ({ clientId, tokenScope, digits }: Guess) => `${clientId} ${tokenScope} ${digits}`

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
