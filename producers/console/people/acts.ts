// Acts on people and invites, as pages. Whoever invites, or makes a new link, has a secret made in the own browser; the act holds
// what the store keeps of it.
import { seenOfInvite, seenOfPerson } from '../../../src/job/system/people.ts'
import * as seenPeople from '../../../src/store/console/people.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { actRoutes } from '../acts/act-routes.ts'
import { type ActSubject, type Asking, type ShownAct, wordOf } from '../acts/subject.ts'
import { command, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import { accountEffect, accountInput, accountOptions, accountText, readAccount } from './account.ts'
import {
  BAD_NAME,
  entitiesOf,
  isWritten,
  keyInputs,
  NO_KEY,
  nameInput,
  optionsOf,
  readKey,
  readName,
  readRights,
  rightsInputs,
  written,
  writtenOf,
} from './form.ts'
import { inviteOf, personOf } from './lookup.ts'
import {
  accounts,
  entityList,
  inviter,
  LASTS,
  passkeys,
  personMark,
  personPath,
  plural,
  roleText,
  sees,
} from './text.ts'

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

type Person = seenPeople.SeenPerson
type Given = Asking['asked']['given']

interface OnPerson {
  act: 'person.change' | 'person.link' | 'person.revoke'
  counted: (name: string) => string
  /** Why it can't be done to this person, if nothing else speaks against it. */
  not?: (asking: Asking, person: Person) => Promise<string | undefined>
  effect: (person: Person, asking: Asking) => string
  inputs?: (asking: Asking, person: Person) => Promise<Html>
  /** What is signed, or what is wrong with what was written. */
  parameters: (given: Given) => object | string
  /** The words of the command behind the name. */
  options?: (given: Given, person: Person) => string[]
}

function onPerson({ act, counted, not, effect, inputs, parameters, options }: OnPerson): ActSubject {
  const find = ({ deps, session, asked }: Asking) => personOf(deps, session, asked.params['id'])
  const word = wordOf(act)
  return {
    route: `/people/:id/${word}`,
    at: 'people',

    async show(asking): Promise<ShownAct | undefined> {
      const person = await find(asking)
      if (!person) return undefined
      const { personId, name } = person
      const why = outOfReach(person) ?? (await not?.(asking, person))
      return {
        act,
        to: path`/people/${personId}/${word}`,
        back: { to: personPath(person), text: name },
        shown: described(person),
        counted: counted(name),
        effect: why === undefined ? effect(person, asking) : undefined,
        instead: why ?? '',
        seen: seenOfPerson(person),
        ...(inputs && { inputs: await inputs(asking, person) }),
        fields: {},
        command: command('tokenmill', 'person', word, name, ...(options?.(asking.asked.given, person) ?? [])),
      }
    },

    async sign(asking) {
      const person = await find(asking)
      if (!person) return undefined
      const read = parameters(asking.asked.given)
      if (typeof read === 'string') return { act, wrong: read }
      return { act, subject: person.personId, parameters: { ...read }, batchNo: null }
    },
  }
}

function described(person: Person): Html {
  const { name, roles, entities } = person
  return html`<dl class="facts">
<div><dt>Person</dt><dd>${name} ${personMark(person)}</dd></div>
<div><dt>Roles</dt><dd>${roleText(roles)}</dd></div>
<div><dt>Sees</dt><dd>${entityList(entities)}</dd></div>
<div><dt>Passkeys</dt><dd>${passkeys(person)}${accounts(person)}</dd></div>
</dl>`
}

/** Why nothing is done to this person; undefined: it can be. */
function outOfReach({ revokedAt, isLocal }: Person): string | undefined {
  if (revokedAt !== null) return 'This person was revoked. An invite makes a new one.'
  return isLocal ? 'This is the person of the embedded engine, whom tokenmill start makes.' : undefined
}

const isAdminOfAll = ({ roles, entities }: Person) => roles.includes('ADMIN') && entities === null

const CHANGE = onPerson({
  act: 'person.change',
  counted: () => 'roles and entities',
  effect(person) {
    const ending = ' Without the role ADMIN for all entities, open invites that this person made end.'
    return `From the next request on, ${person.name} has exactly the roles and entities that stand below. Sessions go on.${isAdminOfAll(person) ? ending : ''}`
  },
  async inputs(asking, person) {
    const { given } = asking.asked
    return rightsInputs(isWritten(given) ? written(given) : writtenOf(person), await entitiesOf(asking))
  },
  parameters: readRights,
  options: (given, { roles }) => optionsOf(given, ['--roles', roles.join(',')], '--all-entities'),
})

const LINK = onPerson({
  act: 'person.link',
  counted: name => `a new link for ${name}`,
  not: async ({ session }, { personId }) =>
    personId === session.personId ? 'Another administrator makes a new link for you.' : undefined,
  effect: ({ name, passkeys, accounts, sessions }) =>
    `With it, ${name} makes a new passkey, which replaces ${plural(passkeys, 'passkey')}, disconnects ${plural(accounts, 'account')} at a provider and ends ${plural(sessions, 'session')}: use it when a passkey is lost or stolen. Until then all of these work. ${LASTS} An open invite for ${name} ends.`,
  inputs: async () => keyInputs(),
  parameters: given => readKey(given) ?? NO_KEY,
})

const REVOKE = onPerson({
  act: 'person.revoke',
  counted: name => name,
  not: lastAdmin,
  effect({ personId, name, passkeys, accounts, sessions }, { session }) {
    const own = personId === session.personId ? ' This is you: your session ends with it.' : ''
    return `At once ${name} signs in no more and does no act: ${plural(passkeys, 'passkey')}, ${plural(accounts, 'account')} at a provider and ${plural(sessions, 'session')} end, and open invites for ${name} and by ${name}.${own} Nobody can take this back; an invite makes a new person.`
  },
  parameters: () => ({}),
})

/** A worker knows it for certain; this only keeps the page from offering what would be refused. */
async function lastAdmin({ deps, session }: Asking, person: Person): Promise<string | undefined> {
  if (!isAdminOfAll(person) || person.fitting === 0) return undefined
  const admins = await seenPeople.countAdmins(sightOf(session.entities), deps.store, deps.site().rpId)
  return admins > 1
    ? undefined
    : 'This is the last administrator who can act here, so this person stays. Invite another one first. Where the passkey was stolen, the command has the option --last.'
}

export const peopleActRoutes = [INVITE, CHANGE, LINK, REVOKE, REVOKE_INVITE].map(actRoutes)
