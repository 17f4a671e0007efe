// The headers that are common to all routes. Every answer has the request id, and repeats a valid `traceparent`. Writes may
// send an idempotency key. A request id that could hold a card number is replaced by a new one; idempotency-key.ts refuses
// such a key.
import { randomUUID } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { z } from 'zod'
import { couldHoldNumber } from '../../../src/job/pan-in-names.ts'
import { numbersIn } from '../../../src/token/pan.ts'
import type { GatewayApp } from '../app.ts'

const REQUEST_ID = /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/
/** W3C Trace Context, version 00. */
const TRACEPARENT = /^00-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}$/

export function requestIdOf(request: Pick<IncomingMessage, 'headers'>): string {
  const given = request.headers['x-request-id']
  return typeof given === 'string' && REQUEST_ID.test(given) && !holdsNumber(given) ? given : randomUUID()
}

function holdsNumber(text: string): boolean {
  return couldHoldNumber(text) && numbersIn(text).length > 0
}

export function echoHeaders(app: GatewayApp): void {
  app.addHook('onRequest', async (request, reply) => {
    reply.header('x-request-id', request.id)
    const trace = request.headers['traceparent']
    if (typeof trace === 'string' && TRACEPARENT.test(trace)) reply.header('traceparent', trace)
    reply.header('cache-control', 'no-store')
  })
}

const key = () =>
  z
    .string()
    .regex(/^[!-~]{1,128}$/)
    .optional()

/** The headers of a write that are checked; any other header is permitted. */
export const WriteHeaders = z.looseObject({
  'idempotency-key': key().describe('Repeats under one key are done once; another request under it is refused.'),
  'x-vfi-api-idempotencykey': key().describe('The same as `idempotency-key`, which wins where both are sent.'),
  prefer: z
    .string()
    .optional()
    .describe('`respond-async` (RFC 7240): the answer is 202, and the result is asked for later, at Location.'),
})
export type WriteHeaders = z.infer<typeof WriteHeaders>

/** The headers that may hold an idempotency key; the first one that is present is used. */
export const KEY_HEADERS = ['idempotency-key', 'x-vfi-api-idempotencykey'] as const

export function idempotencyKeyOf(headers: WriteHeaders): string | undefined {
  const [header, alias] = KEY_HEADERS
  return headers[header] ?? headers[alias]
}
