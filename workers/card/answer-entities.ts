// Whether the stored answer to a repeated job stays within the entity for which its envelope acts.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Receipt } from '../../src/store/job/receipts.ts'
import type { Deps } from '../deps.ts'
import type { Work } from '../work.ts'
import { tokenFor } from './find-token.ts'

type Asking = Pick<Work<unknown>, 'claims' | 'client'>

export async function storedAnswerRefusal(
  work: Asking,
  stored: Pick<Receipt, 'tokenId' | 'entityId'>,
  deps: Pick<Deps, 'store' | 'lookUps' | 'directory' | 'networks'>,
): Promise<Refusal | undefined> {
  const { only_entity: only } = work.claims
  if (only === undefined) return undefined
  const owners = await ownersOf(work, stored, deps)
  const isWithin = (owners.length > 0 ? owners : [stored.entityId]).every(owner => owner === only)
  return isWithin ? undefined : refuse('entity_forbidden', 'body.entity_id')
}

/** The entities of what the answer tells of and the request names; null: of something that isn't the client's. */
async function ownersOf(
  { claims: { request }, client }: Asking,
  { tokenId }: Pick<Receipt, 'tokenId'>,
  deps: Pick<Deps, 'store' | 'lookUps' | 'directory' | 'networks'>,
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
