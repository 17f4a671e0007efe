// Authentications: one row each. A row is found by its ids, and updated only if its version is the one that was read.
// The rules in src/three-ds decide the states.
import type { Authentication } from '../../three-ds/record.ts'
import type { Db } from '../pool.ts'
import { CHANGING, NAMES, type Row, recordOf, SELECTED, type Sealer, valuesOf } from './authentication-row.ts'

async function findOne(
  db: Db,
  sealer: Sealer,
  where: { name: string; text: string; values: unknown[] },
): Promise<Authentication | undefined> {
  const { rows } = await db.query<Row>({
    name: where.name,
    text: `select ${SELECTED}
from tokenmill.authentication
where ${where.text}`,
    values: where.values,
  })
  return rows[0] && recordOf(rows[0], sealer)
}

export function find(db: Db, sealer: Sealer, authenticationId: string): Promise<Authentication | undefined> {
  return findOne(db, sealer, {
    name: 'authentication-find',
    text: 'authentication_id = $1',
    values: [authenticationId],
  })
}

export function findByTransaction(db: Db, sealer: Sealer, transactionId: string): Promise<Authentication | undefined> {
  return findOne(db, sealer, {
    name: 'authentication-by-transaction',
    text: 'transaction_id = $1',
    values: [transactionId],
  })
}

export function findByKey(
  db: Db,
  sealer: Sealer,
  clientId: string,
  idempotencyKey: string,
): Promise<Authentication | undefined> {
  return findOne(db, sealer, {
    name: 'authentication-by-key',
    text: 'client_id = $1 and idempotency_key = $2',
    values: [clientId, idempotencyKey],
  })
}

/** Ids of pending authentications whose time is over, oldest first. */
export async function findOverdue(db: Db, now: number, limit: number): Promise<string[]> {
  const { rows } = await db.query<{ id: string }>({
    name: 'authentication-overdue',
    text: `select authentication_id as id
from tokenmill.authentication
where state in ('OPEN', 'C') and pending_until <= $1
order by pending_until
limit $2`,
    values: [new Date(now), limit],
  })
  return rows.map(({ id }) => id)
}

const INSERT = `insert into tokenmill.authentication (${NAMES.join(', ')})
values (${NAMES.map((_, index) => `$${index + 1}`).join(', ')})
on conflict on constraint idempotency_key_stands_once_per_client do nothing`

/** Inserts an authentication. False if the client has used this idempotency key before. */
export async function insert(db: Db, sealer: Sealer, record: Authentication): Promise<boolean> {
  const values = valuesOf(record, sealer)
  const { count } = await db.query({
    name: 'authentication-insert',
    text: INSERT,
    values: NAMES.map(name => values[name]),
  })
  return count === 1
}

const UPDATE = `update tokenmill.authentication
set ${CHANGING.map((name, index) => `${name} = $${index + 2}`).join(', ')}
where authentication_id = $1 and version = $${CHANGING.length + 2}`

/** Writes a record whose version is one above the one that was read. False if another writer was first. */
export async function save(db: Db, sealer: Sealer, record: Authentication): Promise<boolean> {
  const values = valuesOf(record, sealer)
  const { count } = await db.query({
    name: 'authentication-save',
    text: UPDATE,
    values: [record.authenticationId, ...CHANGING.map(name => values[name]), record.version - 1],
  })
  return count === 1
}

/** Erases up to `limit` authentications that were made before `before` (ms). Returns how many. */
export async function eraseOld(db: Db, before: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.authentication
  where authentication_id = any(array(
  select authentication_id
  from tokenmill.authentication
  where created_at < $1
  order by created_at
  limit $2
))`,
    values: [new Date(before), limit],
  })
  return count
}
