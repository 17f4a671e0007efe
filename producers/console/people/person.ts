// The page of one person: rights, passkeys, accounts at a provider, sessions, and what this person did.
import * as seenPeople from '../../../src/store/console/people.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { mayDo } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { chosen, couldBeCard } from '../failed/text.ts'
import { command, count, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { shown, shownWord } from '../sender-text.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage, when } from '../server/page.ts'
import { personOf } from './lookup.ts'
import { entityList, known, personMark, roleText } from './text.ts'

const DEEDS = 20

export function personRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Params: { id: string } }>('/people/:id', async (request, reply) => {
    const session = sessionOf(request)
    const person = await personOf(deps, session, request.params.id)
    if (!person) return sendPage(reply, 404, missingPage(deps, session))
    const sight = sightOf(session.entities)
    const { personId } = person
    const [keys, accounts, deeds] = await Promise.all([
      seenPeople.listPasskeys(sight, deps.store, personId),
      seenPeople.listAccounts(sight, deps.store, personId),
      seenPeople.listDeeds(sight, deps.store, { personId, limit: DEEDS }),
    ])
    const content = html`<p class="up"><a href="/people">People</a></p>
<h1>${person.name} ${personMark(person)}</h1>
${actLinks(person, session)}
${facts(person)}
<h2>Passkeys</h2>
${keyTable(person, keys, deps.site().rpId)}
${when(accounts.length > 0, html`<h2>Accounts</h2>${accountTable(person, accounts)}`)}
<h2>What this person did</h2>
${deedTable(deeds)}
<p class="same">The same on the command line: ${command('tokenmill', 'person', 'list')} and ${command('tokenmill', 'audit', 'list', '--actor', `person:${personId}`)}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'A person', session, at: 'people', content }))
  })
}

function actLinks({ personId, revokedAt, isLocal }: seenPeople.SeenPerson, session: LiveSession): Html | undefined {
  if (revokedAt !== null || isLocal || !mayDo('person.change', session)) return undefined
  const isOwn = personId === session.personId
  return html`<ul class="acts"><li><a class="button" href="${path`/people/${personId}/change`}">Change roles and entities…</a></li>
${when(!isOwn, html`<li><a class="button" href="${path`/people/${personId}/link`}">Make a new link…</a></li>`)}
<li><a class="button" href="${path`/people/${personId}/revoke`}">Revoke…</a></li></ul>`
}

function facts(person: seenPeople.SeenPerson): Html {
  const { personId, roles, entities, isLocal, createdAt, revokedAt, sessions, seenAt, signedInAt } = person
  return html`<dl class="facts">
<div><dt>Roles</dt><dd>${roleText(roles)}</dd></div>
<div><dt>Sees</dt><dd>${entityList(entities)}</dd></div>
<div><dt>Person</dt><dd>${id(personId)}</dd></div>
${when(isLocal, html`<div><dt>Comes by</dt><dd>the link that <code>tokenmill start</code> prints, without a passkey</dd></div>`)}
<div><dt>Since</dt><dd>${moment(createdAt)} UTC</dd></div>
${when(revokedAt !== null, html`<div><dt>Revoked</dt><dd>${known(revokedAt)} UTC</dd></div>`)}
<div><dt>Last sign-in</dt><dd>${known(signedInAt)}${when(signedInAt !== null, ' UTC')}</dd></div>
<div><dt>Sessions</dt><dd>${count(sessions)}${when(seenAt !== null, html`, last request ${known(seenAt)} UTC`)}</dd></div>
</dl>`
}

function keyTable(person: seenPeople.SeenPerson, keys: readonly seenPeople.SeenPasskey[], rpId: string): Html {
  if (person.isLocal)
    return html`<p class="empty">The person of the embedded engine has none, and acts without one. The audit says so.</p>`
  if (keys.length === 0)
    return html`<p class="empty">${person.revokedAt !== null ? 'All passkeys ended when this person was revoked.' : 'This person has none, so can not act here. A new link ends in one.'}</p>`
  return html`<table class="two-lines people passkeys-of">
<thead><tr><th scope="col">Passkey</th><th scope="col">For</th><th scope="col">Added (UTC)</th><th scope="col">Last act (UTC)</th></tr></thead>
<tbody>${keys.map(
    ({ credentialId, rpId: own, createdAt, lastUsedAt }) => html`<tr>
<td class="who">${id(credentialId)}</td>
<td class="for">${own === rpId ? own : html`<span class="muted">${own}, of no use here</span>`}</td>
<td class="since">${moment(createdAt)}</td>
<td class="last">${lastUsedAt === null ? html`<span class="muted">none yet</span>` : moment(lastUsedAt)}</td>
</tr>`,
  )}</tbody>
</table>`
}

function accountTable({ name, accounts: all }: seenPeople.SeenPerson, accounts: readonly seenPeople.SeenAccount[]) {
  const [only] = accounts
  const one = accounts.length === 1 ? only : undefined
  const words = ['--issuer', one?.issuer ?? 'ISSUER', '--subject', shownWord(one?.subject ?? 'SUBJECT', 'SUBJECT')]
  return html`<p>The person signs in by these, too. Acts still ask for a passkey.</p>
<table class="two-lines people accounts-of">
<thead><tr><th scope="col">Account</th><th scope="col">At</th><th scope="col">Connected (UTC)</th></tr></thead>
<tbody>${accounts.map(
    ({ issuer, subject, createdAt }) => html`<tr>
<td class="who">${shown(subject)}</td>
<td class="for">${issuer}</td>
<td class="since">${moment(createdAt)}</td>
</tr>`,
  )}</tbody>
</table>
${when(all > accounts.length, html`<p class="pages muted">The newest ${count(accounts.length)} of ${count(all)}; ${command('tokenmill', 'person', 'list', '--json')} lists all.</p>`)}
<p class="same">To end one: ${command('tokenmill', 'person', 'disconnect', name, ...words)}</p>`
}

function deedTable(deeds: readonly seenPeople.SeenDeed[]): Html {
  if (deeds.length === 0)
    return html`<p class="empty">Acts of this person, and lists that this person took, stand here. There are none in the audit.</p>`
  return html`<table class="two-lines people deeds">
<thead><tr><th scope="col">When (UTC)</th><th scope="col">What</th><th scope="col">To what</th><th scope="col">End</th><th scope="col" class="figure">Audit row</th></tr></thead>
<tbody>${deeds.map(
    ({ seq, at, action, subject, outcome }) => html`<tr>
<td class="last">${moment(at)}</td>
<td class="who">${action}</td>
<td class="for">${couldBeCard(subject) ? chosen(subject) : id(subject)}</td>
<td class="end">${outcome}</td>
<td class="figure row">${seq === null ? html`<span class="muted">soon</span>` : html`${seq}`}</td>
</tr>`,
  )}</tbody>
</table>
${when(deeds.length === DEEDS, html`<p class="pages muted">The newest ${DEEDS}; the command lists all.</p>`)}`
}
