// Records each request: one log line, one observation of the metrics and, if traces are on, one span. Each names the
// template of the route, never the URL, and holds no body, query or credentials.
import type { FastifyRequest } from 'fastify'
import { readTraceparent } from '../../../src/trace/context.ts'
import type { Span, Tracer } from '../../../src/trace/tracer.ts'
import type { GatewayApp } from '../app.ts'
import type { ServerDeps } from './service.ts'

/** Machines call these every few seconds: one line for each call would bury the other lines. */
const QUIET = new Set(['/healthz', '/readyz'])

/** An alarm compares the counts of these two statuses, so their series exist from the start. */
const STATUSES_OF_PUT = ['200', '500']

export function observe(app: GatewayApp, { metrics, log }: Pick<ServerDeps, 'metrics' | 'log'>): void {
  app.addHook('onRoute', ({ method, url: route }) => {
    if (method === 'PUT') for (const status of STATUSES_OF_PUT) metrics.httpSeconds.zero({ method, route, status })
  })
  app.decorateRequest('span', null)
  app.addHook('onRequest', async (request, reply) => {
    // The end of the answer is recorded. Only the response shows that the caller gave up: the request itself ends much
    // earlier, when its body was read.
    reply.raw.once('close', () => {
      if (reply.raw.writableFinished) return
      // The caller closed the connection, but the operation that it began continues.
      request.span?.end('hung_up')
      log.info({ request_id: request.id, route: request.routeOptions.url }, 'the caller hung up')
    })
  })
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
}

/**
 * Starts the span after authentication: requests of strangers, which are refused, don't use up the traces per second.
 */
export function traceRequests(app: GatewayApp, tracer: Tracer): void {
  app.addHook('onRequest', async (request, reply) => {
    const route = routeOf(request)
    if (request.is404 || QUIET.has(route)) return
    const span = trace(request, { tracer, begunAt: Date.now() - reply.elapsedTime })
    request.span = span
    // A public route has no caller.
    const caller = request.caller as typeof request.caller | null
    if (caller) request.caller = { ...caller, span }
  })
}

const routeOf = (request: Pick<FastifyRequest, 'is404' | 'routeOptions'>) =>
  request.is404 ? 'unknown' : (request.routeOptions.url ?? 'unknown')

/** The request continues its caller's trace, but this installation decides whether it is recorded. */
function trace(request: FastifyRequest, { tracer, begunAt }: { tracer: Tracer; begunAt: number }): Span {
  const route = routeOf(request)
  const given = request.headers['traceparent']
  return tracer.start(`${request.method} /${route.replace(/^\//, '')}`, {
    kind: 'server',
    parent: typeof given === 'string' ? readTraceparent(given) : undefined,
    begunAt,
    attributes: { 'http.request.method': request.method, 'http.route': route },
  })
}
