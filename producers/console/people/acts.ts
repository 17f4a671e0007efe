// Acts on people and invites, as pages. Whoever invites, or makes a new link, has a secret made in the own browser; the act holds
// what the store keeps of it.
import { seenOfInvite } from '../../../src/job/system/people.ts'
import { actRoutes } from '../acts/act-routes.ts'
import type { ActSubject } from '../acts/subject.ts'
import { command, moment } from '../figures.ts'
import { html, path } from '../html.ts'
import { accountEffect, accountInput, accountOptions, accountText, readAccount } from './account.ts'
import {
  BAD_NAME,
  entitiesOf,
  keyInputs,
  NO_KEY,
  nameInput,
  optionsOf,
  readKey,
  readName,
  readRights,
  rightsInputs,
  written,
} from './form.ts'
import { inviteOf } from './lookup.ts'
import { CHANGE, LINK, REVOKE } from './person-acts.ts'
import { inviter, LASTS, roleText, sees } from './text.ts'

const INVITE: ActSubject = {
  route: '/people/invite',
  at: 'people',

  async show(asking) {
    const { deps, session, asked } = asking
    if (session.entities !== null) return undefined
    const { given } = asked
    const known = await entitiesOf(asking)
    return {
      act: 'person.invite',
      to: path`/people/invite`,
      back: { to: path`/people`, text: 'People' },
      shown: html``,
      inputs: html`${nameInput(given)}
${rightsInputs(written(given), known)}
${accountInput(deps, given)}
${keyInputs()}`,
      counted: 'this person',
      effect: `Your browser makes a link, and shows it to you when a worker has written the invite. You hand it to this person, who makes a passkey with it and then has these roles and entities. ${LASTS} An open invite of the same name ends.${accountEffect(deps)}`,
      instead: '',
      seen: null,
      fields: {},
      command: command(
        'tokenmill',
        'person',
        'invite',
        readName(given) ?? 'NAME',
        ...optionsOf(given, ['--roles', 'VIEWER']),
        ...accountOptions(deps, given),
      ),
    }
  },

  async sign({ deps, session, asked }) {
    if (session.entities !== null) return undefined
    const act = 'person.invite'
    const { given } = asked
    const name = readName(given)
    const rights = readRights(given)
    const account = readAccount(deps, given)
    const key = readKey(given)
    if (name === undefined) return { act, wrong: BAD_NAME }
    if (typeof rights === 'string') return { act, wrong: rights }
    if (typeof account === 'string') return { act, wrong: account }
    if (key === undefined) return { act, wrong: NO_KEY }
    return { act, subject: name, parameters: { ...rights, ...(account && { account }), ...key }, batchNo: null }
  },
}

const REVOKE_INVITE: ActSubject = {
  route: '/people/invites/:id/revoke',
  at: 'people',

  async show({ deps, session, asked }) {
    const invite = await inviteOf(deps, session, asked.params['id'])
    if (!invite) return undefined
    const { inviteId, name, personId, roles, entities, issuer, subject, usedAt, expiresAt } = invite
    const rights = personId === null ? html`${roleText(roles)}, ${sees(entities)}` : html`as the person has`
    return {
      act: 'invite.revoke',
      to: path`/people/invites/${inviteId}/revoke`,
      back: { to: path`/people`, text: 'People' },
      shown: html`<dl class="facts">
<div><dt>Invite of</dt><dd>${name}</dd></div>
<div><dt>For</dt><dd>${personId === null ? 'a new person' : 'a new passkey'}</dd></div>
<div><dt>Rights</dt><dd>${rights}</dd></div>
${issuer === null || subject === null ? undefined : html`<div><dt>Account</dt><dd>${accountText({ issuer, subject })}</dd></div>`}
<div><dt>Made by</dt><dd>${inviter(invite)}</dd></div>
<div><dt>Until</dt><dd>${moment(expiresAt)} UTC</dd></div>
</dl>`,
      counted: `the invite of ${name}`,
      effect:
        usedAt === null
          ? 'The link works no more, for whoever has it. Nobody can take this back; a new invite has a new link.'
          : undefined,
      instead: 'It was used, revoked or replaced before.',
      seen: seenOfInvite(invite),
      fields: {},
      command: command('tokenmill', 'person', 'revoke-invite', inviteId),
    }
  },

  async sign({ deps, session, asked }) {
    const invite = await inviteOf(deps, session, asked.params['id'])
    if (!invite) return undefined
    return { act: 'invite.revoke', subject: invite.inviteId, parameters: {}, batchNo: null }
  },
}

export const peopleActRoutes = [INVITE, CHANGE, LINK, REVOKE, REVOKE_INVITE].map(actRoutes)
