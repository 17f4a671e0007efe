// Who may call what: credentials are checked before anything of the request is read, roles after its form. Each route
// says in its `config.access` whom it is open to; one that says nothing doesn't start.
import type { FastifyRequest } from 'fastify'
import { assert } from '../../../src/errors.ts'
import type { Access, GatewayApp } from '../app.ts'
import type { GatewayDeps } from '../deps.ts'
import { busy, declineFor, unauthenticated } from './error-bodies.ts'
import { decline } from './replies.ts'

/** Pages of a library, which know no access. */
const OPEN_PAGES = /^\/docs(\/|$)/

/** Counts a request without good credentials; seconds to wait where there are too many from there. */
export type CountUnauthenticated = (request: FastifyRequest) => Promise<number | undefined>

export function guard(
  app: GatewayApp,
  { authenticate }: Pick<GatewayDeps, 'authenticate'>,
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
      // Only these: whoever shares an address with a stranger, behind one proxy, gets in all the same.
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
    if (!client.entities.includes(entityId)) return decline(reply, declineFor('entity_forbidden', 'params.entity_id'))
    // Who has no role at all may do nothing, even where no certain one is asked for.
    if (roles.length === 0 || !access.every(role => roles.includes(role)))
      return decline(reply, declineFor('role_missing', 'params'))
  })
}

function accessOf(config: { access?: Access }): Access {
  assert(config.access !== undefined, 'a route says whom it is open to')
  return config.access
}
