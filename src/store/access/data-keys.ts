// The vault's data keys, each wrapped by the key-encryption key (KEK). The reader role may not select them. A purpose
// has at most one ACTIVE key and one PENDING key; constraints say so.
import type { Db } from '../pool.ts'

/** PENDING → ACTIVE → DECRYPT_ONLY → DESTROYED; a PENDING key that is dropped becomes DESTROYED at once. */
export type DataKeyState = 'PENDING' | 'ACTIVE' | 'DECRYPT_ONLY' | 'DESTROYED'

interface DataKey {
  purpose: string
  version: number
  /** The key-encryption key that wraps it. */
  kekId: string
  /** Null once the key is destroyed. */
  wrapped: Buffer | null
  state: DataKeyState
}

/** A data key without its bytes. Times: ms since the epoch. */
export interface DataKeyLife extends Omit<DataKey, 'wrapped'> {
  /** How many seals processes have reserved under it. */
  seals: number
  createdAt: number
  activatedAt: number | null
  /** When another key took its place. */
  retiredAt: number | null
  /** When an operator marked the key as compromised, ms since the epoch; null if never. */
  compromisedAt: number | null
  /** When what it exposed was listed. */
  exposedAt: number | null
  /** When everything was done that a command can do about it. */
  compromiseEndedAt: number | null
}

/**
 * The most seals under one key: random nonces are safe for 2^32 (NIST SP 800-38D, 8.3). A constraint of the table
 * checks it, too.
 */
export const SEALS_MAX = 2 ** 32

/** `isEnded`: a compromise of it was answered. */
export async function findAll(db: Db): Promise<(DataKey & { isEnded: boolean })[]> {
  const { rows } = await db.query<DataKey & { isEnded: boolean }>({
    name: 'data-keys',
    text: `select
  purpose,
  version,
  kek_id as "kekId",
  wrapped,
  state,
  compromise_ended_at is not null as "isEnded"
from tokenmill.data_key
order by purpose, version`,
  })
  return rows
}

const LIFE = `purpose, version, kek_id as "kekId", state, seals, created_at as "createdAt",
activated_at as "activatedAt", retired_at as "retiredAt", compromised_at as "compromisedAt", exposed_at as "exposedAt",
compromise_ended_at as "compromiseEndedAt"`

export async function list(db: Db): Promise<DataKeyLife[]> {
  const { rows } = await db.query<DataKeyLife>({
    text: `select ${LIFE}
from tokenmill.data_key
order by purpose, version`,
  })
  return rows
}

/** The keys of one purpose, locked until the end of the transaction. */
export async function lockPurpose(db: Db, purpose: string): Promise<DataKeyLife[]> {
  const { rows } = await db.query<DataKeyLife>({
    text: `select ${LIFE}
from tokenmill.data_key
where purpose = $1
order by version
for update`,
    values: [purpose],
  })
  return rows
}

/** One key, locked until the end of the transaction if it is DECRYPT_ONLY; undefined if there is none. */
export async function lock(db: Db, purpose: string, version: number): Promise<DataKeyLife | undefined> {
  const of = {
    text: `select ${LIFE}
from tokenmill.data_key
where purpose = $1 and version = $2`,
    values: [purpose, version],
  }
  await db.query({ ...of, text: `${of.text} and state = 'DECRYPT_ONLY' for update` })
  const { rows } = await db.query<DataKeyLife>(of)
  return rows[0]
}

/** Inserts a key, PENDING or ACTIVE. False if a key with this purpose and version exists, which stays as it is. */
export async function insert(db: Db, key: DataKey): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.data_key (
  purpose,
  version,
  kek_id,
  wrapped,
  state,
  activated_at
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  case when $5 = 'ACTIVE' then now() end
)
on conflict (purpose, version) do nothing`,
    values: [key.purpose, key.version, key.kekId, key.wrapped, key.state],
  })
  return count === 1
}

/**
 * Reserves `seals` seals under a key for the calling process. False if the key isn't used for sealing any more, or would
 * be used for more than `SEALS_MAX`.
 */
export async function reserve(db: Db, purpose: string, version: number, seals: number): Promise<boolean> {
  const { count } = await db.query({
    name: 'data-key-reserve',
    text: `update tokenmill.data_key
set seals = seals + $3
where purpose = $1 and version = $2 and state in ('PENDING', 'ACTIVE') and seals + $3 <= ${SEALS_MAX}`,
    values: [purpose, version, seals],
  })
  return count === 1
}

/** ACTIVE → DECRYPT_ONLY. `activate` follows in the same transaction. */
export async function retire(db: Db, purpose: string, version: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.data_key
set state = 'DECRYPT_ONLY', retired_at = now()
where purpose = $1 and version = $2 and state = 'ACTIVE'`,
    values: [purpose, version],
  })
  return count === 1
}

/** PENDING → ACTIVE. */
export async function activate(db: Db, purpose: string, version: number): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.data_key
set state = 'ACTIVE', activated_at = now()
where purpose = $1 and version = $2 and state = 'PENDING'`,
    values: [purpose, version],
  })
  return count === 1
}

/** PENDING → DESTROYED: it was never used, and never will be. */
export async function drop(db: Db, purpose: string, version: number): Promise<void> {
  await db.query({
    text: `update tokenmill.data_key
set state = 'DESTROYED', wrapped = null
where purpose = $1 and version = $2 and state = 'PENDING'`,
    values: [purpose, version],
  })
}

/** Replaces what wraps a key. False if another key-encryption key wraps it than `fromKekId`, or if it is destroyed. */
export async function rewrap(
  db: Db,
  { purpose, version, kekId, wrapped }: Pick<DataKey, 'purpose' | 'version' | 'kekId'> & { wrapped: Buffer },
  fromKekId: string,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.data_key
set kek_id = $3, wrapped = $4
where purpose = $1 and version = $2 and kek_id = $5 and wrapped is not null`,
    values: [purpose, version, kekId, wrapped, fromKekId],
  })
  return count === 1
}

/** How many keys that aren't destroyed are wrapped by another key-encryption key than `kekId`. */
export async function countUnderOther(db: Db, kekId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>({
    text: `select count(*) as count
from tokenmill.data_key
where kek_id <> $1 and wrapped is not null`,
    values: [kekId],
  })
  return rows[0]?.count ?? 0
}

/** How many keys that aren't destroyed are wrapped by `kekId`. */
export async function countUnder(db: Db, kekId: string): Promise<number> {
  const { rows } = await db.query<{ count: number }>({
    text: `select count(*) as count
from tokenmill.data_key
where kek_id = $1 and wrapped is not null`,
    values: [kekId],
  })
  return rows[0]?.count ?? 0
}

/** The version that seals now; undefined if the purpose has no key. */
export async function findActiveVersion(db: Db, purpose: string): Promise<number | undefined> {
  const { rows } = await db.query<{ version: number }>({
    name: 'data-key-active',
    text: `select version
from tokenmill.data_key
where purpose = $1 and state = 'ACTIVE'`,
    values: [purpose],
  })
  return rows[0]?.version
}

/**
 * Notes a step of a compromise, and those before it. A step that was noted before keeps its time; only `ended` gets the
 * time of the last call.
 */
export async function markCompromise(
  db: Db,
  { purpose, version }: Pick<DataKey, 'purpose' | 'version'>,
  step: 'compromised' | 'exposed' | 'ended',
): Promise<void> {
  await db.query({
    text: `update tokenmill.data_key
set compromised_at = coalesce(compromised_at, now()),
  exposed_at = case when $3 = 'compromised' then exposed_at else coalesce(exposed_at, now()) end,
  compromise_ended_at = case when $3 = 'ended' then now() else compromise_ended_at end
where purpose = $1 and version = $2`,
    values: [purpose, version, step],
  })
}

/** Whether `ms` have passed since this version came into use, by the store's clock. */
export async function isInUseFor(db: Db, purpose: string, version: number, ms: number): Promise<boolean> {
  const { rows } = await db.query<{ passed: boolean }>({
    text: `select now() >= activated_at + make_interval(secs => $3 / 1000.0) as passed
from tokenmill.data_key
where purpose = $1 and version = $2 and activated_at is not null`,
    values: [purpose, version, ms],
  })
  return rows[0]?.passed === true
}

/**
 * Erases the key: this store can't open any more what it sealed. The old version of the row stays on disk until VACUUM,
 * and in backups.
 */
export async function destroy(db: Db, purpose: string, version: number): Promise<void> {
  await db.query({
    text: `update tokenmill.data_key
set state = 'DESTROYED', wrapped = null
where purpose = $1 and version = $2 and state = 'DECRYPT_ONLY'`,
    values: [purpose, version],
  })
}
