// What is known of the installation as a whole: its store, its processes, the networks that are called and wall displays. People for
// some entities see none of it. It only reads.

import type { Db } from '../../pool.ts'
import type { SlowedBy } from '../../provider/scheme-rates.ts'
import { RETENTION } from '../../retention.ts'
import { MIGRATIONS } from '../../schema.ts'
import { entitiesOf, type Sight } from '../../sight.ts'

const ALL = '$1::uuid[] is null'
/** Null if the moment is. */
const msSince = (moment: string) =>
  `(case when ${moment} is not null then greatest(0, extract(epoch from now() - ${moment})) end * 1000)::bigint`

/** How long data are kept whatever the settings say, in days. */
export const KEPT_DAYS = { outbox: RETENTION.outboxDays, events: RETENTION.eventDays } as const

export interface SeenStore {
  /** ms since the epoch, as are all times here. */
  createdAt: number
  /** The last migration of the schema. */
  schema: string
  /** How many migrations were made. */
  migrations: number
  /** Whether the schema is the one of this process's release. */
  isCurrent: boolean
  /** Of PostgreSQL. */
  serverVersion: string
  takesWrites: boolean
  /** Servers that read this one's log: standbys, and backups under way. */
  logReaders: number
  /** Counts the promotions of a standby to primary; null: not recorded. */
  timeline: number | null
  /** The first day of the oldest week of receipts that is kept, `2026-11-23`. */
  receiptsSince: string | null
}

export async function findStore(sight: Sight, db: Db): Promise<SeenStore | undefined> {
  const { rows } = await db.query<Omit<SeenStore, 'isCurrent'>>({
    text: `select
  i.created_at as "createdAt",
  m.schema,
  m.migrations,
  current_setting('server_version') as "serverVersion",
  not pg_is_in_recovery() and current_setting('transaction_read_only') = 'off' as "takesWrites",
  (select count(*) from pg_stat_replication) as "logReaders",
  (select timeline from tokenmill.cluster) as timeline,
  (
    select to_char(to_date(right(min(part.relname::text), 8), 'YYYYMMDD'), 'YYYY-MM-DD')
    from pg_inherits
    join pg_class as part on part.oid = inhrelid
    where inhparent = 'tokenmill.receipt'::regclass and part.relname ~ '^receipt_[0-9]{8}$'
  ) as "receiptsSince"
from tokenmill.installation as i
cross join (select max(name) as schema, count(*) as migrations from tokenmill.kysely_migration) as m
where ${ALL}`,
    values: [entitiesOf(sight)],
  })
  const [row] = rows
  return row && { ...row, isCurrent: row.schema === MIGRATIONS.at(-1) && row.migrations === MIGRATIONS.length }
}

export interface SeenHost {
  host: string
  role: string
  version: string
  startedAt: number
  /** The time since its last heartbeat, in ms. */
  silentMs: number
  /** The key-encryption keys that it has proved to have. */
  keks: string[]
}

/** Processes that weren't ended on purpose; those that were silent longest come first, by full minutes. */
export async function listHosts(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenHost[]> {
  const { rows } = await db.query<SeenHost>({
    text: `select
  host,
  role,
  version,
  started_at as "startedAt",
  ${msSince('seen_at')} as "silentMs",
  array(select k from unnest(keys) as k where k like 'kek-%' order by k) as keks
from tokenmill.process
where ${ALL} and ended_at is null
order by
  floor(extract(epoch from now() - seen_at) / 60) desc,
  host,
  role,
  started_at
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}

export interface SeenProvider {
  provider: string
  /** Processes that share its rate now. */
  processes: number
  /** Calls a second, by the scheme file; null: not known. */
  granted: number | null
  /** What the slowest of these processes calls with now; null: none is slowed. */
  rate: number | null
  slowedBy: SlowedBy | null
  slowedAt: number | null
  /** The time since a process last renewed its share, in ms. */
  renewedMs: number | null
}

/** `liveMs`: a process that didn't renew its share for longer isn't counted. */
export async function listProviders(
  sight: Sight,
  db: Db,
  { liveMs, limit }: { liveMs: number; limit: number },
): Promise<SeenProvider[]> {
  const live = `renewed_at > now() - make_interval(secs => $2 / 1000.0)`
  const slowed = `filter (where slowed_by is not null and ${live})`
  const { rows } = await db.query<SeenProvider>({
    text: `select
  provider,
  count(*) filter (where ${live}) as processes,
  max(granted) filter (where ${live}) as granted,
  min(rate) ${slowed} as rate,
  (array_agg(slowed_by order by rate) ${slowed})[1] as "slowedBy",
  min(slowed_at) ${slowed} as "slowedAt",
  ${msSince('max(renewed_at)')} as "renewedMs"
from tokenmill.scheme_rate
where ${ALL}
group by provider
order by provider
limit $3`,
    values: [entitiesOf(sight), liveMs, limit],
  })
  return rows
}

export interface SeenDisplay {
  name: string
  entities: string[] | null
  createdAt: number
  expiresAt: number
}

/** Wall displays that are live, oldest first. */
export async function listDisplays(sight: Sight, db: Db, { limit }: { limit: number }): Promise<SeenDisplay[]> {
  const { rows } = await db.query<SeenDisplay>({
    text: `select
  name,
  entities,
  created_at as "createdAt",
  expires_at as "expiresAt"
from tokenmill.display
where ${ALL} and revoked_at is null and expires_at > now()
order by created_at, display_id
limit $2`,
    values: [entitiesOf(sight), limit],
  })
  return rows
}
