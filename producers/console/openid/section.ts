// The part of Your passkeys that lists the accounts by which a person may sign in, too.
import * as ownIdentities from '../../../src/store/console/own-identities.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import { command, id, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { shown } from '../sender-text.ts'
import { when } from '../server/page.ts'

/** Undefined: there is no provider, and the person has no account from a time when there was one. */
export async function identitiesSection(
  { store, openid }: Pick<ConsoleDeps, 'store' | 'openid'>,
  { personId }: Pick<LiveSession, 'personId'>,
): Promise<Html | undefined> {
  const own = await ownIdentities.listOwnIdentities(store, personId)
  if (openid === undefined && own.length === 0) return undefined
  const row = ({ identityId, issuer, subject, createdAt }: ownIdentities.OwnIdentity) =>
    html`<tr><td>${id(shown(subject))}</td><td>${moment(createdAt)}</td><td>${new URL(issuer).host}</td><td><a href="${path`/identities/${identityId}/disconnect`}">Disconnect…</a></td></tr>`
  const table = html`<table class="two-lines passkeys"><thead><tr><th scope="col">Account</th><th scope="col">Connected (UTC)</th><th scope="col">At</th><th scope="col">End</th></tr></thead>
<tbody>${own.map(row)}</tbody></table>`
  const name = openid?.name ?? 'OpenID'
  const empty = html`<p class="empty">You have connected no account at ${name}. With one you can sign in with ${name}, too; acts still ask for a passkey.</p>`
  const find = html`<form class="act" method="post" action="/identities/find"><button type="submit">Connect ${name}…</button></form>`
  return html`<h2>Sign-in with ${name}</h2>
${own.length === 0 ? empty : table}
${when(own.length === ownIdentities.OWN_LISTED, html`<p class="same">The newest ${ownIdentities.OWN_LISTED}; ${command('tokenmill', 'person', 'list', '--json')} lists all.</p>`)}
${openid && find}`
}
