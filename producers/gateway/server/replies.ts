// How a request is answered with no: the error body of the service it was for. Handlers answer so as a value; what
// fastify or a hook throws comes here too.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { systemClock } from '../../../src/clock.ts'
import { Fault } from '../../../src/errors.ts'
import type { Logger } from '../../../src/log.ts'
import { type Decline, Declined, declineFor, faceOf, failed } from './faces.ts'

/** Any reply, whatever its route's schema says of its bodies. */
interface Replying {
  request: { url: string }
  header(name: string, value: string): unknown
}

/** Sends `decline` in the body of the path's service. */
export function decline<R extends Replying>(reply: R, said: Decline): R {
  const answer = reply as unknown as FastifyReply
  if (said.status === 401)
    answer.header('www-authenticate', 'Basic realm="tokenmill", charset="UTF-8", Bearer realm="tokenmill"')
  if (said.retryAfterS !== undefined) answer.header('retry-after', String(said.retryAfterS))
  answer.code(said.status).type('application/json; charset=utf-8')
  answer.serializer(JSON.stringify).send(faceOf(reply.request.url).render(said, systemClock()))
  return reply
}

/** What fastify says, by its code. */
const BY_CODE: Record<string, Decline> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: declineFor('body_media_type', 'body'),
  FST_ERR_CTP_BODY_TOO_LARGE: declineFor('body_too_large', 'body'),
  FST_ERR_BAD_URL: declineFor('field_format', 'params'),
  FST_ERR_MAX_PARAM_LENGTH: declineFor('field_length', 'params'),
}

/** The end of a request whose handling threw. */
export function handleError(
  log: Logger,
): (error: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply {
  return (error, request, reply) => {
    if (error instanceof Declined) return decline(reply, error.decline)
    const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
    const known = typeof code === 'string' ? BY_CODE[code] : undefined
    if (known) return decline(reply, known)
    if (typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500)
      return decline(reply, declineFor('body_json', 'body'))
    const about = { request_id: request.id, route: request.routeOptions.url, err: error }
    if (error instanceof Fault && error.code !== 'defect') log.warn(about, 'a request failed: what it needs is away')
    else log.error(about, 'a request failed by a fault of ours')
    return decline(reply, failed('NONE'))
  }
}
