// The way in: a passkey, or where it is set up an account at an OpenID provider (openid/sign-in.ts). Every failure has one answer, which doesn't say what was wrong.
import { randomBytes } from 'node:crypto'
import { z } from 'zod'
import { Assertion } from '../../../src/job/system/act.ts'
import * as challenges from '../../../src/store/console/challenges.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { verifyAssertion } from '../../../src/vault/passkey/assertion.ts'
import type { ConsoleApp } from '../app.ts'
import { OPEN } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, moment } from '../figures.ts'
import { type Html, html } from '../html.ts'
import type { OpenIdProvider } from '../openid-provider/provider.ts'
import { DESTINATION_MAX } from '../server/destination.ts'
import { framed, sendPage, when } from '../server/page.ts'
import { openAttempts } from './attempts.ts'
import { beginSession } from './begin-session.ts'
import { readProof } from './proof.ts'

/** How long a person has to use the passkey. */
export const TOUCH_MS = 120_000
export const TOO_MANY = 'Too many attempts. Wait a minute, then try again.'

const Form = z.object({ proof: z.string().max(16_000), to: z.string().max(DESTINATION_MAX).optional() })
const ClientData = z.object({ challenge: z.string().max(200) })

export function signInRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, metrics, site } = deps
  const attempts = openAttempts(app)

  app.get<{ Querystring: { to?: string; enrolled?: string } }>('/sign-in', OPEN, async (request, reply) => {
    const { to, enrolled } = request.query
    const notice = enrolled === undefined ? undefined : 'Your passkey is enrolled. Sign in with it.'
    return sendPage(reply, 200, signInPage(deps, app.destinationOf(to), { notice }))
  })

  app.post('/sign-in/begin', OPEN, async (request, reply) => {
    if (await attempts.isTooManyBegun(request)) return reply.code(429).send({ text: TOO_MANY })
    const challenge = randomBytes(32)
    await challenges.insertSignIn(store, challenge, TOUCH_MS)
    const get = { challenge: challenge.toString('base64url'), rpId: site().rpId, userVerification: 'required' }
    return { get: { ...get, timeout: TOUCH_MS, allowCredentials: [] } }
  })

  app.post('/sign-in', OPEN, async (request, reply) => {
    const form = Form.safeParse(request.body).data
    const proof = readProof(form?.proof, Assertion)
    const to = app.destinationOf(form?.to)
    const key = proof && (await keyOf(proof, deps))
    if (!key) {
      if (await attempts.isTooManyFailed(request, proof?.credential_id)) {
        metrics.signIns.inc({ outcome: 'too_many' })
        return sendPage(reply, 429, signInPage(deps, to, { wrong: TOO_MANY }))
      }
      metrics.signIns.inc({ outcome: 'refused' })
      const wrong = 'This passkey does not sign you in here, or it took too long. Try again.'
      return sendPage(reply, 403, signInPage(deps, to, { wrong }))
    }
    metrics.signIns.inc({ outcome: 'signed_in' })
    await beginSession(deps, request, reply, { ...key, isLocal: false })
    return reply.redirect(to, 303)
  })
}

/** The passkey that made the proof. The challenge is used up by the attempt, whatever its end. */
async function keyOf(
  proof: z.infer<typeof Assertion>,
  { store, site, log }: ConsoleDeps,
): Promise<Pick<signingIn.SignInKey, 'personId' | 'credentialId'> | undefined> {
  const clientData = readProof(Buffer.from(proof.client_data_json, 'base64url').toString(), ClientData)
  const challenge = Buffer.from(clientData?.challenge ?? '', 'base64url')
  if (!(await challenges.useSignIn(store, challenge))) return undefined
  const key = await signingIn.findKey(store, proof.credential_id)
  if (!key) return undefined
  const { origin, rpId } = site()
  const verified = verifyAssertion(proof, { ...key, challenge, origin, rpId })
  if (typeof verified === 'object') return key
  log.warn({ person: key.personId, reason: verified }, 'a passkey was refused')
  return undefined
}

function signInPage(
  deps: Pick<ConsoleDeps, 'name' | 'environment' | 'isEmbedded' | 'openid'>,
  to: string,
  { wrong, notice }: { wrong?: string; notice?: string | undefined },
): Html {
  const content = html`<h1>Sign in</h1>
${notice === undefined ? undefined : html`<p class="verdict done" role="status">${notice}</p>`}
${wrong === undefined ? undefined : html`<p class="verdict refused" role="alert">${wrong}</p>`}
<p>You sign in with the passkey that you enrolled. Nobody is asked for a password.</p>
<form class="act" method="post" action="/sign-in" data-begin="/sign-in/begin">
<input type="hidden" name="to" value="${to}">
<input type="hidden" name="proof" value="">
<button class="main" type="submit" disabled="">Sign in with a passkey</button>
<p data-status="" role="status"></p>
</form>
<noscript><p>Signing in with a passkey needs scripts: a browser gives a passkey to a script only.</p></noscript>
${deps.openid && openIdForm(deps.openid, to)}
<p class="same">No passkey yet? An administrator invites you and gives you a link: ${command('tokenmill', 'person', 'invite', 'NAME', '--roles', 'VIEWER')}</p>
${when(deps.isEmbedded, html`<p class="same">This installation runs on the embedded engine: the link that ${command('tokenmill', 'start')} prints signs you in.</p>`)}`
  return framed(deps, { title: 'Sign in', session: null, usesPasskey: true, content })
}

function openIdForm(provider: OpenIdProvider, to: string): Html {
  const at = provider.awayAt()
  const { name } = provider
  return html`<form class="act other-way" method="post" action="/openid/begin">
<input type="hidden" name="to" value="${to}">
<button type="submit">Sign in with ${name}</button>
<p class="same">${at === undefined ? html`This works if your account at ${name} is connected with you here. Acts still ask for your passkey.` : html`${name} did not answer as it should at ${moment(at)} UTC. Your passkey signs you in all the same.`}</p>
</form>`
}
