// Database users, each for one role in this database only. The roles themselves belong to the whole PostgreSQL server
// and have no password: if a role could log in, it could open every installation on that server.
import { createHash } from 'node:crypto'
import pg from 'pg'
import { assert } from '../../errors.ts'
import { urlOf } from '../connection/hosts.ts'
import type { Db } from '../pool.ts'

export const LOGIN_ROLES = {
  gateway: 'tokenmill_gateway',
  reader: 'tokenmill_reader',
  worker: 'tokenmill_worker',
  console: 'tokenmill_console',
} as const
export type LoginPurpose = keyof typeof LOGIN_ROLES

/** Further roles of a user: that of the queues, if they are in this database. */
type MoreRoles = readonly 'tokenmill_queue'[]

export interface Login {
  /**
   * The user's name. It depends on database and installation, so that two databases on one server, or a copy of a
   * database, have different users.
   */
  name: string
  database: string
  /** The user exists already. */
  exists: boolean
}

export async function find(db: Db, purpose: LoginPurpose, installationId: string): Promise<Login> {
  const { rows } = await db.query<{ database: string; names: string[] }>({
    text: `select current_database()::text as database,
      array(select rolname::text from pg_roles where starts_with(rolname, 'tokenmill_')) as names`,
  })
  const { database = '', names = [] } = rows[0] ?? {}
  const digest = createHash('sha256').update(`${installationId}\n${database}`).digest('hex')
  const name = `${LOGIN_ROLES[purpose]}_${digest.slice(0, 10)}`
  return { name, database, exists: names.includes(name) }
}

/** The statements that make the user, or give an existing user another password; without final semicolons. */
export function statementsFor(
  { name, database, exists }: Login,
  purpose: LoginPurpose,
  { verifier, more }: { verifier: string; more: MoreRoles },
): string[] {
  const [login, place] = [pg.escapeIdentifier(name), pg.escapeIdentifier(database)]
  return [
    `${exists ? 'alter' : 'create'} role ${login} login password ${pg.escapeLiteral(verifier)}`,
    `grant ${[LOGIN_ROLES[purpose], ...more].join(', ')} to ${login}`,
    `grant connect on database ${place} to ${login}`,
    `revoke connect, temporary on database ${place} from public`,
    // BullMQ's functions put jobs that are added together into a temporary table.
    `grant temporary on database ${place} to tokenmill_queue`,
  ]
}

/** Whether every user of the server may connect to this database. */
export async function isOpenToAll(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ open: boolean }>({
    text: `select has_database_privilege('public', current_database(), 'CONNECT') as open`,
  })
  return rows[0]?.open === true
}

/** Whether the user of this connection could select sealed cards, by itself or by a role that it may take. */
export async function seesCards(db: Db): Promise<boolean> {
  const { rows } = await db.query<{ sees: boolean }>({
    text: `select exists (
      select
      from pg_roles
      where pg_has_role(session_user, oid, 'MEMBER')
        and has_column_privilege(oid, 'tokenmill.token', 'sealed', 'SELECT')
) as sees`,
  })
  return rows[0]?.sees === true
}

/** The users with open connections of this application name that could select sealed cards. */
export async function thatSeeCards(db: Db, application: string): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>({
    text: `select distinct u.rolname::text as name
from pg_stat_activity as a
join pg_roles as u on u.oid = a.usesysid
where a.application_name = $1 and a.datname = current_database() and exists (
  select
  from pg_roles as r
  where pg_has_role(u.oid, r.oid, 'MEMBER')
    and has_column_privilege(r.oid, 'tokenmill.token', 'sealed', 'SELECT')
)
order by name`,
    values: [application],
  })
  return rows.map(row => row.name)
}

/** The users with open connections whose application name matches (`like`), and that could change numbered audit rows. */
export async function thatRewriteAudit(db: Db, applications: readonly string[]): Promise<string[]> {
  const { rows } = await db.query<{ name: string }>({
    text: `select distinct u.rolname::text as name
from pg_stat_activity as a
join pg_roles as u on u.oid = a.usesysid
where a.application_name like any($1::text[]) and a.datname = current_database() and exists (
  select
  from pg_roles as r
  where pg_has_role(u.oid, r.oid, 'MEMBER')
    and has_table_privilege(r.oid, 'tokenmill.audit', 'UPDATE, DELETE')
)
order by name`,
    values: [applications],
  })
  return rows.map(row => row.name)
}

export interface Owner {
  /** The user that owns tokenmill's tables. */
  owner: string
  isSuperuser: boolean
  /** Further users that may log in and act as the owner: its members, and superusers. */
  alike: string[]
  /** The application names of open connections, of those asked for, whose user may act as the owner. */
  working: string[]
}

/** `applications`: patterns (`like`). */
export async function findOwner(db: Db, applications: readonly string[]): Promise<Owner> {
  const { rows } = await db.query<Owner>({
    text: `select
  o.rolname::text as owner,
  o.rolsuper as "isSuperuser",
  array(
    select u.rolname::text
    from pg_roles as u
    where u.rolcanlogin and u.oid <> o.oid and pg_has_role(u.oid, o.oid, 'MEMBER')
    order by u.rolname
  ) as alike,
  array(
    select distinct a.application_name::text
    from pg_stat_activity as a
    where a.datname = current_database()
      and a.application_name like any($1::text[])
      and pg_has_role(a.usesysid, o.oid, 'MEMBER')
  ) as working
from pg_class as c
join pg_roles as o on o.oid = c.relowner
where c.oid = 'tokenmill.audit'::regclass`,
    values: [applications],
  })
  const [found] = rows
  assert(found, 'a table has an owner')
  return found
}

export async function sessionUser(db: Db): Promise<string> {
  const { rows } = await db.query<{ name: string }>({ text: 'select session_user::text as name' })
  return rows[0]?.name ?? ''
}

/** The URL `setting` with another user and password. The hosts aren't parsed, because there may be several. */
export function urlAs(setting: string, user: string, password: string): string {
  // The user part ends at the last @, as in the driver: a password may hold an @.
  const found = /^(postgres(?:ql)?:\/\/)(?:[^/?#]*@)?([^?#]*)\??([^#]*)/i.exec(urlOf(setting))
  assert(found, 'what a connection was opened by can be read')
  const [, scheme = '', place = '', query = ''] = found
  const parameters = query.split('&').filter(part => part !== '' && !/^(user|password)=/i.test(part))
  return `${scheme}${user}:${password}@${place}${parameters.length > 0 ? `?${parameters.join('&')}` : ''}`
}
