// The roles of the database server that tokenmill works by. They belong to the whole server, so two databases of it may
// be set up at once; advisory locks don't help against that, because each database has its own.
import type pg from 'pg'

const NAMES = ['reader', 'queue', 'gateway', 'worker', 'console'] as const

/** Makes the roles that are missing, and lets the current user take them on. Further runs, also at once, change nothing. */
export async function makeRoles(db: Pick<pg.Pool, 'query'>, prefix = 'tokenmill'): Promise<void> {
  for (const role of NAMES.map(name => `${prefix}_${name}`))
    await db.query(
      unlessDone(
        `if not exists (select from pg_roles where rolname = '${role}') then create role ${role} nologin; end if`,
      ),
    )
  // A process that makes a report for a worker takes the role of the reader.
  await db.query(unlessDone(`grant ${prefix}_reader to ${prefix}_gateway, ${prefix}_worker`))
  await db.query(unlessDone(`grant ${NAMES.map(name => `${prefix}_${name}`).join(', ')} to current_user`))
}

/** Whether the server has the roles; a server to which a database was restored may lack them. */
export async function hasRoles(db: Pick<pg.Pool, 'query'>): Promise<boolean> {
  const names = NAMES.map(name => `tokenmill_${name}`)
  const { rows } = await db.query(
    `select
from pg_roles
where rolname = any($1)`,
    [names],
  )
  return rows.length === names.length
}

/** If two sessions make the same role or grant, the second waits for the first, and then finds the work done. */
function unlessDone(statement: string): string {
  return `do $$ begin ${statement}; exception when duplicate_object or unique_violation then null; end $$`
}
