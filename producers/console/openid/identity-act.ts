// What the two acts on a person's own accounts have in common: how one is begun, and how one is sent with its touch.
import { z } from 'zod'
import { Assertion } from '../../../src/job/system/act.ts'
import * as pendingActs from '../../../src/store/console/pending-acts.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import * as signingIn from '../../../src/store/console/signing-in.ts'
import { canAct, noPasskey } from '../acts/no-passkey.ts'
import { beginAct, type Unproved } from '../acts/request.ts'
import { settleAct } from '../acts/settle.ts'
import { buttonOf } from '../acts/subject.ts'
import type { ConsoleDeps } from '../deps.ts'
import { shown } from '../explain/sender-text.ts'
import { type Html, html, type Path } from '../html.ts'
import { framed } from '../server/page.ts'
import { readProof } from '../session/proof.ts'
import { touchOf } from '../session/touch.ts'

export const LATE = 'The passkey came too late, or this was sent before. Nothing was done.'

const Form = z.object({ nonce: z.string().max(64), proof: z.string().max(16_000) })

export interface IdentityAct {
  act: 'identity.connect' | 'identity.disconnect'
  account: { issuer: string; subject: string }
}

/** What the browser needs for the touch. */
export async function beginIdentityAct(
  deps: ConsoleDeps,
  { personId, sessionHash }: LiveSession,
  { act, account: { issuer, subject } }: IdentityAct,
): Promise<{ nonce: string; get: object }> {
  const about = { subject: personId, parameters: { issuer, subject }, seen: null, reason: null, person_id: personId }
  const begun = await beginAct(deps, { act, ...about }, { sessionHash, batchNo: null })
  return { nonce: begun.nonce, get: touchOf(deps, begun, await signingIn.listKeysOf(deps.store, personId)) }
}

export interface SentIdentityAct {
  nonce: string
  isDone: boolean
  /** The passkey that was touched. */
  credentialId: string
}

/** Undefined: it wasn't sent. */
export async function sendIdentityAct(
  deps: ConsoleDeps,
  { sessionHash }: LiveSession,
  body: unknown,
): Promise<SentIdentityAct | undefined> {
  const form = Form.safeParse(body).data
  const proof = readProof(form?.proof, Assertion)
  const pending = form && proof && (await pendingActs.take(deps.store, form.nonce, sessionHash))
  if (!pending || !proof) return undefined
  const verdict = await settleAct(deps, pending.request as Unproved, proof)
  return { nonce: pending.nonce, isDone: verdict?.done === true, credentialId: proof.credential_id }
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
