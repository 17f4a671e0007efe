// The pages for operators and their machines: liveness, readiness, metrics, the interface and its description, and the
// public keys of results. None of them needs credentials; shield them where callers come from outside.

import type { Metrics } from '../../../src/metrics.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as storeServer from '../../../src/store/server.ts'
import type { GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'

const PUBLIC = { config: { access: 'public' }, schema: { hide: true } } as const
/** For the machines that watch this process: no stranger may use up their rate limit. */
const WATCH = { config: { access: 'public', rateLimit: false }, schema: { hide: true } } as const
const ASKED_MS_MAX = 3_000
/** The content of the addresses that `start` prints. */
const HOME = { documentation: '/docs', openapi: '/openapi.json' } as const
const HOMES = ['/', '/oidc', '/oidc/']

export function opsRoutes(app: GatewayApp, { store, queues, metrics, requestReply }: GatewayDeps): void {
  opsPages(app, {
    store,
    metrics,
    asks: () => [
      reasonUnless(queues.ping(), 'the queue server does not answer'),
      reasonUnless(requestReply.ready, 'it does not listen for answers yet'),
    ],
    collect: () => metrics.gatewayInFlight.set(requestReply.inFlight()),
  })
  app.get('/.well-known/jwks.json', PUBLIC, async (_request, reply) => {
    const keys = (await signingKeys.findPublic(store)).map(key => key.publicJwk)
    return reply.type('application/json; charset=utf-8').send({ keys })
  })
}

export interface OpsPages {
  store: Store
  metrics: Metrics
  /** Further checks before the process is ready: each resolves to no line, or to one that says what is missing. */
  asks?: () => Promise<string[]>[]
  /** Updates gauges before they are read. */
  collect?: () => void
  /** Further addresses that name the documents. */
  homes?: readonly string[]
}

/** The pages that every HTTP process has. */
export function opsPages(app: GatewayApp, { store, metrics, asks, collect, homes = [] }: OpsPages): void {
  for (const path of [...HOMES, ...homes])
    app.get(path, PUBLIC, async (_request, reply) => reply.type('application/json; charset=utf-8').send(HOME))
  app.get('/healthz', WATCH, async (_request, reply) => reply.type('text/plain; charset=utf-8').send('ok\n'))
  app.get('/readyz', WATCH, async (_request, reply) => {
    const asked = [reasonUnless(storeServer.ping(store), 'the store does not answer'), ...(asks?.() ?? [])]
    const reasons = (await Promise.all(asked)).flat()
    reply.type('text/plain; charset=utf-8')
    return reasons.length === 0 ? reply.send('ready\n') : reply.code(503).send(`${reasons.join('\n')}\n`)
  })
  app.get('/metrics', WATCH, async (_request, reply) => {
    collect?.()
    for (const [state, n] of Object.entries(store.connections())) metrics.pool.set({ state }, n)
    metrics.writableServers.set(store.writableServers())
    return reply.type(metrics.registry.contentType).send(await metrics.registry.metrics())
  })
  app.get('/openapi.json', PUBLIC, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(app.swagger()),
  )
}

async function reasonUnless(asked: Promise<unknown>, reason: string): Promise<string[]> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<string[]>(resolve => {
    timer = setTimeout(() => resolve([reason]), ASKED_MS_MAX)
  })
  const settled = asked.then(
    () => [],
    () => [reason],
  )
  return Promise.race([settled, late]).finally(() => clearTimeout(timer))
}
