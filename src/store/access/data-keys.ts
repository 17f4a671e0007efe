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

/** The keys without their states, which the lives of keys hold (key-lives.ts). */
export async function findAll(db: Db): Promise<Omit<DataKey, 'state'>[]> {
  const { rows } = await db.query<Omit<DataKey, 'state'>>({
    name: 'data-keys',
    text: `select
  purpose,
  version,
  kek_id as "kekId",
  wrapped
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
 * Reserves `seals` seals under a key for the calling process. Returns how many are reserved then; undefined if the key isn't
 * used for sealing any more, or would be used for more than `SEALS_MAX`.
 */
export async function reserve(db: Db, purpose: string, version: number, seals: number): Promise<number | undefined> {
  const { rows } = await db.query<{ seals: number }>({
    name: 'data-key-reserve',
    text: `update tokenmill.data_key
set seals = seals + $3
where purpose = $1 and version = $2 and state in ('PENDING', 'ACTIVE') and seals + $3 <= ${SEALS_MAX}
returning seals`,
    values: [purpose, version, seals],
  })
  return rows[0]?.seals
}

/** Raises the count of reserved seals, if it is lower. Returns the count then; undefined as `reserve` does. */
export async function raise(db: Db, purpose: string, version: number, seals: number): Promise<number | undefined> {
  const { rows } = await db.query<{ seals: number }>({
    text: `update tokenmill.data_key
set seals = greatest(seals, $3)
where purpose = $1 and version = $2 and state in ('PENDING', 'ACTIVE') and $3 <= ${SEALS_MAX}
returning seals`,
    values: [purpose, version, seals],
  })
  return rows[0]?.seals
}

/**
 * Writes the state of a key as its life has it. A DESTROYED key loses its bytes: this store can't open any more what it sealed.
 * The old version of the row stays on disk until VACUUM, and in backups.
 */
export async function setState(
  db: Db,
  { purpose, version, state }: Pick<DataKey, 'purpose' | 'version' | 'state'>,
): Promise<void> {
  await db.query({ text: SET_STATE[state], values: [purpose, version] })
}

const OF_KEY = 'where purpose = $1 and version = $2'

const SET_STATE: Readonly<Record<DataKeyState, string>> = {
  PENDING: `update tokenmill.data_key
set state = 'PENDING'
${OF_KEY}`,
  ACTIVE: `update tokenmill.data_key
set state = 'ACTIVE', activated_at = coalesce(activated_at, now())
${OF_KEY}`,
  DECRYPT_ONLY: `update tokenmill.data_key
set state = 'DECRYPT_ONLY', retired_at = coalesce(retired_at, now())
${OF_KEY}`,
  DESTROYED: `update tokenmill.data_key
set state = 'DESTROYED', wrapped = null
${OF_KEY}`,
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
