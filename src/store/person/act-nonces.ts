// The nonces of acts whose proof was verified: none counts twice. An act is valid for two minutes, so retention may remove a
// nonce after an hour.
import type { Db } from '../pool.ts'

export interface UsedNonce {
  nonce: string
  receiptId: string
}

/** False if the nonce was used before. */
export async function use(db: Db, { nonce, receiptId }: UsedNonce): Promise<boolean> {
  const { count } = await db.query({
    text: `insert into tokenmill.act_nonce (nonce, receipt_id)
values ($1, $2)
on conflict do nothing`,
    values: [nonce, receiptId],
  })
  return count === 1
}

/** Keeps the number of the act's row in the audit, for the answer to a repeated job. */
export async function setAudit(db: Db, nonce: string, auditId: number): Promise<void> {
  await db.query({
    text: `update tokenmill.act_nonce
set audit_id = $2
where nonce = $1`,
    values: [nonce, auditId],
  })
}

/** The row in the audit of the act with this receipt; null if it is not known any more. */
export async function findAudit(db: Db, receiptId: string): Promise<number | null> {
  const { rows } = await db.query<{ auditId: number | null }>({
    text: `select audit_id as "auditId"
from tokenmill.act_nonce
where receipt_id = $1`,
    values: [receiptId],
  })
  return rows[0]?.auditId ?? null
}

/** Erases nonces that were used before this time (ms since the epoch); returns how many. */
export async function eraseOld(db: Db, before: number): Promise<number> {
  const { count } = await db.query({
    text: `delete from tokenmill.act_nonce
where used_at < $1`,
    values: [new Date(before)],
  })
  return count
}
