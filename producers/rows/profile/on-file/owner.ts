// Reads only the owner of a row's card, without the other members of `on_file`: rows that are rejected or skipped have
// an owner, too.
import type { RowOwner } from '../../record.ts'
import { referenceOf, type Use } from '../cells.ts'
import type { OnFileColumns } from '../on-file-schema.ts'

export function rowOwnerOf(columns: OnFileColumns, use: Use): (texts: readonly string[]) => RowOwner {
  const { provider, provider_account: account } = columns
  const cardIdOf = referenceOf(columns.card_id, 'on_file.card_id', use)
  const customerIdOf = referenceOf(columns.customer_id, 'on_file.customer_id', use)
  const accountAt = account && 'from' in account ? use(account.from, 'on_file.provider_account.from') : -1
  const constant = account && 'constant' in account ? account.constant : ''
  return texts => {
    const cardId = cardIdOf(texts)
    const customerId = customerIdOf(texts)
    if (cardId === '') return 'none'
    if (cardId === undefined || customerId === undefined) return 'unknown'
    return { provider, providerAccount: texts[accountAt] ?? constant, customerId, cardId }
  }
}
