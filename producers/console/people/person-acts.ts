// Acts on a person who is here, as pages: other rights, a new link, and the end.
import { seenOfPerson } from '../../../src/job/system/people.ts'
import * as seenPeople from '../../../src/store/console/people.ts'
import { sightOf } from '../../../src/store/sight.ts'
import { type ActSubject, type Asking, type ShownAct, wordOf } from '../acts/subject.ts'
import { command } from '../figures.ts'
import { type Html, html, path } from '../html.ts'
import {
  entitiesOf,
  isWritten,
  keyInputs,
  NO_KEY,
  optionsOf,
  readKey,
  readRights,
  rightsInputs,
  written,
  writtenOf,
} from './form.ts'
import { personOf } from './lookup.ts'
import { accounts, entityList, LASTS, passkeys, personMark, personPath, plural, roleText } from './text.ts'

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

export const CHANGE = onPerson({
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

export const LINK = onPerson({
  act: 'person.link',
  counted: name => `a new link for ${name}`,
  not: async ({ session }, { personId }) =>
    personId === session.personId ? 'Another administrator makes a new link for you.' : undefined,
  effect: ({ name, passkeys, accounts, sessions }) =>
    `With it, ${name} makes a new passkey, which replaces ${plural(passkeys, 'passkey')}, disconnects ${plural(accounts, 'account')} at a provider and ends ${plural(sessions, 'session')}: use it when a passkey is lost or stolen. Until then all of these work. ${LASTS} An open invite for ${name} ends.`,
  inputs: async () => keyInputs(),
  parameters: given => readKey(given) ?? NO_KEY,
})

export const REVOKE = onPerson({
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
