// The HTTP server: everything that applies to all routes, in the order in which a request meets it. ../services.ts lists
// what the gateway serves, ../three-ds/main.ts has 3-D Secure.
import type { Socket } from 'node:net'
import helmet from '@fastify/helmet'
import rateLimit from '@fastify/rate-limit'
import Fastify, { type FastifyHttpOptions, type FastifyReply } from 'fastify'
import type { ZodTypeProvider } from 'fastify-type-provider-zod'
import { systemClock } from '../../../src/clock.ts'
import { failureFor } from '../../../src/job/problem.ts'
import { TLS_POLICY } from '../../../src/tls.ts'
import type { Tls } from '../../http/listen.ts'
import type { GatewayApp } from '../app.ts'
import { joinNotes } from '../document/notes.ts'
import { busy, Declined, type ErrorBody, errorBodyOf } from '../error-bodies.ts'
import { type CountUnauthenticated, guard } from './access.ts'
import { allowStreams, BODY_BYTES_MAX, limitBodyTime, takeJson } from './body.ts'
import { compileSchema } from './form.ts'
import { echoHeaders, requestIdOf } from './headers.ts'
import { refusePanKeys } from './idempotency-key.ts'
import { observe, traceRequests } from './observe.ts'
import { type DocumentInfo, documentRoutes } from './openapi.ts'
import { decline, handleError } from './replies.ts'
import type { ServerDeps, Service } from './service.ts'

const CONNECTIONS_MAX = 5_000
const HEAD_MS_MAX = 10_000
/** The time limit of a streamed body, in ms; body.ts limits the others. */
const REQUEST_MS_MAX = 3_600_000
const IDLE_MS_MAX = 72_000
const PATH_PART_LENGTH_MAX = 4_096
const YEAR_S = 365 * 86_400

export interface Served<D> {
  services: readonly Service<D>[]
  document: DocumentInfo
  /** The path prefix of the service whose error body answers bytes that aren't an HTTP request. */
  prefix: string
  tls: Tls | undefined
}

/** Returns a server that is ready to listen. Throws if a route is wrong or the certificate can't be used. */
export async function openServer<D extends ServerDeps>(
  deps: D,
  { services, document, prefix, tls }: Served<D>,
): Promise<GatewayApp> {
  const errorBodies = services.flatMap(({ errorBody }) => errorBody ?? [])
  const node = { connectionsCheckingInterval: 2_000, headersTimeout: HEAD_MS_MAX, maxHeaderSize: 16_384 }
  const app = Fastify({
    logger: false,
    genReqId: requestIdOf,
    requestIdHeader: false,
    trustProxy: false,
    bodyLimit: BODY_BYTES_MAX,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: REQUEST_MS_MAX,
    keepAliveTimeout: IDLE_MS_MAX,
    routerOptions: { maxParamLength: PATH_PART_LENGTH_MAX },
    frameworkErrors: (error, request, reply) => {
      reply.header('x-request-id', request.id)
      // The type of this reply in fastify names no route and so permits no body.
      handleError(deps.log)(error, request, reply as FastifyReply)
    },
    clientErrorHandler: (error: NodeJS.ErrnoException, socket: Socket) =>
      refuseBytes(error, socket, errorBodyOf(prefix, errorBodies)),
    ...(tls ? { https: { ...node, ...tls, ...TLS_POLICY } } : { http: node }),
  } as FastifyHttpOptions<never>).withTypeProvider<ZodTypeProvider>() as unknown as GatewayApp
  app.decorate('errorBodies', errorBodies)
  app.server.maxConnections = CONNECTIONS_MAX

  app.setValidatorCompiler(compileSchema)
  // Schemas of answers are only for documents and tests: a worker's answer is sent even if it doesn't fit.
  app.setSerializerCompiler(() => data => JSON.stringify(data))
  app.setErrorHandler(handleError(deps.log))
  app.setNotFoundHandler((_request, reply) => decline(reply, failureFor('path_unknown', 'params')))
  takeJson(app)
  observe(app, deps)
  echoHeaders(app)
  await app.register(helmet, {
    contentSecurityPolicy: { useDefaults: false, directives: { defaultSrc: ["'none'"], frameAncestors: ["'none'"] } },
    strictTransportSecurity: { maxAge: YEAR_S, includeSubDomains: false },
    referrerPolicy: { policy: 'no-referrer' },
  })
  limitBodyTime(app)
  const limit = deps.settings.rateLimit
  guard(app, deps, limit > 0 ? await limitRate(app, limit) : undefined)
  if (deps.tracer) traceRequests(app, deps.tracer)
  refusePanKeys(app, deps)
  allowStreams(app)
  await documentRoutes(app, document, joinNotes(services.map(({ notes }) => notes)))
  for (const add of services.flatMap(({ routes }) => routes))
    await app.register(async scope => add(scope as GatewayApp, deps))
  await app.ready()
  return app
}

/**
 * Limits the rate per client in this process, whichever credentials it uses. Requests without valid credentials are
 * counted by address.
 */
async function limitRate(app: GatewayApp, perMinute: number): Promise<CountUnauthenticated> {
  await app.register(rateLimit, {
    max: perMinute,
    timeWindow: 60_000,
    hook: 'onRequest',
    cache: 10_000,
    keyGenerator: request => (request.caller as typeof request.caller | null)?.client.clientId ?? request.ip,
    errorResponseBuilder: (_request, { ttl }) => new Declined(busy(Math.max(1, Math.ceil(ttl / 1000)))),
  })
  const count = app.createRateLimit()
  return async request => {
    const counted = await count(request)
    return counted.isAllowed || !counted.isExceeded ? undefined : Math.max(1, counted.ttlInSeconds)
  }
}

/** Answers bytes that aren't an HTTP request with the usual error body, and closes the connection. */
function refuseBytes(error: NodeJS.ErrnoException, socket: Socket, errorBody: ErrorBody): void {
  if (error.code === 'ECONNRESET' || !socket.writable) return void socket.destroy()
  const body = JSON.stringify(errorBody.render(failureFor('field_format', 'params'), systemClock()))
  const head = ['HTTP/1.1 400 Bad Request', 'content-type: application/json; charset=utf-8', 'connection: close']
  socket.end(`${[...head, `content-length: ${Buffer.byteLength(body)}`].join('\r\n')}\r\n\r\n${body}`)
}
