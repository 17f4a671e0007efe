// A person's own sessions: which there are, and their end.
import { z } from 'zod'
import * as sessions from '../../../src/store/console/sessions.ts'
import type { ConsoleApp } from '../app.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, moment } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { setCookie } from '../server/cookie.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, sendPage } from '../server/page.ts'

const Form = z.object({ session: z.string().regex(/^[0-9a-f]{64}$/) })

export function sessionRoutes(app: ConsoleApp, deps: ConsoleDeps): void {
  const { store, site } = deps

  app.get('/sessions', async (request, reply) => {
    const session = sessionOf(request)
    const listed = await sessions.listOf(store, session.personId)
    const content = html`<h1>Your sessions</h1>
<p><a href="/passkeys">Your passkeys</a></p>
<p>A session ends after 15 minutes without a request, and after 8 hours in any case.</p>
<table class="two-lines sessions"><thead><tr><th scope="col">From</th><th scope="col">By</th><th scope="col">Signed in (UTC)</th><th scope="col">Last request (UTC)</th><th scope="col">End</th></tr></thead>
<tbody>${listed.map(one => sessionRow(one, { isThis: one.sessionHash.equals(session.sessionHash), openid: deps.openid }))}</tbody></table>
<form class="everywhere" method="post" action="/sessions/end-all"><button type="submit">Sign out everywhere</button></form>
<p class="same">No command lists or ends single sessions: each belongs to one browser, and a person ends it there. All sessions of a person end with the person: ${command('tokenmill', 'person', 'revoke', session.name)}</p>`
    return sendPage(reply, 200, framed(deps, { title: 'Your sessions', session, at: 'sessions', content }))
  })

  app.post('/sessions/end', async (request, reply) => {
    const { personId } = sessionOf(request)
    const form = Form.safeParse(request.body).data
    if (form) await sessions.revoke(store, Buffer.from(form.session, 'hex'), personId)
    return reply.redirect('/sessions', 303)
  })

  app.post('/sessions/end-all', async (request, reply) => {
    await sessions.revokeAllOf(store, sessionOf(request).personId)
    return reply.header('set-cookie', setCookie('', site())).redirect('/sign-in', 303)
  })

  app.post('/sign-out', async (request, reply) => {
    await sessions.revoke(store, sessionOf(request).sessionHash)
    return reply.header('set-cookie', setCookie('', site())).redirect('/sign-in', 303)
  })
}

function sessionRow(
  { sessionHash, address, began, createdAt, seenAt }: sessions.ListedSession,
  { isThis, openid }: { isThis: boolean } & Pick<ConsoleDeps, 'openid'>,
): Html {
  const by = { passkey: 'passkey', openid: openid?.name ?? 'OpenID', link: 'link of start' }
  const end = html`<form method="post" action="/sessions/end">
<input type="hidden" name="session" value="${sessionHash.toString('hex')}">
<button type="submit">End</button>
</form>`
  const mark = isThis ? html` <span class="muted">(this one)</span>` : undefined
  return html`<tr><td>${address}${mark}</td>
<td>${by[began]}</td>
<td>${moment(createdAt)}</td>
<td>${moment(seenAt)}</td>
<td>${isThis ? undefined : end}</td></tr>`
}
