// Acts on people and invites, as pages. Whoever invites, or makes a new link, has a secret made in the own browser; the act holds
// what the store keeps of it.
import { seenOfInvite, seenOfPerson } from '../../../src/job/system/people.ts'
import * as seenPeople from '../../../src/store/console/seen-people.ts'
import { sightOf } from '../../../src/store/console/sight.ts'
import { actRoutes } from '../acts/act-routes.ts'
import type { ActSubject, Asking, ShownAct } from '../acts/subject.ts'
import { command, moment } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import {
  BAD_NAME,
  isWritten,
  keyInputs,
  NO_KEY,
  nameInput,
  readKey,
  readName,
  readRights,
  rightsInputs,
  written,
  writtenOf,
} from './form.ts'
import { inviteOf, personOf } from './found.ts'
import { entityList, inviter, PEOPLE_ACTS, passkeys, personMark, personPath, plural, roleText, sees } from './words.ts'

/** How many entities the form names. */
const ENTITIES = 50
const WHILE = 'It works once: for 24 hours, or for one hour as long as no administrator has a passkey here.'

const entitiesOf = ({ deps, session }: Asking) =>
  seenPeople.listEntities(sightOf(session.entities), deps.store, { limit: ENTITIES })

/** The rights as words of a command. */
function optionsOf(given: Asking['asked']['given'], none: string[]): string[] {
  const rights = readRights(given)
  if (typeof rights === 'string') return none
  return ['--roles', rights.roles.join(','), ...(rights.entities ?? []).flatMap(entity => ['--entity', entity])]
}

const INVITE: ActSubject = {
  route: '/people/invite',
  at: 'people',
  noun: 'a person',

  async show(asking) {
    const { session, asked } = asking
    if (session.entities !== null) return undefined
    const { given } = asked
    const known = await entitiesOf(asking)
    const command_ = command(
      'tokenmill',
      'person',
      'invite',
      readName(given) ?? 'NAME',
      ...optionsOf(given, ['--roles', 'VIEWER']),
    )
    return {
      words: PEOPLE_ACTS.invite,
      to: path`/people/invite`,
      back: { to: path`/people`, text: 'People' },
      shown: html``,
      inputs: html`${nameInput(given)}
${rightsInputs(written(given), known)}
${keyInputs()}`,
      counted: 'this person',
      effect: `Your browser makes a link, and shows it to you when a worker has written the invite. You hand it to this person, who makes a passkey with it and then has these roles and entities. ${WHILE} An open invite of the same name ends.`,
      instead: '',
      seen: null,
      fields: {},
      command: command_,
    }
  },

  async sign({ session, asked }) {
    if (session.entities !== null) return undefined
    const words = PEOPLE_ACTS.invite
    const { given } = asked
    const name = readName(given)
    const rights = readRights(given)
    const key = readKey(given)
    if (name === undefined) return { words, wrong: BAD_NAME }
    if (typeof rights === 'string') return { words, wrong: rights }
    if (key === undefined) return { words, wrong: NO_KEY }
    return { words, subject: name, parameters: { ...rights, ...key }, batchNo: null }
  },
}

type Person = seenPeople.SeenPerson

function described(person: Person): Html {
  const { name, roles, entities, isLocal } = person
  return html`<dl class="facts">
<div><dt>Person</dt><dd>${name} ${personMark(person)}</dd></div>
<div><dt>Roles</dt><dd>${roleText(roles)}</dd></div>
<div><dt>Sees</dt><dd>${entityList(entities)}</dd></div>
<div><dt>Passkeys</dt><dd>${isLocal ? 'none needed' : passkeys(person)}</dd></div>
</dl>`
}

/** Why nothing is done to this person; undefined: it can be. */
function outOfReach({ revokedAt, isLocal }: Person): string | undefined {
  if (revokedAt !== null) return 'This person was revoked. An invite makes a new one.'
  return isLocal ? 'This is the person of the embedded engine, whom tokenmill start makes.' : undefined
}

type Act = 'change' | 'link' | 'revoke'
type Particular = Pick<ShownAct, 'counted' | 'effect' | 'instead' | 'command'> & Pick<Partial<ShownAct>, 'inputs'>

function shownOf(person: Person, act: Act, particular: Particular): ShownAct {
  const { personId, name } = person
  return {
    words: PEOPLE_ACTS[act],
    to: path`/people/${personId}/${act}`,
    back: { to: personPath(person), text: name },
    shown: described(person),
    seen: seenOfPerson(person),
    fields: {},
    ...particular,
  }
}

const CHANGE: ActSubject = {
  route: '/people/:id/change',
  at: 'people',
  noun: 'roles and entities',

  async show(asking) {
    const { deps, session, asked } = asking
    const person = await personOf(deps, session, asked.params['id'])
    if (!person) return undefined
    const { given } = asked
    const { name } = person
    const own = ['--roles', person.roles.join(',')]
    const not = outOfReach(person)
    const invites = person.roles.includes('ADMIN') && person.entities === null
    const ending = invites ? ' Without the role ADMIN for all entities, open invites that this person made end.' : ''
    return shownOf(person, 'change', {
      inputs: rightsInputs(isWritten(given) ? written(given) : writtenOf(person), await entitiesOf(asking)),
      counted: 'roles and entities',
      effect:
        not === undefined
          ? `From the next request on, ${name} has exactly the roles and entities that stand below. Sessions go on.${ending}`
          : undefined,
      instead: not ?? '',
      command: command('tokenmill', 'person', 'change', name, ...optionsOf(given, own)),
    })
  },

  async sign({ deps, session, asked }) {
    const person = await personOf(deps, session, asked.params['id'])
    if (!person) return undefined
    const words = PEOPLE_ACTS.change
    const rights = readRights(asked.given)
    if (typeof rights === 'string') return { words, wrong: rights }
    return { words, subject: person.personId, parameters: { ...rights }, batchNo: null }
  },
}

const LINK: ActSubject = {
  route: '/people/:id/link',
  at: 'people',
  noun: 'a new link',

  async show({ deps, session, asked }) {
    const person = await personOf(deps, session, asked.params['id'])
    if (!person) return undefined
    const { name, personId } = person
    const isOwn = personId === session.personId
    const not = isOwn ? 'Another administrator makes a new link for you.' : outOfReach(person)
    return shownOf(person, 'link', {
      inputs: keyInputs(),
      counted: `a new link for ${name}`,
      effect:
        not === undefined
          ? `With it, ${name} makes a new passkey, which replaces ${plural(person.passkeys, 'passkey')}: use it when the others are lost or stolen. Until then those work. ${WHILE} An open invite for ${name} ends.`
          : undefined,
      instead: not ?? '',
      command: command('tokenmill', 'person', 'link', name),
    })
  },

  async sign({ deps, session, asked }) {
    const person = await personOf(deps, session, asked.params['id'])
    if (!person) return undefined
    const words = PEOPLE_ACTS.link
    const key = readKey(asked.given)
    if (key === undefined) return { words, wrong: NO_KEY }
    return { words, subject: person.personId, parameters: key, batchNo: null }
  },
}

const REVOKE: ActSubject = {
  route: '/people/:id/revoke',
  at: 'people',
  noun: 'a person',

  async show({ deps, session, asked }) {
    const person = await personOf(deps, session, asked.params['id'])
    if (!person) return undefined
    const { name, personId } = person
    const not = outOfReach(person) ?? (await lastAdmin(deps, person, session.entities))
    const own = personId === session.personId ? ' This is you: your session ends with it.' : ''
    return shownOf(person, 'revoke', {
      counted: name,
      effect:
        not === undefined
          ? `At once ${name} signs in no more and does no act: ${plural(person.passkeys, 'passkey')} and ${plural(person.sessions, 'session')} end, and open invites for ${name} and by ${name}.${own} Nobody can take this back; an invite makes a new person.`
          : undefined,
      instead: not ?? '',
      command: command('tokenmill', 'person', 'revoke', name),
    })
  },

  async sign({ deps, session, asked }) {
    const person = await personOf(deps, session, asked.params['id'])
    if (!person) return undefined
    return { words: PEOPLE_ACTS.revoke, subject: person.personId, parameters: {}, batchNo: null }
  },
}

/** A worker knows it for certain; this only keeps the page from offering what would be refused. */
async function lastAdmin(
  { store, site }: Asking['deps'],
  { roles, entities, fitting }: Person,
  seesOnly: readonly string[] | null,
): Promise<string | undefined> {
  if (!roles.includes('ADMIN') || entities !== null || fitting === 0) return undefined
  const admins = await seenPeople.countAdmins(sightOf(seesOnly), store, site().rpId)
  return admins > 1
    ? undefined
    : 'This is the last administrator who can act here, so this person stays. Invite another one first. Where the passkey was stolen, the command has the option --last.'
}

const REVOKE_INVITE: ActSubject = {
  route: '/people/invites/:id/revoke',
  at: 'people',
  noun: 'an invite',

  async show({ deps, session, asked }) {
    const invite = await inviteOf(deps, session, asked.params['id'])
    if (!invite) return undefined
    const { inviteId, name, personId, roles, entities, usedAt, expiresAt } = invite
    const rights = personId === null ? html`${roleText(roles)}, ${sees(entities)}` : html`as the person has`
    return {
      words: PEOPLE_ACTS.revokeInvite,
      to: path`/people/invites/${inviteId}/revoke`,
      back: { to: path`/people`, text: 'People' },
      shown: html`<dl class="facts">
<div><dt>Invite of</dt><dd>${name}</dd></div>
<div><dt>For</dt><dd>${personId === null ? 'a new person' : 'a new passkey'}</dd></div>
<div><dt>Rights</dt><dd>${rights}</dd></div>
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
    return { words: PEOPLE_ACTS.revokeInvite, subject: invite.inviteId, parameters: {}, batchNo: null }
  },
}

export const peopleActRoutes = [INVITE, CHANGE, LINK, REVOKE, REVOKE_INVITE].map(actRoutes)
