// Acts on keys that need a second operator (src/acts/confirmation.ts): who asked, who confirmed, until when it holds. A row
// counts only with its code, which the caller makes and checks.
import type { Db } from '../pool.ts'
import * as audits from './audits.ts'

export interface Confirmation {
  id: string
  action: string
  subject: string
  /** A client, and the thumbprint of the key by which it signed. */
  askedBy: string
  askedKey: string
  /** Times: ms since the epoch, by the store's clock. */
  askedAt: number
  expiresAt: number
  confirmedBy: string | null
  confirmedKey: string | null
  confirmedAt: number | null
  /** The head of the audit at which it was confirmed; null until then. */
  auditSeq: number | null
  auditHash: Buffer | null
  usedAt: number | null
}

export type CodedConfirmation = Confirmation & {
  mac: Buffer
  macVersion: number
  /** By the store's clock. */
  isExpired: boolean
}

const COLUMNS = `confirmation_id as id, action, subject, asked_by as "askedBy", asked_key as "askedKey", asked_at as "askedAt",
expires_at as "expiresAt", confirmed_by as "confirmedBy", confirmed_key as "confirmedKey", confirmed_at as "confirmedAt",
audit_seq as "auditSeq", audit_hash as "auditHash", used_at as "usedAt", mac, mac_version as "macVersion", expires_at <= clock_timestamp() as "isExpired"`

export async function find(db: Db, id: string): Promise<CodedConfirmation | undefined> {
  const { rows } = await db.query<CodedConfirmation>({
    text: `select ${COLUMNS}
from tokenmill.confirmation
where confirmation_id = $1`,
    values: [id],
  })
  return rows[0]
}

/** Locks the row until the transaction ends. */
export async function lock(db: Db, id: string): Promise<CodedConfirmation | undefined> {
  const { rows } = await db.query<CodedConfirmation>({
    text: `select ${COLUMNS}
from tokenmill.confirmation
where confirmation_id = $1
for update`,
    values: [id],
  })
  return rows[0]
}

/**
 * The client's requests for this act that weren't used yet, newest first. Their rows stay locked until the transaction
 * ends.
 */
export async function lockAsked(
  db: Db,
  { action, subject, askedBy }: Pick<Confirmation, 'action' | 'subject' | 'askedBy'>,
): Promise<CodedConfirmation[]> {
  const { rows } = await db.query<CodedConfirmation>({
    text: `select ${COLUMNS}
from tokenmill.confirmation
where action = $1 and subject = $2 and asked_by = $3 and used_at is null
order by asked_at desc, confirmation_id
for update`,
    values: [action, subject, askedBy],
  })
  return rows
}

type Code = Pick<CodedConfirmation, 'mac' | 'macVersion'>

/** Inserts what waits for its confirmation. */
export async function insert(db: Db, asked: Confirmation, { mac, macVersion }: Code): Promise<void> {
  await db.query({
    text: `insert into tokenmill.confirmation
(
  confirmation_id,
  action,
  subject,
  asked_by,
  asked_key,
  asked_at,
  expires_at,
  mac,
  mac_version
)
values (
  $1,
  $2,
  $3,
  $4,
  $5,
  to_timestamp($6 / 1000.0),
  to_timestamp($7 / 1000.0),
  $8,
  $9
)`,
    values: [
      ...[asked.id, asked.action, asked.subject, asked.askedBy, asked.askedKey, asked.askedAt, asked.expiresAt],
      mac,
      macVersion,
    ],
  })
}

/** Records the second operator. The caller has locked the row. */
export async function confirm(db: Db, confirmed: Confirmation, { mac, macVersion }: Code): Promise<void> {
  await db.query({
    text: `update tokenmill.confirmation
set
  confirmed_by = $2,
  confirmed_key = $3,
  confirmed_at = to_timestamp($4 / 1000.0),
  audit_seq = $5,
  audit_hash = $6,
  mac = $7,
  mac_version = $8
where confirmation_id = $1`,
    values: [
      ...[confirmed.id, confirmed.confirmedBy, confirmed.confirmedKey, confirmed.confirmedAt],
      ...[confirmed.auditSeq, confirmed.auditHash, mac, macVersion],
    ],
  })
}

/** The act is done: a confirmation holds for one. The caller has locked the row. */
export async function use(db: Db, used: Confirmation, { mac, macVersion }: Code): Promise<void> {
  await db.query({
    text: `update tokenmill.confirmation
set used_at = to_timestamp($2 / 1000.0), mac = $3, mac_version = $4
where confirmation_id = $1`,
    values: [used.id, used.usedAt, mac, macVersion],
  })
}

/** Removes what has expired, and records what was never used. Returns how many rows of the audit that made. */
export async function expire(db: Db): Promise<number> {
  const { count } = await db.query({
    text: `with expired as (
  delete from tokenmill.confirmation
  where expires_at <= now()
  returning confirmation_id, used_at
)
${audits.RECORD}
select 'retention', 'confirmation.expire', confirmation_id
from expired
where used_at is null`,
  })
  return count
}
