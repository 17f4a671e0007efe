// People who use the console: what they may do, and whose rows they see. A row without a right code
// (src/vault/ring/grants.ts) is treated as absent; the callers check it.
import type { PersonRole } from '../../job/system/act-row.ts'
import type { Db } from '../pool.ts'

export { PERSON_ROLES, type PersonRole } from '../../job/system/act-row.ts'

export interface Person {
  personId: string
  name: string
  roles: PersonRole[]
  /** Null: all. */
  entities: string[] | null
  /** Of the embedded engine only: acts without a passkey. */
  isLocal: boolean
  /** ms since the epoch. */
  createdAt: number
  revokedAt: number | null
  mac: Buffer | null
  macVersion: number | null
}

const COLUMNS = `person_id as "personId", name, roles, entities, is_local as "isLocal", created_at as "createdAt",
revoked_at as "revokedAt", mac, mac_version as "macVersion"`

/** Also a revoked one. */
export async function find(db: Db, personId: string): Promise<Person | undefined> {
  const { rows } = await db.query<Person>({
    text: `select ${COLUMNS}
from tokenmill.person
where person_id = $1`,
    values: [personId],
  })
  return rows[0]
}

/** As `find`. Nobody revokes the person until the transaction ends. */
export async function hold(db: Db, personId: string): Promise<Person | undefined> {
  const { rows } = await db.query<Person>({
    text: `select ${COLUMNS}
from tokenmill.person
where person_id = $1
for share`,
    values: [personId],
  })
  return rows[0]
}

/** As `hold`; no act of the person is done meanwhile, and those that had begun are done. */
export async function lock(db: Db, personId: string): Promise<Person | undefined> {
  const { rows } = await db.query<Person>({
    text: `select ${COLUMNS}
from tokenmill.person
where person_id = $1
for no key update`,
    values: [personId],
  })
  return rows[0]
}

/** Oldest first, revoked ones included. */
export async function list(db: Db): Promise<Person[]> {
  const { rows } = await db.query<Person>({
    text: `select ${COLUMNS}
from tokenmill.person
order by created_at, person_id`,
  })
  return rows
}

/** All people; no other transaction adds, changes or revokes one until this one ends. */
export async function lockAll(db: Db): Promise<Person[]> {
  await db.query({ text: 'lock table tokenmill.person in share row exclusive mode' })
  return list(db)
}

/**
 * Holds off `lockAll` until the transaction ends, and waits for one that runs. Whoever locks an invite calls it first, as those
 * who lock all people lock invites after them. The same for whoever adds a passkey: it calls this before it locks a row.
 */
export async function holdOffLockAll(db: Db): Promise<void> {
  await db.query({ text: 'lock table tokenmill.person in row exclusive mode' })
}

/** Inserts a person without a code. False if the id or the name is in use. */
export async function insert(
  db: Db,
  person: Pick<Person, 'personId' | 'name' | 'roles' | 'entities' | 'isLocal'>,
): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.person (
  person_id,
  name,
  roles,
  entities,
  is_local
)
values (
  $1,
  $2,
  $3::text[],
  $4::uuid[],
  $5
)
on conflict do nothing`,
    values: [person.personId, person.name, person.roles, person.entities, person.isLocal],
  })
  return count === 1
}

/** Sets the code of the row as it is now. `former`: only in place of this code. False if the row wasn't changed. */
export async function setMac(
  db: Db,
  personId: string,
  mac: Buffer,
  macVersion: number,
  former?: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.person
set mac = $2, mac_version = $3
where person_id = $1 and revoked_at is null and ($4::bytea is null or mac = $4)`,
    values: [personId, mac, macVersion, former ?? null],
  })
  return count === 1
}

/** Gives a live person other rights, and removes the code. The caller has locked all people, and codes the row. */
export async function change(
  db: Db,
  { personId, roles, entities }: Pick<Person, 'personId' | 'roles' | 'entities'>,
): Promise<void> {
  await db.query({
    text: `update tokenmill.person
set
  roles = $2::text[],
  entities = $3::uuid[],
  mac = null,
  mac_version = null
where person_id = $1 and revoked_at is null`,
    values: [personId, roles, entities],
  })
}

/** Revokes a person, and removes the code. False if the person was revoked before or doesn't exist. */
export async function revoke(db: Db, personId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.person
set revoked_at = now(), mac = null, mac_version = null
where person_id = $1 and revoked_at is null`,
    values: [personId],
  })
  return count === 1
}
