// An idempotency key becomes a job's jti, or is stored with an authentication, in clear: one that could be a card number
// is refused before anything is signed or stored (PCI DSS 3.5.1). A key that was taken before is answered as before.
import { createHash } from 'node:crypto'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import { panNameRefusal } from '../../../src/job/envelope/names.ts'
import * as intake from '../../../src/store/batch/intake.ts'
import * as operations from '../../../src/store/job/operations.ts'
import * as receipts from '../../../src/store/job/receipts.ts'
import type { Store } from '../../../src/store/pool.ts'
import type { GatewayApp } from '../app.ts'
import { declineFor } from './error-bodies.ts'
import { KEY_HEADERS } from './headers.ts'
import { decline } from './replies.ts'

/** Whether something is stored under this client's key. */
export type IsKnownKey = (clientId: string, key: string) => Promise<boolean>

/** For every write of this server, whatever its route. To be added after the guard, which finds the caller. */
export function refusePanKeys(app: GatewayApp, { isKnownKey }: { isKnownKey: IsKnownKey }): void {
  app.addHook('preHandler', async (request, reply) => {
    const client = (request.caller as typeof request.caller | null)?.client
    if (request.is404 || !client || request.method === 'GET') return
    for (const header of KEY_HEADERS) {
      const key = request.headers[header]
      if (typeof key !== 'string' || !panNameRefusal({ jti: key, request: {} }, client.names)) continue
      if (!(await isKnownKey(client.clientId, key))) return decline(reply, declineFor('jti_pan', `params.${header}`))
    }
  })
}

/** The batch that a body without an id is taken as, so that its repeat is the same one. */
export function batchIdOf(key: string): string {
  return `k-${createHash('sha256').update(key).digest('hex').slice(0, 32)}`
}

/** What the token and reporting services keep: a receipt, an operation that waits for its own, or a batch. */
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
