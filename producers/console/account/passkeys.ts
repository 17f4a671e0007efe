// A person's own passkeys: which there are, one more, and one less. Both are acts that a worker checks (workers/act/passkeys.ts).
// For one more the module passkey.js asks twice: for the new passkey, and then for the touch of one that the person has, which
// covers the new one.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import { NewPasskeyParameters } from '../../../src/job/system/own-act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import * as sessions from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { creationChallengeOf } from '../../../src/vault/passkey/challenge.ts'
import { canAct, noPasskey } from '../acts/no-passkey.ts'
import { beginOwnAct, LATE, sendOwnAct } from '../acts/own-act.ts'
import type { Unproved } from '../acts/request.ts'
import { verdictAt } from '../acts/settle.ts'
import { buttonOf, titleOf } from '../acts/subject.ts'
import { touchOf } from '../acts/touch.ts'
import { type ConsoleApp, UNCOUNTED } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { identitiesSection } from '../openid/section.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'
import { auditRowOf } from '../verdict.ts'
import { creationOf } from './creation.ts'

const Made = z.object({ nonce: z.string().max(64), made: NewPasskeyParameters })
const LOCAL = 'You came by the link of tokenmill start, which is no passkey. Passkeys are for people who were invited.'

const NO_COMMAND = html`<p class="same">No command does this: a passkey answers to a browser only. A new link replaces all passkeys of a person.</p>`

type Named = { Params: { handle: string } }

export function passkeyRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store } = deps

  app.get('/passkeys', async (request, reply) => sendPage(reply, 200, await listPage(deps, sessionOf(request))))

  app.get('/passkeys/add', async (request, reply) => sendPage(reply, 200, await addPage(deps, sessionOf(request))))

  app.post('/passkeys/add/begin', async (request, reply) => {
    const session = sessionOf(request)
    if (session.isLocal) return reply.code(403).send({ text: LOCAL })
    const { personId, name } = session
    const begun = await beginOwnAct(deps, session, 'passkey.add', {})
    const known = await signingIn.listKeysOf(store, personId)
    const challenge = creationChallengeOf(begun, deps.installationId)
    return { nonce: begun.nonce, create: creationOf(deps, { personId, name, challenge, known }) }
  })

  app.post('/passkeys/add/touch', async (request, reply) => {
    const { personId, sessionHash } = sessionOf(request)
    const asked = Made.safeParse(request.body).data
    const begun = asked && (await pendingActs.addPasskey(store, asked.nonce, sessionHash, asked.made))
    if (!begun) return reply.code(403).send({ text: LATE })
    return { get: touchOf(deps, begun.request as Unproved, await signingIn.listKeysOf(store, personId)) }
  })

  app.post('/passkeys/add', async (request, reply) => {
    const session = sessionOf(request)
    const nonce = await settle(deps, session, request.body)
    if (nonce === undefined) return sendPage(reply, 403, await addPage(deps, session, LATE))
    return reply.redirect(path`/passkeys/acts/${nonce}`.text, 303)
  })

  app.get<Named>('/passkeys/:handle/remove', async (request, reply) => {
    const session = sessionOf(request)
    const found = await findOwn(deps, session, request.params.handle)
    if (!found) return sendPage(reply, 404, missingPage(deps, session))
    return sendPage(reply, 200, removePage(deps, session, found))
  })

  app.post<Named>('/passkeys/:handle/remove/begin', async (request, reply) => {
    const session = sessionOf(request)
    const found = await findOwn(deps, session, request.params.handle)
    if (!found || found.others.length === 0)
      return reply.code(404).send({ text: 'This passkey is not one of yours, or it is the last one.' })
    const begun = await beginOwnAct(deps, session, 'passkey.remove', { credential_id: found.passkey.credentialId })
    const others = found.others.map(({ credentialId }) => credentialId)
    return { nonce: begun.nonce, get: touchOf(deps, begun, others) }
  })

  app.post<Named>('/passkeys/:handle/remove', async (request, reply) => {
    const session = sessionOf(request)
    const nonce = await settle(deps, session, request.body)
    if (nonce !== undefined) return reply.redirect(path`/passkeys/acts/${nonce}`.text, 303)
    const found = await findOwn(deps, session, request.params.handle)
    if (!found) return sendPage(reply, 404, missingPage(deps, session))
    return sendPage(reply, 403, removePage(deps, session, found, LATE))
  })

  app.get<{ Params: { nonce: string } }>('/passkeys/acts/:nonce', UNCOUNTED, async (request, reply) => {
    const session = sessionOf(request)
    const act = await pendingActs.findSent(store, request.params.nonce, session.personId)
    const name = act?.request['act']
    if (!act || (name !== 'passkey.add' && name !== 'passkey.remove'))
      return sendPage(reply, 404, missingPage(deps, session))
    return sendPage(reply, 200, await verdictPage(deps, session, act, name))
  })
}

/** Sends the act with its touch. Returns its nonce; undefined if it wasn't sent. */
async function settle(deps: ConsoleDeps, session: sessions.LiveSession, body: unknown): Promise<string | undefined> {
  const sent = await sendOwnAct(deps, session, body)
  if (sent?.act === 'passkey.remove') {
    const { verdict, credentialId } = sent
    // Sessions of the passkey that is gone are over by themselves, so this one goes on with the passkey that was touched. A session
    // that began by OpenID doesn't need it.
    if (verdict?.done === true && session.identityId === null)
      await sessions.bind(deps.store, session.sessionHash, credentialId)
    if (verdict?.done !== false) await sessions.revokeOthersOf(deps.store, session.personId, session.sessionHash)
  }
  return sent?.nonce
}

interface Own {
  passkey: signingIn.OwnKey
  /** The passkeys of the person that can sign the act on this one. */
  others: signingIn.OwnKey[]
}

async function findOwn(
  { store, site }: Pick<ConsoleDeps, 'store' | 'site'>,
  { personId }: Pick<sessions.LiveSession, 'personId'>,
  handle: string,
): Promise<Own | undefined> {
  const own = await signingIn.listOwnKeys(store, personId)
  const passkey = own.find(({ credentialId }) => handleOf(credentialId) === handle)
  return passkey && { passkey, others: own.filter(other => other !== passkey && other.rpId === site().rpId) }
}

/** What stands for the passkey in the address of a page: an id can have over a thousand characters. */
function handleOf(credentialId: string): string {
  return createHash('sha256').update(credentialId).digest('hex').slice(0, 16)
}

type Session = sessions.LiveSession
type Shown = Pick<ConsoleDeps, 'name' | 'environment' | 'store' | 'openid'>

type Acting = Shown & Pick<ConsoleDeps, 'site'>

async function listPage(deps: Shown, session: Session): Promise<Html> {
  const own = await signingIn.listOwnKeys(deps.store, session.personId)
  const row = ({ credentialId, createdAt, rpId }: signingIn.OwnKey) =>
    html`<tr><td>${id(credentialId)}</td><td>${moment(createdAt)}</td><td>${rpId}</td><td>${own.length > 1 ? html`<a href="${path`/passkeys/${handleOf(credentialId)}/remove`}">Remove…</a>` : html`<span class="muted">the last one stays</span>`}</td></tr>`
  const table = html`<table class="two-lines passkeys"><thead><tr><th scope="col">Passkey</th><th scope="col">Added (UTC)</th><th scope="col">For</th><th scope="col">End</th></tr></thead>
<tbody>${own.map(row)}</tbody></table>
<p class="acts"><a class="button" href="/passkeys/add">Add a passkey…</a></p>`
  const same = html`<p class="same">With a second passkey, on another device, you are not locked out when you lose one. If you lose all, an administrator gives you a new link: ${command('tokenmill', 'person', 'link', session.name)}</p>`
  const content = html`<p class="up"><a href="/sessions">Your sessions</a></p>
<h1>Your passkeys</h1>
${
  session.isLocal
    ? html`<p class="empty">${LOCAL}</p>${NO_COMMAND}`
    : html`${own.length === 0 ? noPasskey(session) : table}
${await identitiesSection(deps, session)}
${same}`
}`
  return framed(deps, { title: 'Your passkeys', session, at: 'sessions', content })
}

async function addPage(deps: Acting, session: Session, wrong?: string): Promise<Html> {
  const mayTouch = !session.isLocal && (await canAct(deps, session))
  const form = html`<p class="effect">Your browser makes a passkey on the device that you choose. Then you touch a passkey that you have already, to confirm the new one. You have two minutes for both. The new passkey signs you in and signs your acts, as the others do.</p>
<form class="act" method="post" action="/passkeys/add" data-begin="/passkeys/add/begin" data-touch="/passkeys/add/touch">
<input type="hidden" name="nonce" value=""><input type="hidden" name="proof" value="">
<button class="${buttonOf('passkey.add')}" type="submit" disabled="">Add a passkey</button>
<a class="button" href="/passkeys">Leave it</a>
<p data-status="" role="status"></p>
</form>
<noscript><p>This needs scripts: a browser makes a passkey for a script only.</p></noscript>`
  const content = session.isLocal ? html`<p class="empty">${LOCAL}</p>` : mayTouch ? form : noPasskey(session)
  return actPage(deps, session, { title: titleOf('passkey.add'), wrong, content, asks: mayTouch })
}

function removePage(deps: Shown, session: Session, { passkey, others }: Own, wrong?: string): Html {
  const handle = handleOf(passkey.credentialId)
  const form = html`<form class="act" method="post" action="${path`/passkeys/${handle}/remove`}" data-begin="${path`/passkeys/${handle}/remove/begin`.text}">
<input type="hidden" name="nonce" value=""><input type="hidden" name="proof" value="">
<button class="${buttonOf('passkey.remove')}" type="submit" disabled="">Remove this passkey</button>
<a class="button" href="/passkeys">Leave it</a>
<p data-status="" role="status"></p>
</form>
<noscript><p>This needs scripts: a browser uses a passkey for a script only.</p></noscript>`
  const content = html`<p>${id(passkey.credentialId)} <span class="muted">added</span> ${moment(passkey.createdAt)} UTC</p>
${others.length === 0 ? html`<p class="effect">It is the only passkey by which you can act here, so it stays. Add another one first.</p>` : html`<p class="effect">This passkey signs you in no more, and signs no act. You confirm it with another one of your passkeys. Your other sessions end.</p>${form}`}`
  return actPage(deps, session, { title: titleOf('passkey.remove'), wrong, content, asks: others.length > 0 })
}

function actPage(
  deps: Shown,
  session: Session,
  { title, wrong, content, asks }: { title: string; wrong: string | undefined; content: Html; asks: boolean },
): Html {
  const whole = html`<p class="up"><a href="/passkeys">Your passkeys</a></p>
<h1>${title}</h1>
${wrong === undefined ? undefined : html`<p class="verdict refused" role="alert">${wrong}</p>`}
${content}
${NO_COMMAND}`
  return framed(deps, { title, session, at: 'sessions', usesPasskey: asks, content: whole })
}

async function verdictPage(
  deps: ConsoleDeps,
  session: Session,
  act: pendingActs.SentAct,
  name: 'passkey.add' | 'passkey.remove',
): Promise<Html> {
  const verdict = verdictAt(act, deps.clock())
  const auditRow = await auditRowOf({ ...act, verdict }, session, deps)
  const title = titleOf(name)
  const content = html`<p class="up"><a href="/passkeys">Your passkeys</a></p>
<h1>${title}</h1>
${verdict === null ? html`<p role="status">Waiting for a worker’s verdict. This page asks again by itself.</p>` : said(verdict, name)}
${auditRow && html`<p>Audit: ${auditRow}</p>`}
<p class="same">The record of it: ${command('tokenmill', 'audit', 'list', '--action', name, '--subject', session.personId)}</p>`
  return framed(deps, { title, session, at: 'sessions', isWaiting: verdict === null, content })
}

function said(verdict: pendingActs.Verdict, name: 'passkey.add' | 'passkey.remove'): Html {
  if (verdict.done) {
    const now = name === 'passkey.add' ? 'The new passkey signs you in from now on.' : 'The passkey is of no use now.'
    return html`<p class="verdict done" role="status" tabindex="-1" autofocus><strong>Done.</strong> ${now} It is written into the audit.</p>`
  }
  return verdict.done === null
    ? html`<p class="verdict unknown" role="alert" tabindex="-1" autofocus><strong>Not known.</strong> No answer of a worker came here. Look at your passkeys: they show what is true.</p>`
    : html`<p class="verdict refused" role="alert" tabindex="-1" autofocus><strong>Not done.</strong> ${verdict.text} <code>${verdict.reason}</code></p>`
}
