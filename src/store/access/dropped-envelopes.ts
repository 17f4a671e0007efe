// How many envelopes were dropped recently, by reason and by the client that they claim. The claim is unproved; the
// caller makes sure that the client exists.
import { plains, texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface Dropped {
  /** Undefined if the envelope claims no known client. */
  claimedClient: string | undefined
  reason: string
  dropped: number
}

/** Adds to the counts. A count that wasn't changed for `pauseMs` starts again from zero. */
export async function addAll(db: Db, counted: readonly Dropped[], pauseMs: number): Promise<void> {
  if (counted.length === 0) return
  await db.query({
    text: `insert into tokenmill.dropped_envelope as d (
  claimed_client,
  reason,
  dropped,
  since,
  last_at
)
select
  v.claimed_client,
  v.reason,
  v.dropped,
  now(),
  now()
from unnest($1::text[], $2::text[], $3::bigint[]) as v(claimed_client, reason, dropped)
order by 1, 2
on conflict (claimed_client, reason) do update
set last_at = now(),
  dropped = case when d.last_at < now() - make_interval(secs => $4) then excluded.dropped else d.dropped + excluded.dropped end,
  since = case when d.last_at < now() - make_interval(secs => $4) then now() else d.since end`,
    values: [
      texts(counted.map(({ claimedClient }) => claimedClient ?? '')),
      texts(counted.map(({ reason }) => reason)),
      plains(counted.map(({ dropped }) => dropped)),
      pauseMs / 1_000,
    ],
  })
}

export interface DroppedLately extends Dropped {
  /** When counting began, ms since the epoch, like `lastAt`. */
  since: number
  lastAt: number
}

/** The counts that grew within the last `lateMs`, most frequent first. */
export async function listLate(db: Db, lateMs: number): Promise<DroppedLately[]> {
  const { rows } = await db.query<DroppedLately>({
    text: `select
  claimed_client as "claimedClient",
  reason,
  dropped,
  since,
  last_at as "lastAt"
from tokenmill.dropped_envelope
where last_at > now() - make_interval(secs => $1)
order by dropped desc, claimed_client, reason`,
    values: [lateMs / 1_000],
  })
  return rows.map(row => ({ ...row, claimedClient: row.claimedClient || undefined }))
}
