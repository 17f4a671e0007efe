// What operators and their machines ask: whether it lives, whether it can work, its numbers, its interface and where
// that is described, and the keys that results are signed with. None of it needs credentials; shield it where callers
// come from outside.

import type { Metrics } from '../../../src/metrics.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import type { Store } from '../../../src/store/pool.ts'
import * as storeServer from '../../../src/store/server.ts'
import type { GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'

const PUBLIC = { config: { access: 'public' }, schema: { hide: true } } as const
/** Asked by the machines that keep it running: no stranger may use up what they need. */
const WATCH = { config: { access: 'public', rateLimit: false }, schema: { hide: true } } as const
const ASKED_MS_MAX = 3_000
/** What the addresses that `start` prints lead to. */
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
  /** What else must answer before it is ready: none, or one line. */
  asks?: () => Promise<string[]>[]
  /** Brings gauges up to date before they are read. */
  collect?: () => void
  /** Further addresses that say where the documents are. */
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
