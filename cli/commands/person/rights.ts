// `tokenmill person change`, and the commands on invites: lists those that are open, and ends one. The acts are in
// src/acts/person-rights.ts.
import { isInviteLive } from '../../../src/acts/person-grants.ts'
import {
  CHANGE,
  type ChangeRefusal,
  changePerson,
  REVOKE_INVITE,
  revokeInvite as revokeOpenInvite,
} from '../../../src/acts/person-rights.ts'
import { systemClock } from '../../../src/clock.ts'
import * as openInvites from '../../../src/store/person/invites.ts'
import type { PersonRole } from '../../../src/store/person/persons.ts'
import * as persons from '../../../src/store/person/persons.ts'
import { readRelyingParty } from '../../../src/vault/passkey/relying-party.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { openVault, withSession } from '../../open/open.ts'
import { byOf, type OperatorOptions } from '../../open/operator.ts'
import { moment, print, type Terminal, table } from '../../terminal.ts'
import { findPerson } from './person.ts'

const NOT_CHANGED: Record<Exclude<ChangeRefusal, 'last_admin'>, string> = {
  revoked: 'This person was revoked; `tokenmill person invite` makes a new one.',
  reserved: 'This is the person who acts without a passkey on the embedded engine; it can not be changed.',
  not_ours:
    'The row of this person was not written by tokenmill, or was changed since: see `tokenmill doctor`. Revoke the person, then invite again.',
  unchanged: 'The person has these roles and entities already.',
}

interface ChangeOptions extends JsonOption, OperatorOptions {
  roles?: PersonRole[]
  entity?: string[]
  allEntities?: boolean
}

/** What isn't given stays as it is. */
export function change(
  terminal: Terminal,
  word: string,
  { roles, entity, allEntities = false, ...options }: ChangeOptions,
): Promise<void> {
  return withSession(terminal, async session => {
    if (entity && allEntities) throw new Stop('Give --entity or --all-entities, not both.')
    const { rpId } = readRelyingParty(terminal.env)
    const vault = await openVault(session)
    const person = await findPerson(vault.store, word)
    const { personId, name } = person
    const entities = allEntities ? null : entity ? [...new Set(entity)] : person.entities
    const rights = { personId, roles: roles ?? person.roles, entities }
    const by = await byOf({ action: CHANGE, subject: personId }, options, vault.store, vault.ring)
    const ended = await changePerson({ ...vault, rpId }, rights, by)
    if ('refused' in ended) throw new Stop(notChanged(ended.refused, rpId))
    const { invites } = ended.done
    const sees = entities === null ? 'all entities' : `${entities.length} entities`
    const ends = invites === 0 ? '' : `; ${invites} open invites that ${name} had made end`
    const text = `${name} is ${rights.roles.join(', ')} for ${sees}, from the next request on${ends}`
    print(terminal, options, { person_id: personId, name, roles: rights.roles, entities, invites }, text)
  })
}

const notChanged = (refusal: ChangeRefusal, rpId: string) =>
  refusal === 'last_admin'
    ? `Nobody else has the role ADMIN for all entities and a passkey for ${rpId}. Invite another one first.`
    : NOT_CHANGED[refusal]

/** The invites that can still be used. */
export function invites(terminal: Terminal, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const now = systemClock()
    const open = (await openInvites.list(store)).filter(invite => isInviteLive(ring, invite, now))
    // A new link gives no rights: its person has those of now.
    const people = new Map((await persons.list(store)).map(person => [person.personId, person]))
    const withRights = open.map(invite => {
      const { roles, entities } = people.get(invite.personId ?? '') ?? invite
      return { ...invite, roles, entities }
    })
    const shown = withRights.map(invite => ({
      invite_id: invite.inviteId,
      name: invite.name,
      person_id: invite.personId,
      roles: invite.roles,
      entities: invite.entities,
      invited_by: invite.invitedBy,
      expires_at: moment(invite.expiresAt),
    }))
    const rows = shown.map(invite => [
      invite.invite_id,
      invite.name,
      invite.person_id === null ? 'a new person' : 'a new passkey',
      invite.roles.join(','),
      invite.entities === null ? 'all' : `${invite.entities.length}`,
      invite.invited_by,
      invite.expires_at,
    ])
    print(terminal, options, shown, table(['INVITE', 'NAME', 'FOR', 'ROLES', 'ENTITIES', 'INVITED BY', 'UNTIL'], rows))
  })
}

export function revokeInvite(
  terminal: Terminal,
  inviteId: string,
  options: JsonOption & OperatorOptions,
): Promise<void> {
  return withSession(terminal, async session => {
    const { store, ring } = await openVault(session)
    const by = await byOf({ action: REVOKE_INVITE, subject: inviteId }, options, store, ring)
    const ended = await revokeOpenInvite({ store }, inviteId, by)
    if ('refused' in ended)
      throw new Stop(
        'There is no such invite, or it was used or revoked; `tokenmill person invites` lists the open ones.',
      )
    const { name } = ended.done
    print(terminal, options, { invite_id: inviteId, name, revoked: true }, `the invite of ${name} is revoked`)
  })
}
