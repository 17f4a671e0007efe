// Records each request: one log line and one observation, by the template of its route and never by its URL, without
// bodies, queries or credentials.

import type { GatewayApp } from '../app.ts'
import type { ServerDeps } from '../deps.ts'

/** Machines call these every few seconds: one line for each call would bury the other lines. */
const QUIET = new Set(['/healthz', '/readyz'])

/** An alarm compares these two, so their series exist before the first such answer. */
const STATUSES_OF_PUT = ['200', '500']

export function observe(app: GatewayApp, { metrics, log }: Pick<ServerDeps, 'metrics' | 'log'>): void {
  app.addHook('onRoute', ({ method, url: route }) => {
    if (method === 'PUT') for (const status of STATUSES_OF_PUT) metrics.httpSeconds.zero({ method, route, status })
  })
  app.addHook('onResponse', async (request, reply) => {
    const route = request.is404 ? 'unknown' : (request.routeOptions.url ?? 'unknown')
    const { statusCode: status, elapsedTime: ms } = reply
    metrics.httpSeconds.observe({ method: request.method, route, status }, ms / 1000)
    if (QUIET.has(route)) return
    const client = (request.caller as typeof request.caller | null)?.client.clientId
    log.info({ request_id: request.id, method: request.method, route, status, ms: Math.round(ms), client }, 'answered')
  })
  app.addHook('onRequestAbort', async request => {
    // The operation that was begun goes on.
    log.info({ request_id: request.id, route: request.routeOptions.url }, 'the caller hung up')
  })
}
