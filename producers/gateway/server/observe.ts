// Records each request: one log line, one observation and, where traces are on, one span, by the template of its route and
// never by its URL, without bodies, queries or credentials.
import type { FastifyRequest } from 'fastify'
import { readTraceparent } from '../../../src/trace/context.ts'
import type { Tracer } from '../../../src/trace/tracer.ts'
import type { GatewayApp } from '../app.ts'
import type { ServerDeps } from '../deps.ts'

/** Machines call these every few seconds: one line for each call would bury the other lines. */
const QUIET = new Set(['/healthz', '/readyz'])

/** An alarm compares these two, so their series exist before the first such answer. */
const STATUSES_OF_PUT = ['200', '500']

export function observe(
  app: GatewayApp,
  { metrics, log, tracer }: Pick<ServerDeps, 'metrics' | 'log' | 'tracer'>,
): void {
  app.addHook('onRoute', ({ method, url: route }) => {
    if (method === 'PUT') for (const status of STATUSES_OF_PUT) metrics.httpSeconds.zero({ method, route, status })
  })
  app.decorateRequest('span', null)
  if (tracer) app.addHook('onRequest', async request => trace(request, tracer))
  app.addHook('onResponse', async (request, reply) => {
    const route = routeOf(request)
    const { statusCode: status, elapsedTime: ms } = reply
    metrics.httpSeconds.observe({ method: request.method, route, status }, ms / 1000)
    const { span } = request
    span?.set({ 'http.response.status_code': status })
    span?.end(status >= 500 ? String(status) : undefined)
    if (QUIET.has(route)) return
    const client = (request.caller as typeof request.caller | null)?.client.clientId
    const said = { request_id: request.id, method: request.method, route, status, ms: Math.round(ms), client }
    log.info(span ? { ...said, trace: span.context.traceId } : said, 'answered')
  })
  app.addHook('onRequestAbort', async request => {
    // The operation that was begun goes on.
    request.span?.end('hung_up')
    log.info({ request_id: request.id, route: request.routeOptions.url }, 'the caller hung up')
  })
}

const routeOf = (request: Pick<FastifyRequest, 'is404' | 'routeOptions'>) =>
  request.is404 ? 'unknown' : (request.routeOptions.url ?? 'unknown')

/** The request goes on with its caller's trace; whether that is recorded is decided here. */
function trace(request: FastifyRequest, tracer: Tracer): void {
  const route = routeOf(request)
  if (QUIET.has(route)) return
  const given = request.headers['traceparent']
  const parent = typeof given === 'string' ? readTraceparent(given) : undefined
  request.span = tracer.start(`${request.method} /${route.replace(/^\//, '')}`, {
    kind: 'server',
    parent,
    attributes: { 'http.request.method': request.method, 'http.route': route },
  })
}
