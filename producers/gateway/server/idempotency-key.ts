// An idempotency key is stored in the clear: as the jti of a job, or with an authentication. A key that could be a card
// number is therefore refused before anything is signed or stored (PCI DSS 3.5.1). A key that was accepted in the past
// is still accepted, and so is any key of a client whose names are `numeric`.
import { createHash } from 'node:crypto'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import { panNameRefusal } from '../../../src/job/envelope/names.ts'
import { failureFor } from '../../../src/job/problem.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as operations from '../../../src/store/job/operations.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { GatewayApp } from '../app.ts'
import { KEY_HEADERS } from './headers.ts'
import { decline } from './replies.ts'

/** Whether anything is stored under this client's key. */
export type IsKnownKey = (clientId: string, key: string) => Promise<boolean>

/** Adds the check to every write of this server. Call it after `guard`, which finds the caller. */
export function refusePanKeys(app: GatewayApp, { isKnownKey }: { isKnownKey: IsKnownKey }): void {
  app.addHook('preHandler', async (request, reply) => {
    const client = (request.caller as typeof request.caller | null)?.client
    if (request.is404 || !client || request.method === 'GET') return
    for (const header of KEY_HEADERS) {
      const key = request.headers[header]
      if (typeof key !== 'string' || !panNameRefusal({ jti: key, request: {} }, client.names)) continue
      if (!(await isKnownKey(client.clientId, key))) return decline(reply, failureFor('jti_pan', `params.${header}`))
    }
  })
}

/** The batch id of a body without one, made from the key: a repeat with the same key is the same batch. */
export function batchIdOf(key: string): string {
  return `k-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`
}

/**
 * Looks for what the token and reporting services store under a key: a receipt, an operation that waits for one, or a
 * batch.
 */
export function knownIn(store: Store): IsKnownKey {
  return async (clientId, key) => {
    const receipt = receiptId(clientId, key)
    const found = [
      receipts.find(store, receipt),
      operations.find(store, receipt),
      intake.find(store, clientId, batchIdOf(key)),
    ]
    return (await Promise.all<unknown>(found)).some(one => one !== undefined)
  }
}
