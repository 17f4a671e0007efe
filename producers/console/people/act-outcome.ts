// An act on people that was sent. Where it made a link, the module invite.js shows that once: the secret is in the browser that
// made it, and nowhere else.
import { ChangeParameters, InviteParameters, LinkParameters } from '../../../src/job/system/people.ts'
import type { SentAct } from '../../../src/store/console/pending-acts.ts'
import * as seenPeople from '../../../src/store/console/people.ts'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import type { DescribeSent, SentDescription } from '../acts/subject.ts'
import type { ConsoleDeps } from '../deps.ts'
import { moment } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { accountText } from './account.ts'
import { inviteOf, personOf } from './lookup.ts'
import { entityList, personMark, personPath, roleText } from './text.ts'

const BACK = html`<a href="/people">People</a>`

export const sentPeopleAct: DescribeSent = async ({ deps, session, act }) => {
  // An administrator who was limited meanwhile sees nothing of people any more.
  if (session.entities !== null) return { title: 'An act', at: 'batches', facts: [], back: html`<a href="/">Back</a>` }
  const name = String(act.request['act'])
  if (name === 'person.invite') return sentInvite(deps, session, act)
  if (name === 'invite.revoke') return sentEnd(deps, session, act)
  return sentToPerson(deps, session, act, name)
}

type Facts = SentDescription['facts']

async function sentInvite({ store }: ConsoleDeps, session: LiveSession, act: SentAct): Promise<SentDescription> {
  const { roles, entities, account, lookup_hash: lookup } = InviteParameters.parse(act.request['parameters'])
  const name = String(act.request['subject'])
  return {
    at: 'people',
    facts: [
      ['Person', html`${name}`],
      ['Roles', html`${roleText(roles)}`],
      ['Sees', entityList(entities)],
      ...(account ? ([['Account', accountText(account)]] as const) : []),
    ],
    back: BACK,
    done: 'A worker has written the invite, and a row of it into the audit.',
    more: await linkOf(sightOf(session.entities), store, act, { lookup, name }),
  }
}

async function sentToPerson(
  deps: ConsoleDeps,
  session: LiveSession,
  act: SentAct,
  name: string,
): Promise<SentDescription> {
  const person = await personOf(deps, session, String(act.request['subject']))
  const now: Facts = person
    ? [
        ['Person', html`<a href="${personPath(person)}">${person.name}</a> ${personMark(person)}`],
        ['Roles now', html`${roleText(person.roles)}`],
        ['Sees now', entityList(person.entities)],
      ]
    : []
  const described = { at: 'people', back: BACK } as const
  if (name === 'person.change') {
    const { roles, entities } = ChangeParameters.parse(act.request['parameters'])
    const asked: Facts = [
      ['Roles asked for', html`${roleText(roles)}`],
      ['Sees, asked for', entityList(entities)],
    ]
    return { ...described, facts: [...now, ...(act.verdict?.done === true ? [] : asked)] }
  }
  if (name !== 'person.link') return { ...described, facts: now }
  const { lookup_hash: lookup } = LinkParameters.parse(act.request['parameters'])
  const of = { lookup, name: person?.name ?? 'this person' }
  return {
    ...described,
    facts: now,
    done: 'A worker has written the invite, and a row of it into the audit.',
    more: await linkOf(sightOf(session.entities), deps.store, act, of),
  }
}

async function sentEnd(deps: ConsoleDeps, session: LiveSession, act: SentAct): Promise<SentDescription> {
  const invite = await inviteOf(deps, session, String(act.request['subject']))
  const facts: Facts = invite
    ? [
        ['Invite of', html`${invite.name}`],
        ['Works now', html`${invite.usedAt === null ? 'yes, until it ends by itself' : 'no'}`],
      ]
    : []
  return { at: 'people', facts, back: BACK }
}

const SCRIPT = html`<script type="module" src="/invite.js"></script>`

async function linkOf(
  sight: Sight,
  store: ConsoleDeps['store'],
  { verdict }: SentAct,
  { lookup, name }: { lookup: string; name: string },
): Promise<Html | undefined> {
  if (verdict === null) return undefined
  if (verdict.done === null)
    return html`<p class="effect" data-link-of="${lookup}" data-works="no">The link is not shown, because it is not known whether it works. If People lists an open invite of ${name} from now, revoke it; then make another link.</p>${SCRIPT}`
  if (!verdict.done) return html`<span data-link-of="${lookup}" data-works="no"></span>${SCRIPT}`
  const invite = await seenPeople.findInviteByKey(sight, store, Buffer.from(lookup, 'base64url'))
  const until = invite && html`, until ${moment(invite.expiresAt)} UTC`
  return html`<section class="link" data-link-of="${lookup}" data-works="yes" aria-labelledby="link">
<h2 id="link">The link for ${name}</h2>
<p data-gone="">It was shown once, in the browser that made it, and is kept nowhere. If it is lost, revoke the invite and make another one.</p>
<p data-shown="" hidden=""><code class="command" data-link=""></code> <button type="button" data-copy="">Copy the link</button> <span role="status" data-copied=""></span></p>
<p data-shown="" hidden=""><strong>It is shown only now.</strong> Copy it before you leave this page.</p>
<p>It works once${until}. Hand it to ${name} alone, by a way on which nobody else reads. ${name} opens it, presses <em>Continue</em>, and makes a passkey with a device that asks for a finger, a face or a PIN.</p>
</section>${SCRIPT}`
}
