// The key-encryption keys (KEKs) that wrap or wrapped the vault's keys, by their ids. The keys themselves, and where they
// are, only each host's settings say.
import type { Db } from '../pool.ts'

/** PENDING: to become the current one. ACTIVE: the current one. RETIRED: a former one, which backups may need. */
export type KekState = 'PENDING' | 'ACTIVE' | 'RETIRED'

export interface KekInfo {
  kekId: string
  state: KekState
  /** ms since the epoch. */
  createdAt: number
  /** Since when it isn't the current one any more. */
  retiredAt: number | null
}

const COLUMNS = `
  kek_id as "kekId",
  state,
  created_at as "createdAt",
  retired_at as "retiredAt"`

/** Every key, oldest first. */
export async function list(db: Db): Promise<KekInfo[]> {
  const { rows } = await db.query<KekInfo>({
    text: `select ${COLUMNS}
from tokenmill.kek
order by created_at, kek_id`,
  })
  return rows
}

/** The bytes that each key has wrapped, by which a host proves that it has that key. */
export async function findProbes(db: Db): Promise<{ kekId: string; probe: Buffer }[]> {
  const { rows } = await db.query<{ kekId: string; probe: Buffer }>({
    name: 'kek-probes',
    text: `select kek_id as "kekId", probe
from tokenmill.kek`,
  })
  return rows
}

/** Locks a key's row until the transaction ends. */
export async function lock(db: Db, kekId: string): Promise<KekInfo | undefined> {
  const { rows } = await db.query<KekInfo>({
    text: `select ${COLUMNS}
from tokenmill.kek
where kek_id = $1
for update`,
    values: [kekId],
  })
  return rows[0]
}

/** Inserts a key. False if it is known, and stays as it is. */
export async function insert(
  db: Db,
  { kekId, state, probe }: { kekId: string; state: 'PENDING' | 'ACTIVE'; probe: Buffer },
): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.kek (kek_id, state, probe)
values ($1, $2, $3)
on conflict (kek_id) do nothing`,
    values: [kekId, state, probe],
  })
  return count === 1
}

/** Retires the current key. False if this key isn't the current one. */
export async function retire(db: Db, kekId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.kek
set state = 'RETIRED', retired_at = now()
where kek_id = $1 and state = 'ACTIVE'`,
    values: [kekId],
  })
  return count === 1
}

/** Makes a key the current one; the one before it must be retired. False if there is no such key. */
export async function activate(db: Db, kekId: string): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.kek
set state = 'ACTIVE', retired_at = null
where kek_id = $1`,
    values: [kekId],
  })
  return count === 1
}

export async function remove(db: Db, kekId: string): Promise<void> {
  await db.query({
    text: `delete from tokenmill.kek
where kek_id = $1`,
    values: [kekId],
  })
}
