// Indexes of large tables. PostgreSQL builds one beside running jobs only outside of a transaction, so no migration
// can. Each upgrade looks whether they are there, and builds again those whose build failed.
import type pg from 'pg'

const INDEXES = [
  {
    name: 'token_due',
    on: 'tokenmill.token (token_expiry_date, token_id) where token_expiry_date is not null and expiry_is_done is null',
  },
  // Provisionings that no token's row has taken over (UNTAKEN in src/store/provider/scheme-tokens.ts), oldest first.
  {
    name: 'scheme_token_untaken',
    on: `tokenmill.scheme_token (created_at)
  where not current
    and taken_at is null
    and retired_at is null
    and state not in ('DELETED', 'VOID')`,
  },
  // The list of the audit (src/store/access/audit-list.ts): each filter's rows, newest first.
  { name: 'audit_by_time', on: 'tokenmill.audit (at, audit_id)' },
  { name: 'audit_by_actor', on: 'tokenmill.audit (actor, at, audit_id)' },
  { name: 'audit_by_action', on: 'tokenmill.audit (action, at, audit_id)' },
  // A subject may be longer than an index permits.
  { name: 'audit_by_subject', on: 'tokenmill.audit (left(subject, 200), at, audit_id)' },
  { name: 'audit_not_done', on: "tokenmill.audit (outcome, at, audit_id) where outcome <> 'done'" },
  { name: 'audit_of_entity', on: 'tokenmill.audit (entity_id, at, audit_id) where entity_id is not null' },
] as const

/** Builds what is missing. `builds` is called with the name of each index before it is built. */
export async function ensureAll(pool: pg.Pool, builds: (name: string) => void): Promise<void> {
  const client = await pool.connect()
  try {
    // To build an index, PostgreSQL reads the whole table, and waits for every transaction that is open.
    await client.query('set statement_timeout = 0')
    for (const index of INDEXES) await ensure(client, index, builds)
  } finally {
    // Closes the connection, whose time limit was changed.
    client.release(true)
  }
}

async function ensure(
  client: pg.ClientBase,
  { name, on }: (typeof INDEXES)[number],
  builds: (name: string) => void,
): Promise<void> {
  const { rows } = await client.query<{ valid: boolean }>(
    `select indisvalid as valid
from pg_index
where indexrelid = to_regclass($1)`,
    [`tokenmill.${name}`],
  )
  if (rows[0]?.valid) return
  builds(name)
  // A build that failed leaves an index that is written and never read.
  if (rows[0]) await client.query(`drop index concurrently tokenmill.${name}`)
  await client.query(`create index concurrently ${name} on ${on}`)
}
