// The page of the people who may use the console, and of the invites that are open. People for some entities don't see it.
import type { SeenInvite, SeenPerson } from '../../../src/store/console/people.ts'
import * as seenPeople from '../../../src/store/console/people.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { mayDo } from '../acts/subject.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage, when } from '../server/page.ts'
import { UUID } from './lookup.ts'
import { accounts, inviter, known, passkeys, personMark, personPath, roleText, sees } from './text.ts'

const LISTED = 100

export function peopleRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  app.get<{ Querystring: Record<string, unknown> }>('/people', async (request, reply) => {
    const session = sessionOf(request)
    if (session.entities !== null) return sendPage(reply, 404, missingPage(deps, session))
    const { revoked, after } = request.query
    const from = typeof after === 'string' && UUID.test(after) ? after : undefined
    const content = revoked === 'yes' ? await revokedPage(deps, session, from) : await livePage(deps, session, from)
    return sendPage(reply, 200, framed(deps, { title: 'People', session, at: 'people', content }))
  })
}

type Deps = Pick<ConsoleDeps, 'store' | 'site' | 'isEmbedded'>

async function livePage({ store, site, isEmbedded }: Deps, session: LiveSession, after?: string): Promise<Html> {
  const sight = sightOf(session.entities)
  const { rpId } = site()
  const [listed, invites, admins] = await Promise.all([
    seenPeople.list(sight, store, { rpId, after, limit: LISTED + 1 }),
    seenPeople.listInvites(sight, store, { limit: LISTED + 1 }),
    seenPeople.countAdmins(sight, store, rpId),
  ])
  const shown = listed.slice(0, LISTED)
  const mayInvite = mayDo('person.invite', session)
  return html`<h1>People</h1>
${when(!isEmbedded && admins < 2, fewAdmins(admins))}
<p>They may use this console. What each of them decides here, a passkey signs.</p>
${when(mayInvite, html`<ul class="acts"><li><a class="button" href="/people/invite">Invite a person…</a></li></ul>`)}
${shown.length === 0 ? html`<p class="empty">${after === undefined ? 'Nobody is here yet. A person comes by an invite.' : 'No further people.'}</p>` : liveTable(shown)}
<p class="pages">${when(after !== undefined, html`<a href="/people">First page</a> `)}${next(listed, shown, last => path`/people?after=${last}`)}<a href="/people?revoked=yes">People who were revoked</a></p>
<h2>Open invites</h2>
${invites.length === 0 ? noInvites() : inviteTable(invites.slice(0, LISTED), mayInvite)}
${when(invites.length > LISTED, html`<p class="muted">These ${LISTED} end last; ${command('tokenmill', 'person', 'invites')} lists all.</p>`)}
<p class="same">The same on the command line: ${command('tokenmill', 'person', 'list')} and ${command('tokenmill', 'person', 'invites')}. They check also that tokenmill itself wrote each row, for which the console has no key.</p>`
}

function fewAdmins(admins: number): Html {
  const who = admins === 0 ? 'No administrator has' : 'Only one administrator has'
  return html`<p class="verdict unknown">${who} a passkey for this console. Who loses the last one is let in again only by ${command('tokenmill', 'person', 'link', 'NAME')} on a host with the owner’s database login. Invite a second administrator.</p>`
}

function noInvites(): Html {
  return html`<div class="empty"><p>An invite is a link that was made and not used yet. None is open.</p>
<p>On the command line: ${command('tokenmill', 'person', 'invite', 'NAME', '--roles', 'VIEWER')}</p></div>`
}

function next(
  listed: readonly SeenPerson[],
  shown: readonly SeenPerson[],
  to: (last: string) => ReturnType<typeof path>,
) {
  const last = shown.at(-1)
  return listed.length > shown.length && last ? html`<a href="${to(last.personId)}">Further people</a> ` : undefined
}

function liveTable(people: readonly SeenPerson[]): Html {
  return html`<table class="two-lines people">
<thead><tr><th scope="col">Name</th><th scope="col">Roles</th><th scope="col">Sees</th><th scope="col">Passkeys</th><th scope="col">Last sign-in (UTC)</th><th scope="col">Since (UTC)</th></tr></thead>
<tbody>${people.map(liveRow)}</tbody>
</table>`
}

function liveRow(person: SeenPerson): Html {
  const { name, roles, entities, signedInAt, createdAt } = person
  return html`<tr>
<td class="who"><a href="${personPath(person)}">${name}</a></td>
<td class="roles">${roleText(roles)}</td>
<td class="sees">${sees(entities)}</td>
<td class="keys">${personMark(person) ?? passkeys(person)}${accounts(person)}</td>
<td class="last">${known(signedInAt)}</td>
<td class="since">${moment(createdAt)}</td>
</tr>`
}

function inviteTable(invites: readonly SeenInvite[], mayRevoke: boolean): Html {
  return html`<table class="two-lines people invites">
<thead><tr><th scope="col">Name</th><th scope="col">Gets</th><th scope="col">Sees</th><th scope="col">By</th><th scope="col">Until (UTC)</th>${when(mayRevoke, html`<th scope="col">End</th>`)}</tr></thead>
<tbody>${invites.map(invite => inviteRow(invite, mayRevoke))}</tbody>
</table>`
}

function inviteRow(invite: SeenInvite, mayRevoke: boolean): Html {
  const { inviteId, name, personId, roles, entities, issuer, expiresAt } = invite
  return html`<tr>
<td class="who">${personId === null ? name : html`<a href="${personPath({ personId })}">${name}</a>`}</td>
<td class="roles">${personId === null ? roleText(roles) : 'a new passkey'}${when(issuer !== null, html` <span class="muted">with an account</span>`)}</td>
<td class="sees">${personId === null ? sees(entities) : html`<span class="muted">as now</span>`}</td>
<td class="by">${inviter(invite)}</td>
<td class="last">${moment(expiresAt)}</td>
${when(mayRevoke, html`<td class="end"><a href="${path`/people/invites/${inviteId}/revoke`}">Revoke…</a></td>`)}
</tr>`
}

async function revokedPage({ store, site }: Deps, session: LiveSession, after?: string): Promise<Html> {
  const { rpId } = site()
  const listed = await seenPeople.listRevoked(sightOf(session.entities), store, { rpId, after, limit: LISTED + 1 })
  const shown = listed.slice(0, LISTED)
  const table = html`<table class="two-lines people revoked">
<thead><tr><th scope="col">Name</th><th scope="col">Roles</th><th scope="col">Saw</th><th scope="col">Since (UTC)</th><th scope="col">Revoked (UTC)</th></tr></thead>
<tbody>${shown.map(revokedRow)}</tbody>
</table>`
  return html`<p class="up"><a href="/people">People</a></p>
<h1>People who were revoked</h1>
${shown.length === 0 ? html`<p class="empty">${after === undefined ? 'Nobody was revoked.' : 'No further people.'}</p>` : table}
<p class="pages">${next(listed, shown, last => path`/people?revoked=yes&after=${last}`)}</p>
<p class="same">The same on the command line: ${command('tokenmill', 'person', 'list')}</p>`
}

function revokedRow(person: SeenPerson): Html {
  const { name, roles, entities, createdAt, revokedAt } = person
  return html`<tr>
<td class="who"><a href="${personPath(person)}">${name}</a></td>
<td class="roles">${roleText(roles)}</td>
<td class="sees">${sees(entities)}</td>
<td class="since">${moment(createdAt)}</td>
<td class="last">${known(revokedAt)}</td>
</tr>`
}
