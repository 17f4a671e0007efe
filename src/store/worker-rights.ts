// The rights on each table of the database user of workers, scheduler and 3-D Secure service: only those that these
// roles use, and none that only an operator's command uses. So a worker that was taken over can't rewrite the audit,
// nor add a client. Each upgrade grants them anew. Rights beyond tables are in the migrations.
import type pg from 'pg'
import type { Tables } from './tables.ts'

/**
 * Gives the role `tokenmill_worker` these rights on tables, and no other. Writes nothing if the role has exactly these
 * rights already.
 */
export async function grant(db: Pick<pg.Pool, 'query'>, tables: readonly Tables[]): Promise<void> {
  const wanted = tables.flatMap(({ rights }) => Object.entries(rights))
  if (await isGranted(db, wanted)) return
  const statements = wanted.flatMap(([table, rights]) => [
    `revoke all on tokenmill."${table}" from tokenmill_worker`,
    ...(rights === '' ? [] : [`grant ${rights} on tokenmill."${table}" to tokenmill_worker`]),
  ])
  // In one message, and so in one transaction: a running worker never lacks a right.
  await db.query(statements.join(';\n'))
}

const GRANTED = `with tables as (
  select oid, relname, relacl
  from pg_class
  where relnamespace = 'tokenmill'::regnamespace and relkind in ('r', 'p')
)
select relname || ' ' || lower(privilege_type) as name
from tables, aclexplode(relacl)
where grantee = 'tokenmill_worker'::regrole
union all
select relname || ' ' || lower(privilege_type) || ' ' || attname
from tables
join pg_attribute on attrelid = tables.oid, aclexplode(attacl)
where grantee = 'tokenmill_worker'::regrole`

async function isGranted(
  db: Pick<pg.Pool, 'query'>,
  wanted: readonly [table: string, rights: string][],
): Promise<boolean> {
  const { rows } = await db.query<{ name: string }>(GRANTED)
  const said = wanted.flatMap(([table, rights]) =>
    [...rights.matchAll(/(\w+)(?: \(([^)]*)\))?/g)].flatMap(([, right = '', columns]) =>
      columns === undefined
        ? [`${table} ${right}`]
        : columns
            .trim()
            .split(/,\s*/)
            .map(column => `${table} ${right} ${column}`),
    ),
  )
  return rows.length === said.length && rows.every(({ name }) => said.includes(name))
}
