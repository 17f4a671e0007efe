// The page of an act: what will happen, counted, a reason, and a button that says it.
import { rowOf } from '../../../src/job/system/act.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html } from '../html.ts'
import { framed } from '../server/page.ts'
import { noPasskey } from './no-passkey.ts'
import { type ActSubject, buttonOf, type ShownAct, titleOf } from './subject.ts'

export const REASON_MAX = 500

interface Filled {
  session: LiveSession
  /** Whether the person can touch a passkey, or needs none. */
  canAct: boolean
  /** Why the form was not taken. */
  wrong?: string
  /** What the person wrote before. */
  reason?: string | undefined
}

export function actPage(
  deps: Pick<ConsoleDeps, 'name' | 'isEmbedded'>,
  subject: Pick<ActSubject, 'noun' | 'at'>,
  act: ShownAct,
  { session, canAct, wrong, reason = '' }: Filled,
): Html {
  const { back, shown, effect, instead, command } = act
  const title = titleOf(act.act, subject)
  const content = html`<p class="up"><a href="${back.to}">${back.text}</a></p>
<h1>${title}</h1>
${wrong === undefined ? undefined : html`<p class="verdict refused" role="alert">${wrong}</p>`}
${shown}
${effect === undefined ? html`<p class="effect">${instead}</p>` : html`<p class="effect">${sentence(effect)}</p>${canAct ? actForm(act, session, reason) : noPasskey(session)}`}
<p class="same">The same on the command line: ${command}</p>`
  const usesPasskey = !session.isLocal && canAct && effect !== undefined
  return framed(deps, { title, session, at: subject.at, usesPasskey, content })
}

function actForm(
  { act, to, back, counted, seen, fields, inputs }: ShownAct,
  session: LiveSession,
  reason: string,
): Html {
  const { verb, asks } = rowOf(act)
  const hidden = Object.entries(fields).map(
    ([name, value]) => html`<input type="hidden" name="${name}" value="${value}">\n`,
  )
  const inner = html`${hidden}<input type="hidden" name="seen" value="${seen ?? ''}">
${inputs}
<label for="reason">${asks ?? 'Why? It is written into the audit, for everybody who reads it.'} No card numbers, no names of cardholders.</label>
${asks === undefined ? html`<textarea id="reason" name="reason" maxlength="${REASON_MAX}" rows="3">${reason}</textarea>` : html`<textarea id="reason" name="reason" maxlength="${REASON_MAX}" rows="3" required="">${reason}</textarea>`}
<button class="${buttonOf(act)}" type="submit">${verb} ${counted}</button>
<a class="button" href="${back.to}">Leave it</a>
<p data-status="" role="status"></p>`
  if (session.isLocal)
    return html`<form class="act" method="post" action="${to}">${inner}</form>
<p class="same">You came by the link of <code>tokenmill start</code>: this needs no passkey, and the audit says that it is not proved.</p>`
  return html`<form class="act" method="post" action="${to}" data-begin="${to.text}/begin">
<input type="hidden" name="nonce" value=""><input type="hidden" name="proof" value="">${inner}</form>
<p class="same">Your passkey signs exactly this: the act, what it is done to and the reason. A worker checks it before anything happens.</p>
<noscript><p>This needs scripts: a browser uses a passkey for a script only.</p></noscript>`
}

const sentence = (text: string) => text.charAt(0).toUpperCase() + text.slice(1)
