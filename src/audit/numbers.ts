// Gives audit rows their numbers: each row the next one, its hash over the row before, and a MAC. A worker does it every
// second; an act of two operators does it in its own transaction.
import { assert } from '../errors.ts'
import * as auditChain from '../store/access/audit-chain.ts'
import * as audits from '../store/access/audits.ts'
import type { Db } from '../store/pool.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { hashRow } from './row-hash.ts'

type Ring = Pick<KeyRing, 'auditMac'>

/** A row's number and hash; number 0 stands before the first row. */
export interface Head {
  seq: number
  hash: Buffer
}

/** The most rows at once. */
export const ROWS_MAX = 1_000

/** Numbers the next rows that have no number. The caller has locked the chain, whose head is `chain`. */
export async function numberRows(db: Db, chain: Head, ring: Ring): Promise<{ head: Head; isMore: boolean }> {
  const rows = await audits.listUnnumbered(db, ROWS_MAX)
  let head: Head = { seq: chain.seq, hash: chain.hash }
  const numbered = rows.map(row => {
    const seq = head.seq + 1
    const hash = hashRow(head.hash, { ...row, seq })
    head = { seq, hash }
    return { auditId: row.auditId, seq, hash, ...ring.auditMac(hash) }
  })
  if (numbered.length > 0) {
    const count = await audits.number(db, numbered)
    assert(count === numbered.length, 'only the holder of the chain numbers rows')
    await auditChain.advance(db, head)
  }
  return { head, isMore: rows.length === ROWS_MAX }
}

/** Numbers every row that has none. The caller has locked the chain. */
export async function numberAll(db: Db, chain: Head, ring: Ring): Promise<void> {
  let next = { head: chain, isMore: true }
  while (next.isMore) next = await numberRows(db, next.head, ring)
}
