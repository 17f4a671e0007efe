// Looks for a row in the audit after one of its heads, and checks the rows from there on, so that removed rows can't mislead the
// caller. It doesn't read segments: if the end of the audit was cut off together with its head, only workers and `audit verify`
// notice that.
import * as auditChain from '../store/access/audit-chain.ts'
import type { AuditRow } from '../store/access/audits.ts'
import type { Db } from '../store/pool.ts'
import type { Head } from './numbers.ts'
import { hashRow } from './row-hash.ts'
import { isMac, type Macs } from './row-mac.ts'
import { MOVES, rowsOf } from './verify-chain.ts'

/** `broken`: a row after the head was removed, added or changed, or a worker says that the head was moved. */
export async function lookSince(
  db: Db,
  ring: Macs,
  head: Head,
  isSought: (row: AuditRow) => boolean,
): Promise<'found' | 'none' | 'broken'> {
  const chain = await auditChain.find(db)
  let last = head
  let isFound = false
  for await (const row of rowsOf(db, chain.seq, head.seq)) {
    const fits = row.seq === last.seq + 1 && isMac(ring, row) && hashRow(last.hash, row).equals(row.hash)
    if (!fits || MOVES[row.action] !== undefined) return 'broken'
    isFound ||= isSought(row)
    last = row
  }
  if (last.seq !== chain.seq || !last.hash.equals(chain.hash)) return 'broken'
  return isFound ? 'found' : 'none'
}
