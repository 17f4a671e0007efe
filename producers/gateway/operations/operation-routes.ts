// Answers a write with 202, and has the route of the operation that the answer's Location names.
import { z } from 'zod'
import { uuid } from '../../../src/job/envelope/text.ts'
import { ERRORS, Operation } from '../../http/messages/cards.ts'
import type { Caller, GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { decline, type Reply, sendJson } from '../server/replies.ts'
import { accept, find } from './operations.ts'
import { openSweeper, type Sweeper } from './sweeper.ts'
import type { Write } from './write.ts'

const OPERATIONS = '/oidc/api/v2/operations'

/** After how many seconds the operation is worth asking for. */
const RETRY_AFTER_S = '1'

/** Stores a write and answers it with 202. */
export async function respondLater<R extends Reply>(
  write: Write,
  caller: Caller,
  deps: GatewayDeps,
  reply: R,
): Promise<R> {
  const accepted = await accept(write, caller, deps)
  if ('declined' in accepted) return decline(reply, accepted.declined)
  reply.header('location', `${OPERATIONS}/${accepted.receiptId}`)
  reply.header('preference-applied', 'respond-async')
  reply.header('retry-after', RETRY_AFTER_S)
  return sendJson(reply, 202, { receipt_id: accepted.receiptId, status: 'PENDING' })
}

export function operationRoutes(app: GatewayApp, deps: GatewayDeps): void {
  let sweeper: Sweeper | undefined
  app.addHook('onReady', async () => {
    sweeper = await openSweeper(deps)
  })
  app.addHook('onClose', async () => sweeper?.close())
  app.route({
    method: 'GET',
    url: `${OPERATIONS}/:id`,
    config: { access: [] },
    schema: {
      operationId: 'getOperation',
      summary: 'What became of a write that was answered 202',
      tags: ['Operations'],
      params: z.strictObject({ id: uuid() }),
      response: { 200: Operation, ...ERRORS },
    },
    handler: async ({ params, caller }, reply) => {
      const found = await find(params.id, caller, deps)
      return 'receipt_id' in found ? reply.code(200).send(found) : decline(reply, found)
    },
  })
}
