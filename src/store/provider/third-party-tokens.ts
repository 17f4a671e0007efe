// Provisionings at third parties, found by the card that they are for: several jobs may want the same one, and only one
// of them asks for it. What becomes of a provisioning is written like a scheme token's (scheme-leases.ts).
import { byteas, plains } from '../columns.ts'
import type { Db } from '../pool.ts'
import { COLUMNS, type Row, type StoredScheme, schemeOf } from './scheme-row.ts'
import { FORGOTTEN } from './scheme-tokens.ts'

/** Those that may come, or have come, to a token, held until the transaction ends. */
export async function holdByFingerprints(db: Db, fingerprints: readonly Buffer[]): Promise<StoredScheme[]> {
  const { rows } = await db.query<Row>({
    name: 'third-party-hold-by-card',
    text: `select ${COLUMNS} from tokenmill.scheme_token where fingerprint = any($1::bytea[])
order by provision_id for update`,
    values: [byteas(fingerprints)],
  })
  return rows.map(schemeOf)
}

/** Holds one; undefined: it isn't there. */
export async function hold(db: Db, provisionId: string): Promise<StoredScheme | undefined> {
  const { rows } = await db.query<Row>({
    name: 'third-party-hold',
    text: `select ${COLUMNS} from tokenmill.scheme_token where provision_id = $1 for update`,
    values: [provisionId],
  })
  const row = rows[0]
  return row && schemeOf(row)
}

/** Says that tokens, which are inserted in the same transaction, take these up. Returns how many nobody else has. */
export async function takeUp(db: Db, provisionIds: readonly string[], now: number): Promise<number> {
  if (provisionIds.length === 0) return 0
  const { count } = await db.query({
    name: 'third-party-take-up',
    text: `with held as (
  select provision_id from tokenmill.scheme_token
  where provision_id = any($1::uuid[]) and third_party and state = 'ACTIVE' and retired_at is null and taken_at is null
  order by provision_id for update
) update tokenmill.scheme_token as t set taken_at = $2 from held where t.provision_id = held.provision_id`,
    values: [plains(provisionIds), new Date(now)],
  })
  return count
}

/** What this job asked for and no token has taken up is to go. */
export async function retireUntakenOf(db: Db, receiptId: string, now: number): Promise<void> {
  await db.query({
    name: 'third-party-retire-untaken-of',
    text: `update tokenmill.scheme_token set retired_at = $2, due_at = coalesce(due_at, $2), attempts = 0, version = version + 1,
  updated_at = $2, ${FORGOTTEN}
where third_party and taken_at is null and retired_at is null and state in ('PENDING', 'ACTIVE')
and provision_id in (select provision_id from tokenmill.scheme_intent where receipt_id = $1 and action = 'PROVISION')`,
    values: [receiptId, new Date(now)],
  })
}

/** Those that no token has taken up since `before` are to go: their jobs were given up. Returns how many. */
export async function retireUntaken(db: Db, before: number, now: number, limit: number): Promise<number> {
  const { count } = await db.query({
    text: `update tokenmill.scheme_token set retired_at = $2, due_at = coalesce(due_at, $2), attempts = 0, version = version + 1,
  updated_at = $2, ${FORGOTTEN}
where provision_id in (
  select provision_id from tokenmill.scheme_token
  where third_party and taken_at is null and retired_at is null and state in ('PENDING', 'ACTIVE') and created_at < $1
  order by created_at limit $3 for update skip locked
)`,
    values: [new Date(before), new Date(now), limit],
  })
  return count
}
