// Sends a browser to the provider. A form may not lead to another site (`form-action 'self'`), not even by a redirect. So the answer
// to the form is a page that goes on by itself, and has a link for browsers that don't.
import { createHash } from 'node:crypto'
import type { FastifyReply } from 'fastify'
import * as flows from '../../../src/store/console/openid-flows.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html, outside } from '../html.ts'
import type { OpenIdProvider } from '../openid-provider/provider.ts'
import { framed, refusedPage, sendPage } from '../server/page.ts'
import type { Site } from '../site.ts'
import { markBrowser } from './browser.ts'
import { FAILURES } from './text.ts'

export const CALLBACK = '/openid/callback'

export const redirectUriOf = ({ origin }: Pick<Site, 'origin'>) => `${origin}${CALLBACK}`

export const hashOfState = (state: string): Buffer => createHash('sha256').update(state).digest()

export interface Departing {
  provider: OpenIdProvider
  /** The session that connects an account; null: a sign-in. */
  session: LiveSession | null
  /** The page to which a sign-in leads: one of this console. */
  destination: string
}

export async function depart(
  deps: ConsoleDeps,
  reply: FastifyReply,
  { provider, session, destination }: Departing,
): Promise<FastifyReply> {
  const site = deps.site()
  const departure = await provider.depart(redirectUriOf(site))
  if (!departure) return sendPage(reply, 503, refusedPage(deps, FAILURES.away(provider.name), session, 'Not begun'))
  const { to, state, nonce, verifier } = departure
  const { header, hash: browserHash } = markBrowser(site)
  const sessionHash = session?.sessionHash ?? null
  await flows.insert(deps.store, {
    stateHash: hashOfState(state),
    browserHash,
    nonce,
    verifier,
    sessionHash,
    destination,
  })
  return sendPage(reply.header('set-cookie', header), 200, departurePage(deps, session, provider, to))
}

function departurePage(deps: ConsoleDeps, session: LiveSession | null, { name }: OpenIdProvider, to: URL): Html {
  const content = html`<h1>To ${name}</h1>
<p role="status">Your browser goes on to <strong>${to.host}</strong> by itself.</p>
<p><a class="button" href="${outside(to)}">Go on to ${name}</a></p>`
  return framed(deps, { title: 'On the way', session, goesTo: to, content })
}
