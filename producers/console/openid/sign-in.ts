// Sign-in with an account at the provider, and the way back from there, also for who connects one. The callback is a GET that changes
// something: it uses its flow once, and needs the cookie of the browser that began.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { z } from 'zod'
import * as flows from '../../../src/store/console/openid-flows.ts'
import * as ownIdentities from '../../../src/store/console/own-identities.ts'
import { type ConsoleApp, OPEN } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import type { Arrival } from '../openid-provider/provider.ts'
import { DESTINATION_MAX } from '../server/destination.ts'
import { liveSession } from '../server/guard.ts'
import { refusedPage, sendPage } from '../server/page.ts'
import { openAttempts } from '../session/attempts.ts'
import { beginSession } from '../session/begin-session.ts'
import { TOO_MANY } from '../session/sign-in.ts'
import { readBrowser, unmarkBrowser } from './browser.ts'
import { CALLBACK, depart, hashOfState, redirectUriOf } from './depart.ts'
import { FAILURES, LOST, UNKNOWN } from './text.ts'

const Form = z.object({ to: z.string().max(DESTINATION_MAX).optional() })
/** What `openid-client` makes. */
const STATE = /^[A-Za-z0-9_-]{43}$/

export function openIdRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { openid: provider, store, metrics, site } = deps
  const attempts = openAttempts(app)
  // Its pages are then as any page that isn't there.
  if (provider === undefined) return
  const { name } = provider

  app.post('/openid/begin', OPEN, async (request, reply) => {
    if (await attempts.isTooManyBegun(request)) return failed(reply, 429, TOO_MANY)
    const destination = app.destinationOf(Form.safeParse(request.body).data?.to)
    return depart(deps, reply, { provider, session: null, destination })
  })

  app.get(CALLBACK, OPEN, async (request, reply) => {
    const callback = new URL(`${redirectUriOf(site())}${queryOf(request)}`)
    reply.header('set-cookie', unmarkBrowser(site()))
    const taken = await takeFlow(deps, request, callback)
    if (!taken) return refused(request, reply, LOST)
    const { state, flow } = taken
    const begunAt = flow.endsAt - flows.FLOW_MS
    const found = await provider.arrive(callback, { ...flow, state, begunAt })
    if (flow.sessionHash !== null) return connect(request, reply, { flow, stateHash: hashOfState(state), found })
    if ('failed' in found) return refused(request, reply, FAILURES[found.failed](name))
    const identity = await ownIdentities.findIdentity(store, { issuer: provider.issuer, subject: found.subject })
    if (!identity) return refused(request, reply, UNKNOWN(name))
    metrics.signIns.inc({ outcome: 'signed_in' })
    await beginSession(deps, request, reply, { ...identity, credentialId: null, isLocal: false })
    return reply.redirect(app.destinationOf(flow.destination), 303)
  })

  /** The session must be the one that began: the person confirms the account there. */
  async function connect(
    request: FastifyRequest,
    reply: FastifyReply,
    { flow, stateHash, found }: { flow: flows.UsedFlow; stateHash: Buffer; found: Arrival },
  ): Promise<FastifyReply> {
    const session = await liveSession(request, deps)
    if (!session || !flow.sessionHash?.equals(session.sessionHash)) return refused(request, reply, LOST)
    if ('failed' in found) {
      const text = FAILURES[found.failed](name)
      return sendPage(reply, 403, refusedPage(deps, text, session, 'Not connected'))
    }
    await flows.setSubject(store, stateHash, found.subject)
    return reply.redirect('/identities/connect', 303)
  }

  async function refused(request: FastifyRequest, reply: FastifyReply, text: string): Promise<FastifyReply> {
    const isTooMany = await attempts.isTooManyFailed(request)
    metrics.signIns.inc({ outcome: isTooMany ? 'too_many' : 'refused' })
    return failed(reply, isTooMany ? 429 : 403, isTooMany ? TOO_MANY : text)
  }

  const failed = (reply: FastifyReply, status: number, text: string) =>
    sendPage(reply, status, refusedPage(deps, text, null, 'Not signed in'))
}

async function takeFlow(
  { store, site }: Pick<ConsoleDeps, 'store' | 'site'>,
  { headers }: FastifyRequest,
  { searchParams }: URL,
): Promise<{ state: string; flow: flows.UsedFlow } | undefined> {
  const [state = '', ...more] = searchParams.getAll('state')
  const browserHash = readBrowser(headers.cookie, site())
  if (more.length > 0 || !STATE.test(state) || !browserHash) return undefined
  const flow = await flows.use(store, { stateHash: hashOfState(state), browserHash })
  return flow && { state, flow }
}

function queryOf({ url }: FastifyRequest): string {
  const at = url.indexOf('?')
  return at < 0 ? '' : url.slice(at)
}
