// Tokens about which a network sent a notification. The notification's content isn't kept: a worker asks the network
// for the token's state, so repeated or late notifications do no harm.
import { texts } from '../columns.ts'
import type { Db } from '../pool.ts'

export interface SchemeNotice {
  provider: string
  reference: string
  /** ms since the epoch. */
  noticedAt: number
}

export async function insertAll(db: Db, provider: string, references: readonly string[], now: number): Promise<void> {
  await db.query({
    text: `insert into tokenmill.scheme_notice (
  provider,
  reference,
  noticed_at,
  due_at
)
select
  $1,
  reference,
  $3,
  $3
from unnest($2::text[]) as v(reference)
group by reference
on conflict (provider, reference) do update
set noticed_at = excluded.noticed_at, due_at = excluded.due_at`,
    values: [provider, texts(references), new Date(now)],
  })
}

/** Takes up to `limit` due notices; each is due again at `until`. */
export async function takeDue(db: Db, now: number, until: number, limit: number): Promise<SchemeNotice[]> {
  const { rows } = await db.query<SchemeNotice>({
    text: `update tokenmill.scheme_notice as n
set due_at = $2
from (
  select provider, reference
  from tokenmill.scheme_notice
  where due_at <= $1
  order by due_at
  limit $3
  for update skip locked
) as due
where n.provider = due.provider and n.reference = due.reference
returning n.provider, n.reference, n.noticed_at as "noticedAt"`,
    values: [new Date(now), new Date(until), limit],
  })
  return rows
}

/** Removes a notification, unless a newer one for the same token has arrived. */
export async function remove(db: Db, { provider, reference, noticedAt }: SchemeNotice): Promise<void> {
  await db.query({
    text: `delete from tokenmill.scheme_notice
where provider = $1 and reference = $2 and noticed_at = $3`,
    values: [provider, reference, new Date(noticedAt)],
  })
}

/** Makes a notice due at `dueAt`. */
export async function putOff(db: Db, { provider, reference, noticedAt }: SchemeNotice, dueAt: number): Promise<void> {
  await db.query({
    text: `update tokenmill.scheme_notice
set due_at = $4
where provider = $1 and reference = $2 and noticed_at = $3`,
    values: [provider, reference, new Date(noticedAt), new Date(dueAt)],
  })
}
