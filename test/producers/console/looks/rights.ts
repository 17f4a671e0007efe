// Who and what may do something: people, an invite, an account at an OpenID provider, clients, networks and a wall display.
import { randomBytes, randomUUID } from 'node:crypto'
import { addDisplay, revokeDisplay } from '../../../../src/acts/display.ts'
import { OURS, type Person, THEIRS } from '../bundle.ts'
import type { OpenIdBundle } from '../openid/bundle.ts'

/** Ids that the paths of pages hold. */
export interface RightsPages {
  person: string
  invite: string
  client: string
  identity: string
  /** The values of the links of displays: of all entities, of some, and of one that was revoked. */
  displays: { all: string; some: string; revoked: string }
}

/** `person`: who looks at the pages. */
export async function fillRights(
  bundle: OpenIdBundle,
  person: Pick<Person, 'personId' | 'sessionHash'>,
): Promise<RightsPages> {
  const { rows, installation } = bundle
  const { personId } = await bundle.addPerson(`Olga ${'Long-Name '.repeat(4).trim()}`, {
    roles: ['OPERATOR'],
    entities: [OURS, THEIRS],
  })
  await bundle.addPerson('without a passkey', { roles: ['VIEWER', 'OPERATOR', 'ADMIN'] })
  await rows(
    `insert into tokenmill.person_credential (credential_id, person_id, public_jwk, alg, rp_id, sign_count)
values ('passkey-of-olga', $1, '{}', 'ES256', 'localhost', 0), ('former-of-olga', $1, '{}', 'ES256', 'old.example.com', 0)`,
    [personId],
  )
  await rows(`insert into tokenmill.audit (actor, action, subject) values ($1, 'batch.pause', 'winter')`, [
    `person:${personId}`,
  ])
  const gone = await bundle.addPerson('gone', { roles: ['VIEWER'] })
  await rows('update tokenmill.person set revoked_at = now() where person_id = $1', [gone.personId])
  const [invite] = await rows<{ id: string }>(
    `insert into tokenmill.invite (invite_id, lookup_hash, public_key, name, roles, entities, invited_by, expires_at)
values (gen_random_uuid(), $1, $1, 'nora', '{OPERATOR}', $2, $3, now() + interval '3 hours') returning invite_id as id`,
    [randomBytes(32), [THEIRS], `person:${person.personId}`],
  )
  // Somebody who is connecting one more account.
  await rows(
    `insert into tokenmill.openid_flow (state_hash, browser_hash, nonce, verifier, purpose, session_hash, destination, subject, used_at, expires_at)
values ($1, $1, 'n', 'v', 'connect', $2, '/passkeys', $3, now(), now() + interval '10 minutes')`,
    [randomBytes(32), person.sessionHash, `auth0|${'4f'.repeat(20)}`],
  )
  await addSetUp(bundle)
  return {
    person: personId,
    invite: invite?.id ?? '',
    client: installation.credentials.signingKey.clientId,
    identity: await bundle.bind(person, randomUUID()),
    displays: await addDisplays(bundle),
  }
}

async function addDisplays({ installation }: Pick<OpenIdBundle, 'installation'>): Promise<RightsPages['displays']> {
  const { store } = installation.vault
  const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
  const add = async (name: string, entities: string[] | null) => {
    const added = await addDisplay(store, { name, entities }, by)
    if ('refused' in added) throw new Error(added.refused)
    return added.done
  }
  const [all, some, revoked] = [await add('room 2', null), await add('room 3', [OURS]), await add('room 4', null)]
  await revokeDisplay(store, { displayId: revoked.displayId, name: 'room 4' }, by)
  return { all: all.value, some: some.value, revoked: revoked.value }
}

/** What the page Installation tells of: clients, keys whose time has come, a capture key, and a network that slows calls. */
async function addSetUp({ rows }: Pick<OpenIdBundle, 'rows'>): Promise<void> {
  await rows(
    `insert into tokenmill.client (client_id, name, user_id, entities, roles)
values ('c' || repeat('0', 24) || '1', 'shop-of-a-long-name-in-the-north', gen_random_uuid(), $1, '{TOKEN_WRITE,TOKEN_READ,TOKEN_LIFECYCLE}')`,
    [[OURS, THEIRS]],
  )
  await rows(
    `insert into tokenmill.capture_key (alias, entity_id, type, public_key, wrapped_private, private_version) values ('capture-2026', $1, 'jwe-ec', '', 'x', 1)`,
    [OURS],
  )
  await rows(`update tokenmill.data_key set activated_at = now() - interval '340 days' where purpose = 'seal'`)
  await rows(`update tokenmill.data_key set compromised_at = now() where purpose = 'webhook'`)
}
