// Answers a request with the error body of its service. Handlers return a decline as a value; errors that fastify or a
// hook throws are also answered here.
import type { FastifyRequest } from 'fastify'
import { systemClock } from '../../../src/clock.ts'
import { Fault, TOKEN_FLAWS } from '../../../src/errors.ts'
import { failureFor } from '../../../src/job/problem.ts'
import type { Logger } from '../../../src/logger.ts'
import { levelOfFailure } from '../../../src/server-error.ts'
import { type Decline, Declined, type ErrorBody, errorBodyOf, failed } from '../error-bodies.ts'
import { declineOfAll, type Judgeable, WrongForm, wrongBody } from './form.ts'

/** A reply of any route, whatever its schema allows as a body. */
export interface Reply {
  request: Pick<FastifyRequest, 'url' | 'headers'>
  server: { errorBodies: readonly ErrorBody[] }
  code(status: number): unknown
  header(name: string, value: string | string[]): unknown
  type(mediaType: string): unknown
  serializer(serialize: (body: unknown) => string): unknown
  send(body: unknown): unknown
}

/** Sends a body that the route's schema doesn't name: a stream, a page, a refusal. */
export function sendAny<R extends Reply>(reply: R, body: unknown): R {
  reply.send(body)
  return reply
}

/** Sends JSON that the route's schema doesn't name. */
export function sendJson<R extends Reply>(reply: R, status: number, body: object): R {
  reply.code(status)
  reply.type('application/json; charset=utf-8')
  reply.serializer(JSON.stringify)
  return sendAny(reply, body)
}

/** Sends a decline as the error body of the path's service. */
export function decline<R extends Reply>(reply: R, said: Decline): R {
  const { url, headers } = reply.request
  const challenges = challengesOf(said, headers.authorization)
  if (challenges.length > 0) reply.header('www-authenticate', challenges)
  if (said.retryAfterS !== undefined) reply.header('retry-after', String(said.retryAfterS))
  return sendJson(reply, said.status, errorBodyOf(url, reply.server.errorBodies).render(said, systemClock()))
}

/** The declines for fastify's own errors, by error code. */
const BY_CODE: Record<string, Declined> = {
  FST_ERR_CTP_INVALID_MEDIA_TYPE: wrongBody(failureFor('body_media_type', 'body')),
  FST_ERR_CTP_BODY_TOO_LARGE: wrongBody(failureFor('body_too_large', 'body')),
  FST_ERR_BAD_URL: new Declined(failureFor('field_format', 'params')),
  FST_ERR_MAX_PARAM_LENGTH: new Declined(failureFor('field_length', 'params')),
}
const UNREADABLE = new Declined(failureFor('body_json', 'body'))

/** The decline of an error that the request caused; undefined for any other error. */
function declinedBy(error: unknown): Declined | undefined {
  if (error instanceof Declined) return error
  const { code, statusCode } = (error ?? {}) as { code?: unknown; statusCode?: unknown }
  const known = typeof code === 'string' ? BY_CODE[code] : undefined
  const isOfRequest = typeof statusCode === 'number' && statusCode >= 400 && statusCode < 500
  return known ?? (isOfRequest ? UNREADABLE : undefined)
}

/** The parts of a request that an error answer needs, whatever the route's schema. */
interface FailedRequest extends Judgeable {
  id: string
  routeOptions: { url?: string | undefined }
}

/** Answers a request whose handling threw an error. */
export function handleError(log: Logger): <R extends Reply>(error: unknown, request: FailedRequest, reply: R) => R {
  return (error, request, reply) => {
    const declined = declinedBy(error)
    if (declined instanceof WrongForm) return decline(reply, declineOfAll(declined, request))
    if (declined) return decline(reply, declined.decline)
    logFailure(log, error, request)
    return decline(reply, failed('NONE'))
  }
}

/** Logs an error that the request didn't cause. */
export function logFailure(log: Logger, error: unknown, request: Pick<FailedRequest, 'id' | 'routeOptions'>): void {
  const about = { request_id: request.id, route: request.routeOptions.url, err: error }
  if (error instanceof Fault && error.code !== 'defect')
    log[levelOfFailure(error)](about, 'a request failed: what it needs is away')
  else log.error(about, 'a request failed by a fault of ours')
}

const BASIC = 'Basic realm="tokenmill", charset="UTF-8"'
const BEARER = 'Bearer realm="tokenmill"'

/**
 * `WWW-Authenticate`: the credentials that are accepted, and what is wrong with a Bearer token that was sent (RFC 6750
 * section 3). It says only what the sender can see in the token itself, and nothing about users, keys or signatures. One
 * header field per challenge: many clients misread several challenges in one field.
 */
function challengesOf({ status, fields, flaws = [] }: Decline, authorization: string | undefined): string[] {
  if (status === 401) {
    if (flaws.length === 0) return [BASIC, BEARER]
    return [BASIC, bearerError('invalid_token', flaws.map(flaw => TOKEN_FLAWS[flaw]).join('; '))]
  }
  const lacksRole = status === 403 && fields.some(({ reason }) => reason === 'role_missing')
  if (!lacksRole || !/^bearer /i.test(authorization ?? '')) return []
  return [bearerError('insufficient_scope', 'the roles in the token, of those granted to the client, do not suffice')]
}

function bearerError(error: 'invalid_token' | 'insufficient_scope', description: string): string {
  return `${BEARER}, error="${error}", error_description="${description}"`
}
