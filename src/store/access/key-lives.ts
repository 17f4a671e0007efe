// The row that holds the lives of all data keys and the phase of the fingerprint key (src/vault/ring/key-lives.ts). What
// `data_key` says of a key's state is for people and for searches: processes that hold keys go by this row.
import type { Db } from '../pool.ts'

/** `LivesRow` of the vault. */
export interface LivesRow {
  epoch: number
  keys: string
  phase: string
  kekId: string
  proof: Buffer
}

const ROW = `select
  epoch,
  keys,
  phase,
  kek_id as "kekId",
  proof
from tokenmill.key_lives`

export async function find(db: Db): Promise<LivesRow | undefined> {
  const { rows } = await db.query<LivesRow>({ name: 'key-lives', text: ROW })
  return rows[0]
}

/** Inserts the first row. False if there is one, which stays as it is. */
export async function insert(db: Db, { epoch, keys, phase, kekId, proof }: LivesRow): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.key_lives (
  epoch,
  keys,
  phase,
  kek_id,
  proof
)
values (
  $1,
  $2,
  $3,
  $4,
  $5
)
on conflict (one) do nothing`,
    values: [epoch, keys, phase, kekId, proof],
  })
  return count === 1
}

/** Replaces the row whose proof is `former`. False if another row has taken its place, which stays as it is. */
export async function replace(
  db: Db,
  { epoch, keys, phase, kekId, proof }: LivesRow,
  former: Buffer,
): Promise<boolean> {
  const { count } = await db.query({
    text: `update tokenmill.key_lives
set
  epoch = $1,
  keys = $2,
  phase = $3,
  kek_id = $4,
  proof = $5,
  written_at = now()
where proof = $6`,
    values: [epoch, keys, phase, kekId, proof, former],
  })
  return count === 1
}

/**
 * The highest epoch of which anybody knows: a process that opens the vault and was silent for less than `ms`, or the audit.
 * 0 if nobody does.
 */
export async function findHighest(db: Db, ms: number): Promise<number> {
  const { rows } = await db.query<{ epoch: number | null }>({
    text: `select greatest(
  (
    select max(key_epoch)
    from tokenmill.process
    where ended_at is null and seen_at >= now() - make_interval(secs => $1 / 1000.0)
  ),
  (
    select max((detail->>'epoch')::bigint)
    from tokenmill.audit
    where (action like 'data-key.%' or action = 'key-lives.restored') and outcome = 'done' and detail->>'epoch' ~ '^[0-9]{1,15}$'
  )
) as epoch`,
    values: [ms],
  })
  return rows[0]?.epoch ?? 0
}
