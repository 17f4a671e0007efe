// Checks whether the client may have this job done now for this entity. A refusal leaves no receipt, so the sender can
// correct the envelope and send the same jti again.
import { type Refusal, refuse } from '../../src/errors.ts'
import type { Role } from '../../src/job/catalogue.ts'
import { type Claims, ENVELOPE, lifetimeOf } from '../../src/job/envelope/envelope.ts'
import { lacks } from '../../src/job/envelope/roles.ts'
import { isSystemClient } from '../../src/job/system-clients.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Work } from '../work.ts'

/** What is judged. */
type Asked = Pick<Work<unknown>, 'claims' | 'entry' | 'client'>

export function admit(asked: Asked, holdsCard: boolean, now: number): Refusal | undefined {
  return timely(asked.claims, holdsCard, now) ?? sequenced(asked) ?? permitted(asked)
}

function timely(claims: Claims, holdsCard: boolean, now: number): Refusal | undefined {
  const { iat, exp, lifetimeMsMax } = lifetimeOf(claims, holdsCard)
  if (iat > now + ENVELOPE.aheadMsMax) return refuse('envelope_future', 'body.iat')
  if (exp <= iat || exp - iat > lifetimeMsMax) return refuse('envelope_lifetime', 'body.exp')
  if (now >= exp) return refuse('envelope_expired', 'body.exp')
  return undefined
}

function sequenced({ claims, entry }: Asked): Refusal | undefined {
  if (claims.sequence !== undefined && !entry.sequenced) return refuse('sequence_not_allowed', 'body.sequence')
  return undefined
}

/** Whether the client may ask for this at all. A repeat is asked, too: its answer tells of tokens. */
export function permitted({ claims, entry, client }: Asked): Refusal | undefined {
  const { iss } = claims
  if (isSystemClient(iss)) {
    if (!entry.systemClients.includes(iss)) return refuse('role_missing', 'body.kind')
    if (claims.client_id === undefined) return undefined
  } else if (entry.systemOnly) return refuse('role_missing', 'body.kind')
  if (!client.entities.includes(claims.entity_id)) return refuse('entity_forbidden', 'body.entity_id')
  const missing = lacks(rolesHeld(claims, client), entry, claims.request)
  return missing.length > 0 ? refuse('role_missing', 'body.roles') : undefined
}

/** The roles that count: those that the envelope claims and the client was granted. */
export function rolesHeld({ roles }: Pick<Claims, 'roles'>, client: Pick<Client, 'roles'>): Role[] {
  return roles.filter(role => client.roles.includes(role))
}

/** The client that an envelope of one entity (claim `only_entity`) acts for: every rule asks `entities`. */
export function limitedTo(entityId: string | undefined, client: Client): Client {
  if (entityId === undefined) return client
  return { ...client, entities: client.entities.filter(entity => entity === entityId) }
}
