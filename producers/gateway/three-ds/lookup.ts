// The lookup route: begins an authentication and answers it while the cardholder waits. A repeat with the same
// idempotency key continues where the first call stopped. No queue is used.

import { LookupRequest } from '../../../src/three-ds/areq/lookup-request.ts'
import { lookup } from '../../../src/three-ds/lookup.ts'
import { isProblem } from '../../../src/three-ds/problem.ts'
import type { GatewayApp } from '../app.ts'
import { busy } from '../error-bodies.ts'
import { idempotencyKeyOf, WriteHeaders } from '../server/headers.ts'
import { decline } from '../server/replies.ts'
import { answerProblem } from './answer.ts'
import { callerOf, SERVICE, type ThreeDsDeps } from './deps.ts'
import { ERRORS, GATEWAY_TIMEOUT, LookupAnswer } from './records.ts'

export const LookupHeaders = WriteHeaders.omit({ prefer: true })
const RETRY_S = 1

export function lookupRoutes(app: GatewayApp, { ports, settings, metrics, clock }: ThreeDsDeps): void {
  let underway = 0
  app.route({
    method: 'POST',
    url: `${SERVICE}/v2/lookup`,
    config: { access: ['THREEDS'] },
    schema: {
      operationId: 'lookup',
      summary: 'Authenticates a cardholder, or begins a challenge',
      tags: ['Lookup'],
      headers: LookupHeaders,
      body: LookupRequest,
      response: { 200: LookupAnswer, ...ERRORS, 504: GATEWAY_TIMEOUT },
    },
    handler: async ({ body, headers, caller }, reply) => {
      // A slow directory server must not keep this process from serving others.
      if (underway >= settings.inFlightMax) return decline(reply, busy(RETRY_S))
      metrics.inFlight.set(++underway)
      try {
        const key = idempotencyKeyOf(headers)
        const found = await lookup(ports, callerOf(caller), body, { idempotencyKey: key })
        if (isProblem(found)) return answerProblem(reply, found, clock())
        if (found.ended) metrics.ended.inc({ outcome: found.record.state })
        return reply.code(200).send(found.answer as LookupAnswer)
      } finally {
        metrics.inFlight.set(--underway)
      }
    },
  })
}
