// Snapshots of everything in the database: of each table the number of its rows and a digest of them.
import type { ConsoleBundle } from '../bundle.ts'

/** What goes on by itself: when a session was last used, and the heartbeats of processes and queues. */
const MOVING: Readonly<Record<string, readonly string[]>> = {
  'tokenmill.session': ['seen_at'],
  'tokenmill.process': ['seen_at', 'connections'],
  // When the console last looked for stalled jobs in its own queue of results.
  'bullmq.meta': ['value'],
}

export type Snapshot = Record<string, string>

export function openSnapshots({ rows }: Pick<ConsoleBundle, 'rows'>): () => Promise<Snapshot> {
  return async () => {
    const tables = await rows<{ name: string }>(
      `select format('%I.%I', relnamespace::regnamespace, relname) as name from pg_class
where relkind = 'r' and relnamespace::regnamespace::text !~ '^(pg_|information_schema)' order by 1`,
    )
    const parts = tables.map(({ name }) => {
      const left = `to_jsonb(t) - '{${(MOVING[name] ?? []).join()}}'::text[]`
      return `select '${name}' as name, count(*) || ' ' || md5(coalesce(string_agg(md5((${left})::text), '' order by (${left})::text), '')) as state from ${name} as t`
    })
    const found = await rows<{ name: string; state: string }>(parts.join(' union all '))
    return Object.fromEntries(found.map(({ name, state }) => [name, state]))
  }
}
