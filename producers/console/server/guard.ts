// What every request meets before its route, in this order: the headers of the answer, the host, for every method but GET
// where the request comes from, and the session. Nothing that a proxy adds is read.
import type { FastifyRequest } from 'fastify'
import { assert } from '../../../src/errors.ts'
import * as displays from '../../../src/store/console/installation/displays.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { path } from '../html.ts'
import { readCookie } from './cookie.ts'
import { noDisplay } from './display-frame.ts'
import { refuse, refusedPage, sendPage } from './page.ts'

/** Scripts, styles and pictures come from the console alone, and no script makes markup of a text. */
const POLICY = [
  ...["default-src 'none'", "script-src 'self'", "style-src 'self'", "img-src 'self'", "connect-src 'self'"],
  ...["form-action 'self'", "frame-ancestors 'none'", "base-uri 'none'"],
  ...["require-trusted-types-for 'script'", "trusted-types 'none'"],
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'cache-control': 'no-store',
  // With `no-referrer` a browser sends a form with `Origin: null`. No other site ever gets a referrer.
  'referrer-policy': 'same-origin',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'permissions-policy':
    'publickey-credentials-get=(self), publickey-credentials-create=(self), camera=(), microphone=(), geolocation=()',
} as const
const HSTS = 'max-age=31536000'

const OVER = 'Your session is over. Sign in again.'

/** A request of a session is recorded at most this often, in ms. */
const SEE_MS = 30_000

export function guard(app: ConsoleApp, deps: ConsoleDeps): void {
  app.decorateRequest('session', null)
  app.decorateRequest('display', null)
  app.addHook('onRequest', async (request, reply) => {
    reply.headers(HEADERS).header('x-request-id', request.id)
    const site = deps.site()
    if (site.isSecure) reply.header('strict-transport-security', HSTS)
    if (request.headers.host !== site.host)
      return reply.code(421).type('text/plain; charset=utf-8').send('This host is not served here.\n')
    if (request.method !== 'GET' && !isOwn(request, site.origin))
      return sendPage(reply, 403, refusedPage(deps, 'This request did not come from a page of this console.'))
    if (request.routeOptions.config.isOpen) return undefined
    if (request.routeOptions.config.isDisplay) {
      request.display = await liveDisplay(request, deps)
      return request.display === null ? noDisplay(deps, reply) : undefined
    }
    request.session = await liveSession(request, deps)
    if (request.session !== null) return undefined
    if (request.method !== 'GET') return refuse(deps, request, reply, { status: 401, text: OVER })
    const to = app.destinationOf(request.url)
    return reply.redirect(to === '/' ? '/sign-in' : path`/sign-in?to=${to}`.text, 303)
  })
}

/** The session of a route that isn't open. */
export function sessionOf({ session }: FastifyRequest): sessions.LiveSession {
  assert(session, 'a route that is not open has a session')
  return session
}

/** The display of a route for displays. */
export function displayOf({ display }: FastifyRequest): displays.LiveDisplay {
  assert(display, 'a route for displays has one')
  return display
}

function isOwn({ headers }: FastifyRequest, origin: string): boolean {
  return headers.origin === origin && headers['sec-fetch-site'] === 'same-origin'
}

async function liveDisplay(request: FastifyRequest, deps: ConsoleDeps): Promise<displays.LiveDisplay | null> {
  const linkHash = readCookie(request.headers.cookie, { cookie: deps.site().displayCookie })
  return (linkHash && (await displays.find(deps.store, linkHash))) ?? null
}

/** The session of the request's cookie; null if there is none, or it is over. */
export async function liveSession(request: FastifyRequest, deps: ConsoleDeps): Promise<sessions.LiveSession | null> {
  const sessionHash = readCookie(request.headers.cookie, deps.site())
  const live = sessionHash && (await sessions.find(deps.store, sessionHash))
  // A store that was embedded may be moved to a server: the link's sessions end with that.
  if (!live || (live.isLocal && !deps.isEmbedded)) return null
  const counts = !request.routeOptions.config.isUncounted
  if (counts && deps.clock() - live.seenAt > SEE_MS) await sessions.see(deps.store, live.sessionHash)
  return live
}
