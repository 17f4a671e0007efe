// Pages for machines and proxies: whether the process is alive, whether it can work, where the interface is described,
// and the public keys that verify results. They need no credentials. Metrics have a port of their own (src/ops.ts).

import type { Health } from '../../../src/health.ts'
import { jwksOf, type ListedKey } from '../../../src/vault/key-statement.ts'
import type { GatewayApp } from '../app.ts'
import type { ServerDeps } from './service.ts'

const PUBLIC = { config: { access: 'public' }, schema: { hide: true } } as const
/**
 * For the pages that service managers and monitoring read: they have no rate limit, because strangers could use it up.
 */
const WATCH = { config: { access: 'public', rateLimit: false }, schema: { hide: true } } as const
/** The answer at the URL that `start` prints: the paths of the pages for people. */
const HOME = { documentation: '/docs', openapi: '/openapi.json' } as const
const HOMES = ['/', '/oidc', '/oidc/']

export function opsRoutes(
  app: GatewayApp,
  { trusted, health }: Pick<ServerDeps, 'health'> & { trusted: { list(): Promise<readonly ListedKey[]> } },
): void {
  opsPages(app, health)
  app.get('/.well-known/jwks.json', PUBLIC, async (_request, reply) => {
    return reply.type('application/json; charset=utf-8').send(jwksOf(await trusted.list()))
  })
}

/** Adds the pages that every HTTP process has. `homes`: further paths that list where the documents are. */
export function opsPages(app: GatewayApp, health: Health, homes: readonly string[] = []): void {
  for (const path of [...HOMES, ...homes])
    app.get(path, PUBLIC, async (_request, reply) => reply.type('application/json; charset=utf-8').send(HOME))
  app.get('/healthz', WATCH, async (_request, reply) => reply.type('text/plain; charset=utf-8').send('ok\n'))
  app.get('/readyz', WATCH, async (_request, reply) => {
    const reasons = await health.reasons()
    reply.type('text/plain; charset=utf-8')
    return reasons.length === 0 ? reply.send('ready\n') : reply.code(503).send(`${reasons.join('\n')}\n`)
  })
  app.get('/openapi.json', PUBLIC, async (_request, reply) =>
    reply.type('application/json; charset=utf-8').send(app.swagger()),
  )
}
