// The hash of an audit row: SHA-256 over the hash of the row before it and the row's canonical text (RFC 8785). Anybody
// can compute it; the MAC over it needs the vault's key.
import { createHash } from 'node:crypto'
import { canonical } from '../job/envelope/digest.ts'
import type { AuditRow } from '../store/access/audits.ts'

/** The hash before the first row. */
export const NO_HASH = Buffer.alloc(32)

export type NumberedRow = AuditRow & { seq: number }

/** The row as it is hashed, exported and sent. */
export function shownRow({ seq, auditId, at, actor, action, subject, host, outcome, detail }: NumberedRow) {
  return { seq, audit_id: auditId, at, actor, host, action, subject, outcome, detail }
}

export function hashRow(before: Buffer, row: NumberedRow): Buffer {
  return hashText(before, shownRow(row))
}

export function hashText(before: Buffer, shown: Record<string, unknown>): Buffer {
  return createHash('sha256').update(before).update(canonical(shown), 'utf8').digest()
}
