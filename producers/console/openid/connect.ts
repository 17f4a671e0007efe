// Connects an account at the provider with the person: the way there and back finds the account, the person looks at it, and the touch of
// a passkey has a worker connect it. The form names the flow whose account the page showed: another flow of the same session, begun in
// another tab or by whoever stole the cookie, changes nothing of it.
import { z } from 'zod'
import * as flows from '../../../src/store/console/openid-flows.ts'
import * as ownIdentities from '../../../src/store/console/own-identities.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { LATE, sendOwnAct } from '../acts/own-act.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import type { OpenIdProvider } from '../openid-provider/provider.ts'
import { shownWord } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { missingPage, refusedPage, sendPage } from '../server/page.ts'
import { openAttempts } from '../session/attempts.ts'
import { TOO_MANY } from '../session/sign-in.ts'
import { depart } from './depart.ts'
import { accountFacts, beginIdentityAct, identityPage } from './identity-act.ts'

const LOCAL = 'You came by the link of tokenmill start. Accounts are for people who were invited.'

/** The hash of the state of the flow whose account was shown. */
const Shown = z.object({ flow: z.string().regex(/^[A-Za-z0-9_-]{43}$/) })

export function connectRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, openid: provider } = deps
  const attempts = openAttempts(app)
  if (provider === undefined) return

  app.post('/identities/find', async (request, reply) => {
    const session = sessionOf(request)
    if (session.isLocal) return sendPage(reply, 403, refusedPage(deps, LOCAL, session))
    if (await attempts.isTooManyBegun(request)) return sendPage(reply, 429, refusedPage(deps, TOO_MANY, session))
    return depart(deps, reply, { provider, session, destination: '/passkeys' })
  })

  app.get('/identities/connect', async (request, reply) => {
    const session = sessionOf(request)
    const page = await connectPage(deps, session, provider)
    return page ? sendPage(reply, 200, page) : sendPage(reply, 404, missingPage(deps, session))
  })

  app.post('/identities/connect/begin', async (request, reply) => {
    const session = sessionOf(request)
    const form = Shown.safeParse(request.body).data
    const shown = form && { stateHash: Buffer.from(form.flow, 'base64url'), sessionHash: session.sessionHash }
    const subject = shown && (await flows.findSubject(store, shown))
    if (subject === undefined) return reply.code(403).send({ text: `Begin again at Your passkeys: ${LATE}` })
    return beginIdentityAct(deps, session, { act: 'identity.connect', account: { issuer: provider.issuer, subject } })
  })

  app.post('/identities/connect', async (request, reply) => {
    const session = sessionOf(request)
    const sent = await sendOwnAct(deps, session, request.body)
    if (sent) return reply.redirect(path`/acts/${sent.nonce}`.text, 303)
    const page = await connectPage(deps, session, provider, LATE)
    return page ? sendPage(reply, 403, page) : sendPage(reply, 404, missingPage(deps, session))
  })
}

/** Undefined: no account was found in this session, or too long ago. */
async function connectPage(
  deps: ConsoleDeps,
  session: LiveSession,
  { name, issuer }: OpenIdProvider,
  wrong?: string,
): Promise<Html | undefined> {
  const { store } = deps
  const found = await flows.findLatest(store, session.sessionHash)
  if (found === undefined) return undefined
  const { subject, stateHash } = found
  const account = { issuer, subject }
  const entities = (session.entities ?? []).flatMap(entity => ['--entity', entity])
  const words = ['tokenmill', 'person', 'invite', session.name, '--roles', session.roles.join(','), ...entities]
  const holder = await ownIdentities.findIdentity(store, account)
  const free = `Whoever signs in to this account at ${name} is then you here: this account sees what you see. It does no act; acts still ask for your passkey.`
  const taken =
    holder?.personId === session.personId
      ? 'This account is connected with you already.'
      : 'This account is connected with another person, so it can’t be connected with you.'
  return identityPage(deps, session, {
    title: `Connect ${name}`,
    facts: accountFacts(account),
    effect: holder ? taken : free,
    form: holder
      ? undefined
      : {
          act: 'identity.connect',
          to: path`/identities/connect`,
          button: 'Connect this account',
          fields: html`<input type="hidden" name="flow" value="${stateHash.toString('base64url')}">`,
        },
    same: html`The same by an invite, which ends in a new passkey: ${command(...words, '--issuer', issuer, '--subject', shownWord(subject, 'SUBJECT'))}`,
    wrong,
  })
}
