// Checks whether the client may have this job done now for this entity. A refusal leaves no receipt, so the sender can
// correct the envelope and send the same jti again.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { Role } from '../../src/job/catalogue.ts'
import { type Claims, ENVELOPE, lifetimeOf } from '../../src/job/envelope/envelope.ts'
import { lacks } from '../../src/job/envelope/roles.ts'
import { isSystemClient } from '../../src/job/system-clients.ts'
import type { Client } from '../../src/store/access/clients.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import { tokenFor } from '../card/find-token.ts'
import type { Deps } from '../deps.ts'
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

type Limited = Pick<Work<unknown>, 'claims' | 'client'>

/** The client that an envelope of one entity (claim `only_entity`) acts for: every rule asks `entities`. */
export function limitedTo(entityId: string | undefined, client: Client): Client {
  if (entityId === undefined) return client
  return { ...client, entities: client.entities.filter(entity => entity === entityId) }
}

/** The refusal of a repeat whose stored answer tells of another entity, or whose request names what is another's. */
export async function storedAnswerRefusal(
  work: Limited,
  stored: Pick<Receipt, 'tokenId' | 'entityId'>,
  deps: Pick<Deps, 'store' | 'lookUps' | 'directory'>,
): Promise<Refusal | undefined> {
  const { only_entity: only } = work.claims
  if (only === undefined) return undefined
  const owners = await ownersOf(work, stored, deps)
  const isWithin = (owners.length > 0 ? owners : [stored.entityId]).every(owner => owner === only)
  return isWithin ? undefined : refuse('entity_forbidden', 'body.entity_id')
}

/** The entities of what the answer tells of and the request names; null: of something that isn't the client's. */
async function ownersOf(
  { claims: { request }, client }: Limited,
  { tokenId }: Pick<Receipt, 'tokenId'>,
  deps: Pick<Deps, 'store' | 'lookUps' | 'directory'>,
): Promise<(string | null)[]> {
  const { token_scope: scope, entity_id: entity, batch_id: batch, id } = request
  const owners: (string | null)[] = []
  const ofScope = async (name: string) => (await deps.directory.scope(name))?.entityId ?? null
  if (typeof scope === 'string') owners.push(await ofScope(scope))
  if (typeof entity === 'string') owners.push(entity)
  if (typeof batch === 'string') owners.push((await batches.find(deps.store, client.clientId, batch))?.entityId ?? null)
  if (tokenId !== null) {
    // A deleted token, too, whose deletion may be repeated.
    const token = await deps.lookUps.token(tokenId)
    owners.push(token ? await ofScope(token.tokenScope) : null)
  } else if (typeof id === 'string') {
    const token = await tokenFor(client, id, deps, 'body.id')
    owners.push(isRefusal(token) ? null : await ofScope(token.tokenScope))
  }
  return owners
}
