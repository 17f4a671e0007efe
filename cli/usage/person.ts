// Defines the arguments and options of `tokenmill person`. The code that runs it is loaded only when it is needed.
import { type Command, InvalidArgumentError } from 'commander'
import { isIssuer, isSubject } from '../../src/job/system/account.ts'
import { PERSON_ROLES, type PersonRole } from '../../src/job/system/act-row.ts'
import { isPersonName, PERSON_ENTITIES_MAX, PERSON_NAME_MAX } from '../../src/job/system/people.ts'
import { holdsPossiblePan } from '../../src/token/possible-pan.ts'
import { addCommand, collect, readUuid, withActor } from '../command.ts'
import type { Terminal } from '../terminal.ts'

const load = () => import('../commands/person/person.ts')
const loadIdentity = () => import('../commands/person/identity.ts')
const loadRights = () => import('../commands/person/rights.ts')

export function person(family: Command, terminal: Terminal): void {
  const invite = addCommand(family, 'invite', 'prints a link, once, by which a person enrols a passkey for the console')
    .argument('<name>', 'who it is; for a person who is known here, the new passkey replaces the former ones', readName)
    .requiredOption('--roles <a,b>', `what the person may do: ${PERSON_ROLES.join(', ')}`, readRoles)
    .option(
      '--entity <uuid>',
      'an entity whose batches the person sees; may be repeated (default: all)',
      collectEntities,
    )
  invite
    .option('--issuer <url>', 'the OpenID provider of an account by which the person may sign in, too', readIssuer)
    .option('--subject <text>', 'that account, as the claim `sub` of the provider’s ID tokens names it', readNewSubject)
  withActor(invite).action(async (name, options) => (await load()).invite(terminal, name, options))
  const link = addCommand(
    family,
    'link <person>',
    'prints a new link, once, for a person who lost all passkeys: the new one replaces them, and accounts at a provider are disconnected',
  )
  withActor(link).action(async (word, options) => (await load()).link(terminal, word, options))
  const disconnect = addCommand(
    family,
    'disconnect <person>',
    'ends the sign-in of a person, by name or id, with an account at an OpenID provider',
  )
    .requiredOption('--issuer <url>', 'the provider', readIssuer)
    .requiredOption('--subject <text>', 'the account; `person list --json` lists them', readSubject)
  withActor(disconnect).action(async (word, options) => (await loadIdentity()).disconnect(terminal, word, options))
  const change = addCommand(
    family,
    'change <person>',
    'gives a person other roles or entities, from the next request on',
  )
    .option('--roles <a,b>', `all that the person may do: ${PERSON_ROLES.join(', ')} (default: as now)`, readRoles)
    .option(
      '--entity <uuid>',
      'an entity of those that the person sees; may be repeated (default: as now)',
      collectEntities,
    )
    .option('--all-entities', 'the person sees all entities')
  withActor(change).action(async (word, options) => (await loadRights()).change(terminal, word, options))
  addCommand(family, 'invites', 'lists the invites that can still be used').action(async options =>
    (await loadRights()).invites(terminal, options),
  )
  const revokeInvite = addCommand(family, 'revoke-invite', 'ends an invite: its link works no more').argument(
    '<invite>',
    'its id, as `person invites` prints it',
    readUuid,
  )
  withActor(revokeInvite).action(async (id, options) => (await loadRights()).revokeInvite(terminal, id, options))
  const rpChanged = addCommand(
    family,
    'rp-changed',
    'after a change of the console’s domain: revokes the passkeys of the former one, and prints links for administrators',
  ).requiredOption('--from <domain>', 'the former domain, such as console.example.com')
  withActor(rpChanged).action(async options => (await load()).rpChanged(terminal, options))
  addCommand(family, 'list', 'lists people, their roles and passkeys').action(async options =>
    (await load()).list(terminal, options),
  )
  const revoke = addCommand(
    family,
    'revoke <person>',
    'revokes a person, by name or id, with all passkeys, identities and invites',
  ).option(
    '--last',
    'also the last administrator who can act, such as one whose passkey was stolen; then invite another',
  )
  withActor(revoke).action(async (word, options) => (await load()).revoke(terminal, word, options))
}

function readName(text: string): string {
  const name = text.trim()
  if (!isPersonName(name))
    throw new InvalidArgumentError(`A name is 1 to ${PERSON_NAME_MAX} printable characters, and no long number.`)
  return name
}

function readIssuer(text: string): string {
  if (!isIssuer(text)) throw new InvalidArgumentError('An issuer is a URL without query, as the provider writes it.')
  return text
}

function readSubject(text: string): string {
  if (!isSubject(text)) throw new InvalidArgumentError('A subject is 1 to 255 printable ASCII characters.')
  return text
}

/** What is connected already can be named whatever it is, so that it can be ended. */
function readNewSubject(text: string): string {
  if (holdsPossiblePan(text))
    throw new InvalidArgumentError(
      'It holds digits that could be a card number. The person connects it in the console.',
    )
  return readSubject(text)
}

function collectEntities(text: string, previous: string[] | undefined): string[] {
  const entities = collect(readUuid)(text, previous)
  if (entities.length > PERSON_ENTITIES_MAX) throw new InvalidArgumentError(`At most ${PERSON_ENTITIES_MAX}.`)
  return entities
}

function readRoles(text: string): PersonRole[] {
  const words = [...new Set(text.split(',').map(word => word.trim()))]
  if (!words.every(isRole)) throw new InvalidArgumentError(`Roles are ${PERSON_ROLES.join(', ')}.`)
  return words
}

const isRole = (word: string): word is PersonRole => (PERSON_ROLES as readonly string[]).includes(word)
