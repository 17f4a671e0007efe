// Queues the reversal of a job whose provider calls must be compensated. The reversal is a job signed by the system
// client `worker`. While compensation is owed the loop queues the reversal again with the same jti, so a repeat does no
// harm.

import { LIFETIME_S, sendReversal } from '../../src/acts/reversals.ts'
import { isSystemClient } from '../../src/job/system-clients.ts'
import { describeError } from '../../src/logger.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import type { ProviderDeps } from './deps.ts'

/** Never throws: if the reversal can't be queued now, the loop does it later. */
export async function queueReversal(
  { receiptId, clientId, envelopeDigest }: Pick<Receipt, 'receiptId' | 'clientId' | 'envelopeDigest'>,
  deps: Pick<ProviderDeps, 'providers' | 'queues' | 'store' | 'clock' | 'log' | 'settings'>,
): Promise<void> {
  const { providers, queues, store, clock, log, settings } = deps
  if (!providers) return
  try {
    const client = await clients.find(store, clientId)
    const entityId = client?.entities[0]
    if (!client || entityId === undefined || isSystemClient(clientId)) return
    const now = clock()
    // Once a reversal has been given up, the next one needs another jti.
    const jti = `undo-${receiptId}-${Math.floor(now / 1000 / LIFETIME_S)}`
    const request = { receipt_id: receiptId, envelope: envelopeDigest.toString('base64url') }
    const signing = { signingKey: providers.signingKey, audience: settings.audience, now }
    await sendReversal(queues, { ...client, entityId }, { jti, request }, signing)
  } catch (error) {
    log.warn({ reversal_of: receiptId, error: describeError(error) }, 'a reversal could not be queued; it will be')
  }
}
