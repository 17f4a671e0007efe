// `tokenmill person`: invites people to the console, lists them and revokes them. The acts are in src/acts/person.ts.
import { isPasskeyLive, isPersonLive } from '../../../src/acts/grants.ts'
import {
  INVITE,
  type InviteRefusal,
  invitePerson,
  REVOKE,
  type RevokeRefusal,
  revokePerson,
} from '../../../src/acts/person.ts'
import { systemClock } from '../../../src/clock.ts'
import * as credentials from '../../../src/store/person/credentials.ts'
import type { Person, PersonRole } from '../../../src/store/person/persons.ts'
import * as persons from '../../../src/store/person/persons.ts'
import type { Db } from '../../../src/store/pool.ts'
import { readRelyingParty } from '../../../src/vault/passkey/relying-party.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, say, type Terminal, table } from '../../terminal.ts'

type ActOptions = JsonOption & OperatorOptions

const NOT_INVITED: Record<InviteRefusal, string> = {
  reserved: 'This name is the one of the person who acts without a passkey on the embedded engine. Choose another.',
  other_rights:
    'A person of this name has other roles or entities. Give the same ones for a new passkey; for other ones revoke the person first.',
  not_ours:
    'The row of this person was not written by tokenmill, or was changed since: see `tokenmill doctor`. Revoke the person, then invite again.',
}

const notRevoked = (refusal: RevokeRefusal, rpId: string) =>
  refusal === 'revoked'
    ? 'This person was revoked before.'
    : `Nobody else has the role ADMIN for all entities and a passkey for ${rpId}. Invite another one first, or revoke this person with --last.`

interface InviteOptions extends ActOptions {
  roles: PersonRole[]
  entity?: string[]
}

export function invite(terminal: Terminal, name: string, { roles, entity, ...options }: InviteOptions): Promise<void> {
  return withSession(terminal, async session => {
    const { origin, rpId } = readRelyingParty(terminal.env)
    const vault = await openVault(session)
    const by = await byOf({ action: INVITE, subject: name }, options, vault.store, vault.ring)
    const entities = entity ? [...new Set(entity)] : null
    const ended = await invitePerson({ ...vault, rpId }, { name, roles, entities }, by, systemClock())
    if ('refused' in ended) throw new Stop(NOT_INVITED[ended.refused])
    const { inviteId, secret, expiresAt, personId } = ended.done
    const link = `${origin}/welcome#${secret}`
    print(
      terminal,
      options,
      { invite_id: inviteId, name, roles, entities, person_id: personId, link, expires_at: moment(expiresAt) },
      link,
    )
    say(terminal, `It is shown this once, works once, and ends at ${moment(expiresAt)}. Hand it to ${name} alone.`)
  })
}

export function list(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const passkeys = (await credentials.list(store)).filter(passkey => isPasskeyLive(ring, passkey))
    const shown = (await persons.list(store)).map(person => {
      const own = passkeys.filter(({ personId }) => personId === person.personId)
      const used = own.flatMap(({ lastUsedAt }) => lastUsedAt ?? [])
      return {
        person_id: person.personId,
        name: person.name,
        state: person.revokedAt !== null ? 'revoked' : isPersonLive(ring, person) ? 'live' : 'not written by tokenmill',
        roles: person.roles,
        entities: person.entities,
        passkeys: own.length,
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
      person.last_used_at ?? '-',
    ])
    print(
      terminal,
      options,
      shown,
      table(['PERSON', 'NAME', 'STATE', 'ROLES', 'ENTITIES', 'PASSKEYS', 'LAST USED'], rows),
    )
  })
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
    const { passkeys } = ended.done
    print(
      terminal,
      options,
      { person_id: personId, revoked: true, passkeys },
      `${name} is revoked, with ${passkeys} passkeys`,
    )
  })
}

/** By id, or by the name of a person who isn't revoked. */
async function findPerson(db: Db, word: string): Promise<Person> {
  const all = await persons.list(db)
  const found =
    all.find(({ personId }) => personId === word.toLowerCase()) ??
    all.find(({ name, revokedAt }) => name === word && revokedAt === null)
  if (!found) throw new Stop('There is no such person; `tokenmill person list` lists them.')
  return found
}
