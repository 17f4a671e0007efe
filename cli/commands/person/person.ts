// `tokenmill person`: invites people to the console, lists them and revokes them. The acts are in src/acts/person.ts,
// person-rights.ts and former-domain.ts; rights.ts has the commands that change people and end invites.
import { FORGET_DOMAIN, type ForgetRefusal, forgetDomain } from '../../../src/acts/former-domain.ts'
import {
  INVITE,
  type Invited,
  type InviteRefusal,
  invitePerson,
  type NewPerson,
  REVOKE,
  type RevokeRefusal,
  revokePerson,
} from '../../../src/acts/person.ts'
import { isIdentityLive, isPasskeyLive, isPersonLive } from '../../../src/acts/person-grants.ts'
import { LINK, type LinkRefusal, linkPerson } from '../../../src/acts/person-rights.ts'
import { systemClock } from '../../../src/clock.ts'
import { ConfigError } from '../../../src/config.ts'
import * as credentials from '../../../src/store/person/credentials.ts'
import type { Account } from '../../../src/store/person/identities.ts'
import * as identities from '../../../src/store/person/identities.ts'
import type { Person, PersonRole } from '../../../src/store/person/persons.ts'
import * as persons from '../../../src/store/person/persons.ts'
import type { Db } from '../../../src/store/pool.ts'
import { readRelyingParty } from '../../../src/vault/passkey/relying-party.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { type OpenedVault, openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal, table } from '../../terminal.ts'

type ActOptions = JsonOption & OperatorOptions

const NOT_INVITED: Record<InviteRefusal | LinkRefusal, string> = {
  reserved: 'This name is the one of the person who acts without a passkey on the embedded engine. Choose another.',
  other_rights:
    'A person of this name has other roles or entities. `tokenmill person change` changes them; `tokenmill person link` makes a link for a new passkey.',
  not_ours:
    'The row of this person was not written by tokenmill, or was changed since: see `tokenmill doctor`. Revoke the person, then invite again.',
  identity_taken: 'This account is connected with another person. `tokenmill person list --json` says with whom.',
  known: 'There is a person of this name.',
  revoked: 'This person was revoked; `tokenmill person invite` makes a new one.',
  own: 'Another administrator makes a new link for you.',
  key_used: 'This link was made before. Make another one.',
}

/** The state of a row without a right code. */
const NOT_OURS = 'not written by tokenmill'

const notRevoked = (refusal: RevokeRefusal, rpId: string) =>
  refusal === 'revoked'
    ? 'This person was revoked before.'
    : `Nobody else has the role ADMIN for all entities and a passkey for ${rpId}. Invite another one first, or revoke this person with --last.`

interface InviteOptions extends ActOptions {
  roles: PersonRole[]
  entity?: string[]
  issuer?: string
  subject?: string
}

export function invite(
  terminal: Terminal,
  name: string,
  { roles, entity, issuer, subject, ...options }: InviteOptions,
): Promise<void> {
  return withSession(terminal, async session => {
    const account = accountOf(issuer, subject)
    const vault = await openVault(session)
    const entities = entity ? [...new Set(entity)] : null
    showLink(terminal, options, await makeLink(terminal, vault, { name, roles, entities, account }, options))
  })
}

function accountOf(issuer: string | undefined, subject: string | undefined): Account | undefined {
  if (issuer === undefined && subject === undefined) return undefined
  if (issuer === undefined || subject === undefined) throw new Stop('--issuer and --subject are given together.')
  return { issuer, subject }
}

/** A new link for somebody who is known here: the passkey that it ends in replaces all others. */
export function link(terminal: Terminal, word: string, options: ActOptions): Promise<void> {
  return withSession(terminal, async session => {
    const vault = await openVault(session)
    const person = await findPerson(vault.store, word)
    showLink(terminal, options, await makeLinkAnew(terminal, vault, person, options))
  })
}

interface DomainOptions extends ActOptions {
  from: string
}

/** Prints a link for every administrator who has no passkey any more, and names the people for whom there is none. */
export function rpChanged(terminal: Terminal, { from, ...options }: DomainOptions): Promise<void> {
  return withSession(terminal, async session => {
    // Its default would be another domain than that of the console's host, whose passkeys then would go.
    if (!terminal.env['TOKENMILL_CONSOLE_ORIGIN'])
      throw new ConfigError('TOKENMILL_CONSOLE_ORIGIN: must be set to the new origin on this host')
    const { rpId } = readRelyingParty(terminal.env)
    const vault = await openVault(session)
    const by = await byOf({ action: FORGET_DOMAIN, subject: from }, options, vault.store, vault.ring)
    const ended = await forgetDomain({ ...vault, rpId }, from, by)
    if ('refused' in ended) throw new Stop(notForgotten(ended.refused, from, rpId))
    const { passkeys, locked } = ended.done
    say(terminal, `${passkeys} passkeys for ${from} are revoked. A link is shown this once, and works once.`)
    const admins = locked.filter(({ roles }) => roles.includes('ADMIN'))
    const { links, failure } = await makeLinks(terminal, vault, admins, options)
    const linked = new Set(links.map(({ person_id: id }) => id))
    const others = locked.filter(({ personId }) => !linked.has(personId)).map(({ name }) => name)
    print(terminal, options, { passkeys, domain: rpId, links, others }, '')
    if (others.length > 0) say(terminal, `Each of these needs a link by \`person link NAME\`: ${others.join(', ')}.`)
    if (failure !== undefined) throw failure
  })
}

/**
 * Makes links for people who have no passkey any more. Each is printed as soon as it is made, because nothing shows it again; with
 * `--json` the caller prints them. `failure`: why the first of those that failed did.
 */
async function makeLinks(
  terminal: Terminal,
  vault: OpenedVault,
  people: readonly Person[],
  options: ActOptions,
): Promise<{ links: Linked[]; failure?: unknown }> {
  const links: Linked[] = []
  let failure: unknown
  for (const person of people)
    try {
      const made = await makeLinkAnew(terminal, vault, person, options)
      links.push(made)
      const { name, expires_at: until, link: url } = made
      if (!options.json) print(terminal, options, made, `${name}   until ${until}   ${url}`)
    } catch (error) {
      failure ??= error
    }
  return { links, failure }
}

const notForgotten = (refusal: ForgetRefusal, from: string, rpId: string) =>
  refusal === 'current'
    ? `${rpId} is the domain of the console now, by TOKENMILL_CONSOLE_ORIGIN: set the new origin on this host first.`
    : `No live passkey is bound to ${from}; nothing was changed. \`person link NAME\` makes a link for a person who has no passkey.`

interface Linked {
  invite_id: string
  name: string
  roles: PersonRole[]
  entities: string[] | null
  person_id: string | null
  link: string
  expires_at: string
}

async function makeLink(
  terminal: Pick<Terminal, 'env'>,
  vault: OpenedVault,
  person: NewPerson,
  options: OperatorOptions,
): Promise<Linked> {
  const { origin, rpId } = readRelyingParty(terminal.env)
  const by = await byOf({ action: INVITE, subject: person.name }, options, vault.store, vault.ring)
  const ended = await invitePerson({ ...vault, rpId }, person, by, systemClock())
  if ('refused' in ended) throw new Stop(NOT_INVITED[ended.refused])
  return linked(person, ended.done, origin)
}

/** For somebody who is known here. */
async function makeLinkAnew(
  terminal: Pick<Terminal, 'env'>,
  vault: OpenedVault,
  person: Person,
  options: OperatorOptions,
): Promise<Linked> {
  const { origin, rpId } = readRelyingParty(terminal.env)
  const by = await byOf({ action: LINK, subject: person.personId }, options, vault.store, vault.ring)
  const ended = await linkPerson({ ...vault, rpId }, person.personId, by, systemClock())
  if ('refused' in ended) throw new Stop(NOT_INVITED[ended.refused])
  return linked(person, ended.done, origin)
}

function linked(
  { name, roles, entities }: NewPerson,
  { inviteId, secret, expiresAt, personId }: Invited,
  origin: string,
): Linked {
  const whose = { invite_id: inviteId, name, roles, entities, person_id: personId }
  return { ...whose, link: `${origin}/welcome#${secret}`, expires_at: moment(expiresAt) }
}

function showLink(terminal: Terminal, options: JsonOption, linked: Linked): void {
  print(terminal, options, linked, linked.link)
  say(terminal, `It is shown this once, works once, and ends at ${linked.expires_at}. Hand it to ${linked.name} alone.`)
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const passkeys = (await credentials.list(store)).filter(passkey => isPasskeyLive(ring, passkey))
    const accounts = (await identities.list(store)).flatMap(identity => {
      const { personId, issuer, subject, createdAt, revokedAt } = identity
      const state = isIdentityLive(ring, identity) ? 'live' : NOT_OURS
      return revokedAt === null
        ? [{ personId, shown: { issuer, subject, state, connected_at: moment(createdAt) } }]
        : []
    })
    const shown = (await persons.list(store)).map(person => {
      const own = passkeys.filter(({ personId }) => personId === person.personId)
      const used = own.flatMap(({ lastUsedAt }) => lastUsedAt ?? [])
      return {
        person_id: person.personId,
        name: person.name,
        state: person.revokedAt !== null ? 'revoked' : isPersonLive(ring, person) ? 'live' : NOT_OURS,
        roles: person.roles,
        entities: person.entities,
        passkeys: own.length,
        identities: accounts.filter(({ personId }) => personId === person.personId).map(({ shown: one }) => one),
        last_used_at: used.length === 0 ? null : moment(Math.max(...used)),
        created_at: moment(person.createdAt),
        revoked_at: person.revokedAt === null ? null : moment(person.revokedAt),
      }
    })
    const rows = shown.map(person => [
      person.person_id,
      person.name,
      person.state,
      person.roles.join(','),
      person.entities === null ? 'all' : `${person.entities.length}`,
      `${person.passkeys}`,
      countOf(person.identities),
      person.last_used_at ?? '-',
    ])
    print(
      terminal,
      options,
      shown,
      table(['PERSON', 'NAME', 'STATE', 'ROLES', 'ENTITIES', 'PASSKEYS', 'IDENTITIES', 'LAST USED'], rows),
    )
  })
}

/** Says how many of them tokenmill didn't write, if any. */
function countOf(accounts: readonly { state: string }[]): string {
  const others = accounts.filter(({ state }) => state === NOT_OURS).length
  return `${accounts.length - others}${others === 0 ? '' : `, ${others} ${NOT_OURS}`}`
}

interface RevokeOptions extends ActOptions {
  last?: boolean
}

export function revoke(
  terminal: Terminal,
  word: string,
  { last: isLast = false, ...options }: RevokeOptions,
): Promise<void> {
  return withSession(terminal, async session => {
    const { rpId } = readRelyingParty(terminal.env)
    const vault = await openVault(session)
    const { personId, name } = await findPerson(vault.store, word)
    const by = await byOf({ action: REVOKE, subject: personId }, options, vault.store, vault.ring)
    const ended = await revokePerson({ ...vault, rpId }, { personId, isLast }, by)
    if ('refused' in ended) throw new Stop(notRevoked(ended.refused, rpId))
    const { passkeys, identities: accounts, invites } = ended.done
    const told = `${name} is revoked, with ${passkeys} passkeys, ${accounts} identities and ${invites} open invites that ${name} had made`
    print(terminal, options, { person_id: personId, revoked: true, passkeys, identities: accounts, invites }, told)
  })
}

/** By id, or by the name of a person who isn't revoked. */
export async function findPerson(db: Db, word: string): Promise<Person> {
  const all = await persons.list(db)
  const found =
    all.find(({ personId }) => personId === word.toLowerCase()) ??
    all.find(({ name, revokedAt }) => name === word && revokedAt === null)
  if (!found) throw new Stop('There is no such person; `tokenmill person list` lists them.')
  return found
}
