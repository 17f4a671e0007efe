// What an administrator writes about a person: the name, the roles and the entities, and the key of the link, which the module
// invite.js makes.
import { PERSON_ROLES, type PersonRole } from '../../../src/job/system/act-row.ts'
import { isPersonName, PERSON_ENTITIES_MAX, PERSON_NAME_MAX } from '../../../src/job/system/people.ts'
import type { SeenEntity } from '../../../src/store/console/people.ts'
import * as seenPeople from '../../../src/store/console/people.ts'
import { sightOf } from '../../../src/store/sight.ts'
import type { Asked, Asking } from '../acts/subject.ts'
import { id } from '../figures.ts'
import { type Html, html } from '../html.ts'
import { when } from '../server/page.ts'
import { UUID } from './lookup.ts'

type Given = Asked['given']

export interface Rights {
  roles: PersonRole[]
  entities: string[] | null
}

/** Rights as they stand in a form, which may be incomplete. `sees`: `all`, `some`, or nothing that was chosen yet. */
export interface Written {
  roles: readonly string[]
  sees: string
  entities: string
}

const text = (given: Given, name: string) => {
  const value = given[name]
  return typeof value === 'string' ? value : ''
}

/** Whether the form was sent. */
export const isWritten = (given: Given) => 'sees' in given || PERSON_ROLES.some(role => `role_${role}` in given)

export function written(given: Given): Written {
  const roles = PERSON_ROLES.filter(role => text(given, `role_${role}`) === 'on')
  return { roles, sees: text(given, 'sees'), entities: text(given, 'entities') }
}

export function writtenOf({
  roles,
  entities,
}: {
  roles: readonly string[]
  entities: readonly string[] | null
}): Written {
  return { roles, sees: entities === null ? 'all' : 'some', entities: (entities ?? []).join('\n') }
}

/** The rights, or what is wrong with them. */
export function readRights(given: Given): Rights | string {
  const { sees, entities } = written(given)
  const roles = PERSON_ROLES.filter(role => text(given, `role_${role}`) === 'on')
  const words = entities.split(/[\s,;]+/).filter(word => word !== '')
  if (roles.length === 0) return 'Choose at least one role.'
  if (sees === 'all' && words.length > 0)
    return 'You chose all entities and named some. Remove those, or choose only these entities.'
  if (sees === 'all') return { roles, entities: null }
  if (sees !== 'some') return 'Choose which entities this person sees.'
  const ids = [...new Set(words.map(word => word.toLowerCase()))]
  if (ids.length === 0) return 'Name the entities that this person sees, one on each line.'
  if (ids.length > PERSON_ENTITIES_MAX) return `A person is limited to ${PERSON_ENTITIES_MAX} entities at most.`
  return ids.every(one => UUID.test(one))
    ? { roles, entities: ids }
    : 'An entity is a UUID. Look at those that you named.'
}

/** How many entities the form names. */
const ENTITIES = 50

export const entitiesOf = ({ deps, session }: Asking) =>
  seenPeople.listEntities(sightOf(session.entities), deps.store, { limit: ENTITIES })

/** The rights as options of a command. `none`: as long as they aren't whole. `all`: the option for all entities, if it takes one. */
export function optionsOf(given: Given, none: string[], all?: string): string[] {
  const rights = readRights(given)
  if (typeof rights === 'string') return none
  const { roles, entities } = rights
  const sees = entities?.flatMap(entity => ['--entity', entity]) ?? (all === undefined ? [] : [all])
  return ['--roles', roles.join(','), ...sees]
}

export function readName(given: Given): string | undefined {
  const name = text(given, 'name').trim()
  return isPersonName(name) ? name : undefined
}

export const BAD_NAME = `A name is 1 to ${PERSON_NAME_MAX} printable characters, and no long number.`
export const NO_KEY =
  'The secret of the link is made by a script in your browser, so that nobody here ever has it. This needs scripts, and a browser that knows Ed25519. Without: use the command below.'

/** What the store keeps of the link's secret; undefined: no script made it. */
export function readKey(given: Given): { lookup_hash: string; public_key: string } | undefined {
  const [lookup, key] = [text(given, 'lookup_hash'), text(given, 'public_key')]
  const isValue = (value: string) => /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(value)
  return isValue(lookup) && isValue(key) ? { lookup_hash: lookup, public_key: key } : undefined
}

export function nameInput(given: Given): Html {
  return html`<label for="name">Name. It is shown to all who see this page, and written into the audit.</label>
<input class="wide" id="name" name="name" value="${text(given, 'name').slice(0, PERSON_NAME_MAX)}" maxlength="${PERSON_NAME_MAX}" autocomplete="off" spellcheck="false" required>`
}

const MAY: Record<PersonRole, string> = {
  VIEWER: 'reads every page',
  OPERATOR: 'also pauses and resumes, retries',
  ADMIN: 'also cancels and discards, and, for all entities, decides about people',
}

export function rightsInputs({ roles, sees, entities }: Written, known: readonly SeenEntity[]): Html {
  const role = (name: PersonRole) => {
    const box = roles.includes(name)
      ? html`<input type="checkbox" name="role_${name}" value="on" checked>`
      : html`<input type="checkbox" name="role_${name}" value="on">`
    return html`<label class="choice">${box} <span>${name} <span class="muted">${MAY[name]}</span></span></label>`
  }
  const choice = (value: 'all' | 'some', words: string) => {
    const button =
      sees === value
        ? html`<input type="radio" name="sees" value="${value}" checked required>`
        : html`<input type="radio" name="sees" value="${value}" required>`
    return html`<label class="choice">${button} <span>${words}</span></label>`
  }
  return html`<fieldset><legend>Roles</legend>${PERSON_ROLES.map(role)}</fieldset>
<fieldset><legend>Sees</legend>${choice('all', 'All entities, and the installation itself')}${choice('some', 'Only what belongs to these entities:')}
<label class="hidden-label" for="entities">Entities, one UUID on each line</label>
<textarea class="entities" id="entities" name="entities" rows="3" spellcheck="false" placeholder="one UUID on each line">${entities}</textarea>
${when(known.length > 0, html`<details><summary>Entities with token scopes here</summary><ul class="known">${known.map(knownEntity)}</ul></details>`)}</fieldset>`
}

function knownEntity({ entityId, scopes }: SeenEntity): Html {
  return html`<li>${id(entityId)} <span class="muted">scope ${scopes.map((scope, at) => html`${at === 0 ? '' : ', '}${id(scope)}`)}</span></li>`
}

const SCRIPT = html`<script type="module" src="/invite.js"></script>`

/** Fields that the module fills, and what the page says without it. */
export function keyInputs(): Html {
  return html`<input type="hidden" name="lookup_hash" value=""><input type="hidden" name="public_key" value="">
<noscript><p class="verdict refused">${NO_KEY}</p></noscript>
${SCRIPT}`
}
