// What the two acts on a person's own accounts have in common: how one is begun, and its page.
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { canAct, noPasskey } from '../acts/no-passkey.ts'
import { beginOwnAct } from '../acts/own-act.ts'
import { buttonOf } from '../acts/subject.ts'
import { touchOf } from '../acts/touch.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html, type Path } from '../html.ts'
import { shown } from '../sender-text.ts'
import { framed } from '../server/page.ts'

export interface IdentityAct {
  act: 'identity.connect' | 'identity.disconnect'
  account: { issuer: string; subject: string }
}

/** What the browser needs for the touch. */
export async function beginIdentityAct(
  deps: ConsoleDeps,
  session: LiveSession,
  { act, account: { issuer, subject } }: IdentityAct,
): Promise<{ nonce: string; get: object }> {
  const begun = await beginOwnAct(deps, session, act, { issuer, subject })
  return { nonce: begun.nonce, get: touchOf(deps, begun, await signingIn.listKeysOf(deps.store, session.personId)) }
}

export interface IdentityPage {
  title: string
  /** What it is about. */
  facts: Html
  /** What will happen, or why nothing can. */
  effect: string
  /** The form's target and its button, and what else it sends; undefined: there is nothing to do. */
  form?: { act: IdentityAct['act']; to: Path; button: string; fields?: Html } | undefined
  same: Html
  wrong?: string | undefined
}

export async function identityPage(
  deps: ConsoleDeps,
  session: LiveSession,
  { title, facts, effect, form, same, wrong }: IdentityPage,
): Promise<Html> {
  const mayTouch = form !== undefined && (await canAct(deps, session))
  const content = html`<p class="up"><a href="/passkeys">Your passkeys</a></p>
<h1>${title}</h1>
${wrong === undefined ? undefined : html`<p class="verdict refused" role="alert">${wrong}</p>`}
<dl class="facts">${facts}</dl>
<p class="effect">${effect}</p>
${form && (mayTouch ? touchForm(form) : noPasskey(session))}
<p class="same">${same}</p>`
  return framed(deps, { title, session, at: 'sessions', usesPasskey: mayTouch, content })
}

function touchForm({ act, to, button, fields }: NonNullable<IdentityPage['form']>): Html {
  return html`<form class="act" method="post" action="${to}" data-begin="${to.text}/begin">
<input type="hidden" name="nonce" value=""><input type="hidden" name="proof" value="">${fields}
<button class="${buttonOf(act)}" type="submit" disabled="">${button}</button>
<a class="button" href="/passkeys">Leave it</a>
<p data-status="" role="status"></p>
</form>
<noscript><p>This needs scripts: a browser uses a passkey for a script only.</p></noscript>`
}

/** The account, as its provider names it; digits that could be a card number are not shown. */
export function accountFacts({ issuer, subject }: IdentityAct['account']): Html {
  return html`<div><dt>Provider</dt><dd>${issuer}</dd></div>
<div><dt>Account</dt><dd>${shown(subject)}</dd></div>`
}
