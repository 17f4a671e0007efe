// Disconnects an account from the person, by the touch of a passkey. Sessions that the account began are over then; this one goes on
// with the passkey that was touched, if the verdict comes while the request waits for it.
import * as ownIdentities from '../../../src/store/console/own-identities.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import { LATE, sendOwnAct } from '../acts/own-act.ts'
import { titleOf } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { shownWord } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { missingPage, sendPage } from '../server/page.ts'
import { accountFacts, beginIdentityAct, identityPage } from './identity-act.ts'

type Named = { Params: { identity: string } }

export function disconnectRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store } = deps

  app.get<Named>('/identities/:identity/disconnect', async (request, reply) => {
    const session = sessionOf(request)
    const own = await findOwn(deps, session, request.params.identity)
    if (!own) return sendPage(reply, 404, missingPage(deps, session))
    return sendPage(reply, 200, await disconnectPage(deps, session, own))
  })

  app.post<Named>('/identities/:identity/disconnect/begin', async (request, reply) => {
    const session = sessionOf(request)
    const own = await findOwn(deps, session, request.params.identity)
    if (!own) return reply.code(404).send({ text: 'You are not connected with this account.' })
    return beginIdentityAct(deps, session, { act: 'identity.disconnect', account: own })
  })

  app.post<Named>('/identities/:identity/disconnect', async (request, reply) => {
    const session = sessionOf(request)
    const { identity } = request.params
    const sent = await sendOwnAct(deps, session, request.body)
    if (sent) {
      if (sent.verdict?.done && session.identityId === identity)
        await sessions.bind(store, session.sessionHash, sent.credentialId)
      return reply.redirect(path`/acts/${sent.nonce}`.text, 303)
    }
    const own = await findOwn(deps, session, identity)
    if (!own) return sendPage(reply, 404, missingPage(deps, session))
    return sendPage(reply, 403, await disconnectPage(deps, session, own, LATE))
  })
}

function findOwn(
  { store }: Pick<ConsoleDeps, 'store'>,
  { personId }: Pick<sessions.LiveSession, 'personId'>,
  identityId: string,
): Promise<ownIdentities.OwnIdentity | undefined> {
  return ownIdentities.findOwnIdentity(store, { personId, identityId })
}

function disconnectPage(
  deps: ConsoleDeps,
  session: sessions.LiveSession,
  own: ownIdentities.OwnIdentity,
  wrong?: string,
): Promise<Html> {
  const { issuer, subject, createdAt, identityId } = own
  const words = [
    'tokenmill',
    'person',
    'disconnect',
    session.name,
    '--issuer',
    issuer,
    '--subject',
    shownWord(subject, 'SUBJECT'),
  ]
  return identityPage(deps, session, {
    title: titleOf('identity.disconnect'),
    facts: html`${accountFacts(own)}<div><dt>Connected</dt><dd>${moment(createdAt)} UTC</dd></div>`,
    effect:
      'This account signs you in no more, and the sessions that it began end. Your passkeys stay. This session goes on with the passkey that you touch; if the worker answers late, it ends, too, if this account began it.',
    form: {
      act: 'identity.disconnect',
      to: path`/identities/${identityId}/disconnect`,
      button: 'Disconnect this account',
    },
    same: html`The same on the command line: ${command(...words)}`,
    wrong,
  })
}
