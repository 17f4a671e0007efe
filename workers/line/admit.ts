// Checks whether the client may have this job done now for this entity. A refusal leaves no receipt, so the sender can
// correct the envelope and send the same jti again.
import { type Refusal, refuse } from '../../src/errors.ts'
import { CATALOGUE, isSystemClient, type Kind, type Role, SYSTEM_CLIENTS } from '../../src/job/catalogue.ts'
import { type Claims, ENVELOPE, lifetimeOf } from '../../src/job/envelope/envelope.ts'
import { lacks } from '../../src/job/envelope/roles.ts'
import type { Client } from '../../src/store/access/clients.ts'

export function admit(claims: Claims, client: Client, holdsCard: boolean, now: number): Refusal | undefined {
  return timely(claims, holdsCard, now) ?? sequenced(claims) ?? permitted(claims, client)
}

function timely(claims: Claims, holdsCard: boolean, now: number): Refusal | undefined {
  const { iat, exp, lifetimeMsMax } = lifetimeOf(claims, holdsCard)
  if (iat > now + ENVELOPE.aheadMsMax) return refuse('envelope_future', 'body.iat')
  if (exp <= iat || exp - iat > lifetimeMsMax) return refuse('envelope_lifetime', 'body.exp')
  if (now >= exp) return refuse('envelope_expired', 'body.exp')
  return undefined
}

function sequenced(claims: Claims): Refusal | undefined {
  if (claims.sequence !== undefined && !CATALOGUE[claims.kind].sequenced)
    return refuse('sequence_not_allowed', 'body.sequence')
  return undefined
}

/** Whether the client may ask for this at all. A repeat is asked, too: its answer tells of tokens. */
export function permitted(claims: Claims, client: Client): Refusal | undefined {
  const { iss, kind } = claims
  if (isSystemClient(iss)) {
    if (!(SYSTEM_CLIENTS[iss] as readonly Kind[]).includes(kind)) return refuse('role_missing', 'body.kind')
    if (claims.client_id === undefined) return undefined
  } else if (CATALOGUE[kind].systemOnly) return refuse('role_missing', 'body.kind')
  if (!client.entities.includes(claims.entity_id)) return refuse('entity_forbidden', 'body.entity_id')
  const missing = lacks(rolesHeld(claims, client), kind, claims.request)
  return missing.length > 0 ? refuse('role_missing', 'body.roles') : undefined
}

/** The roles that count: those that the envelope claims and the client was granted. */
export function rolesHeld({ roles }: Pick<Claims, 'roles'>, client: Pick<Client, 'roles'>): Role[] {
  return roles.filter(role => client.roles.includes(role))
}
