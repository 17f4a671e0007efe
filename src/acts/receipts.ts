// Ends an unproved receipt: an operator who has found out what was decided says that the receipt stands as it is. From then on the
// job is answered from it, and what waited because of it is told.
import * as outbox from '../store/job/outbox.ts'
import { isProved } from '../store/job/receipt.ts'
import * as receipts from '../store/job/receipts.ts'
import { hold, type Store } from '../store/pool.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type ActResult, type By, perform } from './act.ts'

export const CONFIRM = 'receipt.confirm'

/** Codes the receipt as it stands. Refused: there is no such receipt, or it is proved. */
export function confirmReceipt(
  store: Store,
  ring: Pick<KeyRing, 'receiptMac' | 'receiptMacBy'>,
  receiptId: string,
  by: By,
): Promise<ActResult<receipts.StoredReceipt, 'unknown' | 'proved'>> {
  return perform<receipts.StoredReceipt, 'unknown' | 'proved'>(
    store,
    { action: CONFIRM, subject: receiptId },
    by,
    async db => {
      await hold(db, receiptId)
      const found = await receipts.find(db, receiptId)
      if (!found) return { refused: 'unknown' }
      const { entityId } = found
      if (isProved(ring, found)) return { refused: 'proved', entityId }
      await receipts.codeAnew(db, ring, found)
      const told = await outbox.tellAgain(db, receiptId)
      const { clientId, kind, jti, status, code, tokenId, counts } = found
      const detail = { client_id: clientId, kind, jti, status, code, token_id: tokenId, counts, told }
      return { done: found, detail, entityId }
    },
  )
}
