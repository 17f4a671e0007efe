// The console's HTTP server: what applies to all routes. guard.ts has what a request meets before its route.
import rateLimit from '@fastify/rate-limit'
import Fastify, { type FastifyError, type FastifyHttpOptions, type FastifyReply, type FastifyRequest } from 'fastify'
import { Fault } from '../../../src/errors.ts'
import { readObject } from '../../../src/job/envelope/strict-json.ts'
import { levelOfFailure } from '../../../src/server-error.ts'
import { TLS_POLICY } from '../../../src/tls.ts'
import type { Tls } from '../../http/listen.ts'
import type { ConsoleApp, ConsoleRoutes } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { awayPage, awayText } from './away.ts'
import { noteDestinations } from './destination.ts'
import { guard } from './guard.ts'
import { missingPage, refuse, sendPage, wantsText } from './page.ts'

const CONNECTIONS_MAX = 1_000
const HEAD_MS_MAX = 10_000
const REQUEST_MS_MAX = 20_000
const IDLE_MS_MAX = 72_000
/** A proof of a passkey is the largest body: an attestation has some thousand characters. */
const BODY_BYTES_MAX = 64 * 1024

export async function openServer(
  deps: ConsoleDeps,
  routes: readonly ConsoleRoutes[],
  tls: Tls | undefined,
): Promise<ConsoleApp> {
  const node = { connectionsCheckingInterval: 2_000, headersTimeout: HEAD_MS_MAX, maxHeaderSize: 16_384 }
  const app = Fastify({
    logger: false,
    requestIdHeader: false,
    genReqId: () => crypto.randomUUID(),
    trustProxy: false,
    bodyLimit: BODY_BYTES_MAX,
    exposeHeadRoutes: false,
    return503OnClosing: false,
    forceCloseConnections: 'idle',
    requestTimeout: REQUEST_MS_MAX,
    keepAliveTimeout: IDLE_MS_MAX,
    ...(tls ? { https: { ...node, ...tls, ...TLS_POLICY } } : { http: node }),
  } as FastifyHttpOptions<never>) as unknown as ConsoleApp
  app.server.maxConnections = CONNECTIONS_MAX
  readBodies(app)
  observe(app, deps)
  guard(app, deps)
  noteDestinations(app)
  await app.register(rateLimit, { global: false })
  app.setNotFoundHandler((request, reply) => sendPage(reply, 404, missingPage(deps, request.session)))
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500
    if (status < 500) return refuse(deps, request, reply, { status, text: 'This request could not be read.' })
    const isAway = error instanceof Fault && error.code !== 'defect'
    const about = { request_id: request.id, route: routeOf(request), err: error }
    if (isAway) deps.log[levelOfFailure(error)](about, 'a request failed: what it needs is away')
    else deps.log.error(about, 'a request failed by a fault of ours')
    if (isAway) return sendAway(deps, request, reply, error)
    const text = `Something is wrong in tokenmill. The log has more under the request ${request.id}.`
    return refuse(deps, request, reply, { status: 500, text, title: 'Not shown' })
  })
  for (const add of routes) add(app, deps)
  await app.ready()
  return app
}

function sendAway(deps: ConsoleDeps, request: FastifyRequest, reply: FastifyReply, { code }: Fault): FastifyReply {
  const away = { code, requestId: request.id, session: request.session }
  if (wantsText(request)) return reply.code(503).send({ text: awayText(deps, away) })
  return sendPage(reply, 503, awayPage(deps, away))
}

/** Forms, and the JSON of the module that asks for passkeys; nothing else. */
function readBodies(app: ConsoleApp): void {
  app.removeAllContentTypeParsers()
  const options = { parseAs: 'string' } as const
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    options,
    async (_request: FastifyRequest, body: string) => Object.fromEntries(new URLSearchParams(body)),
  )
  app.addContentTypeParser('application/json', options, async (_request: FastifyRequest, body: string) => {
    const read = readObject(Buffer.from(body))
    if (read) return read
    throw Object.assign(new Error('the body is no JSON object'), { statusCode: 400 })
  })
}

/** One log line and one observation for each request. Each names the template of the route, never the URL. */
function observe(app: ConsoleApp, { metrics, log }: Pick<ConsoleDeps, 'metrics' | 'log'>): void {
  app.addHook('onResponse', async (request, reply) => {
    const [route, { method }] = [routeOf(request), request]
    const { statusCode: status, elapsedTime: ms } = reply
    metrics.httpSeconds.observe({ method, route, status }, ms / 1000)
    const person = request.session?.personId
    log.info({ request_id: request.id, method, route, status, ms: Math.round(ms), person }, 'answered')
  })
}

const routeOf = (request: Pick<FastifyRequest, 'is404' | 'routeOptions'>) =>
  request.is404 ? 'unknown' : (request.routeOptions.url ?? 'unknown')
