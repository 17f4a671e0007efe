// The event on a client's results queue when an authentication has ended: the outcome, and who is liable for fraud. It
// doesn't hold the authentication value, which the client reads from the record.

import type { ResultEvent } from '../job/answer/result.ts'
import { threeDsEventId } from '../job/envelope/ids.ts'
import { formatReuseToken } from '../token/token.ts'
import { type Authentication, liabilityOfRecord, publicAuthentication } from './record.ts'

/** The event of an ended authentication. It is the same each time it is made. */
export function notificationOf(record: Authentication): ResultEvent {
  const liability = liabilityOfRecord(record)
  return {
    v: 1,
    type: 'event',
    result_id: threeDsEventId(record.authenticationId),
    event: 'three-ds-notification',
    subject: {
      authentication_id: record.authenticationId,
      transaction_id: record.transactionId,
      threeds_contract_id: record.contractId,
      entity_id: record.entityId,
      ...(record.tokenId === null ? {} : { reuse_token: formatReuseToken(record.tokenId) }),
    },
    occurred_at: new Date(record.updatedAt).toISOString(),
    data: {
      amount: record.amount,
      currency_code: record.currencyCode,
      authentication: publicAuthentication(record),
      ...(liability === undefined ? {} : { liability }),
    },
  }
}
