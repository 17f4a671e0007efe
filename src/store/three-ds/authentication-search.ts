// Lists and counts authentications: a search becomes one parameterised statement. It reads one page per entity from an
// index and merges the pages, so that a client with many entities needs no sort of all rows.
import { setImmediate } from 'node:timers/promises'
import { type FieldKind, fieldOf } from '../../three-ds/fields.ts'
import { type Condition, likePattern, type Search } from '../../three-ds/filter.ts'
import type { Authentication } from '../../three-ds/record.ts'
import { plains } from '../columns.ts'
import type { Db, Statement } from '../pool.ts'
import { NAMES, type Row, recordOf, SELECTED, type Sealer } from './authentication-row.ts'

const TYPES = {
  uuid: 'uuid',
  token: 'uuid',
  amount: 'bigint',
  moment: 'timestamptz',
  text: 'text',
} as const satisfies Record<FieldKind, string>

/** One page of the authentications of these entities that match `search`. */
export async function find(
  db: Db,
  sealer: Sealer,
  entities: readonly string[],
  search: Search,
): Promise<Authentication[]> {
  const { rows } = await db.query<Row>(listStatement(entities, search))
  const found: Authentication[] = []
  for (const row of rows) {
    // Other clients' requests wait for this event loop, and a page may have ten thousand sealed values to open.
    if (found.length % OPENED_AT_ONCE === OPENED_AT_ONCE - 1) await setImmediate()
    found.push(recordOf(row, sealer))
  }
  return found
}
const OPENED_AT_ONCE = 100

/** One authentication; undefined if it isn't one of these entities'. */
export async function findOne(
  db: Db,
  sealer: Sealer,
  entities: readonly string[],
  authenticationId: string,
): Promise<Authentication | undefined> {
  const { rows } = await db.query<Row>({
    name: 'authentication-of-entities',
    text: `select ${SELECTED}
from tokenmill.authentication
where authentication_id = $1 and entity_id = any($2::uuid[])`,
    values: [authenticationId, plains(entities)],
  })
  return rows[0] && recordOf(rows[0], sealer)
}

/** How many authentications match, on all pages together. */
export async function count(db: Db, entities: readonly string[], search: Search): Promise<number> {
  const { where, values } = conditionsOf(entities, search.conditions)
  const { rows } = await db.query<{ count: number }>({
    text: `select count(*) as count
from unnest($1::uuid[]) as caller(entity)
join tokenmill.authentication as a on a.entity_id = caller.entity
where ${where}`,
    values,
  })
  return rows[0]?.count ?? 0
}

export function listStatement(entities: readonly string[], search: Search): Statement {
  const { where, values } = conditionsOf(entities, search.conditions)
  const limit = `$${values.push(search.limit)}::int`
  const skip = `$${values.push(search.skip)}::int`
  const order = orderOf(search)
  // The outer order may be by status. The status is computed from the state; the record has no such member.
  const page = (columns: string, entity: string, range: string) =>
    `select ${columns}
from tokenmill.authentication as a
where a.entity_id = ${entity} and ${where}
order by ${order}
${range}`
  // With one entity there is nothing to merge.
  if (new Set(entities).size === 1)
    return { text: page(SELECTED, '($1::uuid[])[1]', `limit ${limit} offset ${skip}`), values }
  return {
    text: `select ${SELECTED}
from unnest($1::uuid[]) as caller(entity)
cross join lateral (${page(`${NAMES.join(', ')}, pares_status`, 'caller.entity', `limit ${limit} + ${skip}`)}) as page
order by ${order}
limit ${limit} offset ${skip}`,
    values,
  }
}

// The order of a search. The id comes last, so that pages neither repeat nor miss rows that are equal otherwise.
function orderOf({ sort }: Search): string {
  const columns = new Map(sort.map(({ field, descending }) => [fieldOf(field).column, descending]))
  const last = sort.at(-1)?.descending ?? true
  for (const column of ['created_at', 'authentication_id']) if (!columns.has(column)) columns.set(column, last)
  return [...columns].map(([column, descending]) => `${column} ${descending ? 'desc' : 'asc'}`).join(', ')
}

function conditionsOf(
  entities: readonly string[],
  conditions: readonly Condition[],
): { where: string; values: unknown[] } {
  const values: unknown[] = [plains([...new Set(entities)])]
  const bind = (value: unknown) => `$${values.push(value)}`
  return { where: ['true', ...conditions.map(condition => clauseOf(condition, bind))].join(' and '), values }
}

function clauseOf({ field, operator, values }: Condition, bind: (value: unknown) => string): string {
  const { column, kind } = fieldOf(field)
  const name = `a.${column}`
  const type = TYPES[kind]
  const bound = (value: string | number) => `${bind(kind === 'moment' ? new Date(value) : value)}::${type}`
  const list = () => `array[${values.map(bound).join(', ')}]`
  const [first] = values
  switch (operator) {
    case '=':
      return values.length === 1 && first !== undefined ? `${name} = ${bound(first)}` : `${name} = any(${list()})`
    // A row without a value counts as not equal.
    case '!=':
      return `(${name} is null or ${name} <> all(${list()}))`
    case '>=':
      return `${name} >= ${bound(Math.min(...values.map(Number)))}`
    case '<=':
      return `${name} <= ${bound(Math.max(...values.map(Number)))}`
    case '~=':
      return `(${values.map(value => `${name} like ${bind(likePattern(String(value)))}`).join(' or ')})`
  }
}
