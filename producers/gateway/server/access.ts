// Decides who may call a route: credentials are checked before the body is read, roles after the request's form. Each
// route sets its access in `config.access`; a server with a route without it does not start.
import type { FastifyRequest } from 'fastify'
import { assert } from '../../../src/errors.ts'
import { failureFor } from '../../../src/job/problem.ts'
import type { Access, GatewayApp } from '../app.ts'
import { busy, roleMissing, unauthenticated } from '../error-bodies.ts'
import { decline } from './replies.ts'
import type { ServerDeps } from './service.ts'

/** Pages that a library adds. Their routes have no `access`. */
const OPEN_PAGES = /^\/docs(\/|$)/

/**
 * `config.rateLimit` of a public route that others depend on: its requests are counted by themselves. Behind a proxy all
 * requests without a caller have the proxy's address, and somebody's wrong credentials would shut the route for everybody.
 */
export const OWN_BUCKET = {}

/**
 * Counts a request without valid credentials by its address. Returns how many seconds the sender must wait if there
 * were too many.
 */
export type CountUnauthenticated = (request: FastifyRequest) => Promise<number | undefined>

export function guard(
  app: GatewayApp,
  { authenticate }: Pick<ServerDeps, 'authenticate'>,
  countStranger?: CountUnauthenticated,
): void {
  app.decorateRequest('caller', null as never)
  app.addHook('onRoute', route => {
    if (OPEN_PAGES.test(route.url)) route.config = { ...route.config, access: 'public' }
    assert(route.config?.access !== undefined, `${route.method} ${route.url} says whom it is open to`)
  })
  app.addHook('onRequest', async (request, reply) => {
    if (request.is404 || accessOf(request.routeOptions.config) === 'public') return
    const caller = await authenticate(request.headers.authorization)
    if (!caller || 'flaws' in caller) {
      // Only requests without valid credentials are counted, so a client behind the same proxy as a stranger isn't
      // blocked.
      const waitS = await countStranger?.(request)
      return decline(reply, waitS === undefined ? unauthenticated(caller?.flaws) : busy(waitS))
    }
    request.caller = caller
  })
  app.addHook('preHandler', async (request, reply) => {
    if (request.is404) return
    const access = accessOf(request.routeOptions.config)
    if (access === 'public') return
    const { client, entityId, roles } = request.caller
    if (!client.entities.includes(entityId)) return decline(reply, failureFor('entity_forbidden', 'params.entity_id'))
    const missing = access.find(role => !roles.includes(role))
    if (missing !== undefined) return decline(reply, roleMissing('params', missing))
    // A caller without any role may do nothing, even on a route that asks for no particular role.
    if (roles.length === 0) return decline(reply, failureFor('role_missing', 'params'))
  })
}

function accessOf(config: { access?: Access }): Access {
  assert(config.access !== undefined, 'a route says whom it is open to')
  return config.access
}
