// The cards of a chunk whose tokens third parties make. The third parties are called, in recorded steps per card,
// before the chunk is decided; an interrupted chunk continues where it stopped.
import * as references from '../../src/store/reference/source-references.ts'
import { findByCards } from '../card/by-card.ts'
import type { Deps } from '../deps.ts'
import type { ContractCard, ThirdPartyResult } from '../networks.ts'
import type { ChunkContext } from './chunk.ts'
import { ownersOf } from './claims.ts'
import { cardsOf } from './create/creates.ts'
import { fold, type PreparedCreate, type ProvisionedCards } from './fold.ts'
import { openOlderClaims } from './older-claims.ts'
import { isNewest } from './source-times.ts'

/** Calls the third parties. Throws `Postponed` if a third party must be waited for. */
export async function provisionCards(
  prepared: readonly PreparedCreate[],
  context: ChunkContext,
  mayHaveReceipt: boolean,
  deps: Deps,
): Promise<ProvisionedCards> {
  const theirs = prepared.filter(({ contract }) => contract)
  if (theirs.length === 0) return new Map()
  const { work } = context
  const stored = await findByCards(deps.store, cardsOf(theirs))
  // No call is made for a record that the rules refuse. For a card, only the record that makes the token causes a call.
  const owners = isNewest(work.request) ? ownersOf(theirs) : []
  const known = await references.findByOwners(deps.store, owners)
  const older = await openOlderClaims(theirs, { stored, known }, context, deps)
  const { folded, outcomes } = fold(theirs, stored, context, { older })
  const making = new Set(outcomes.filter(({ outcome }) => outcome === 'CREATED').map(({ line }) => line))
  const asked = new Map<string, ContractCard>()
  for (const { key, contract, line, field, facts, pan } of theirs) {
    const made = folded.get(key)
    if (contract && made && making.has(line) && !asked.has(key))
      asked.set(key, { line, field, contract, facts, pan, row: made.row })
  }
  const job = { receiptId: work.receiptId, clientId: work.client.clientId, mayHaveReceipt }
  const ends = await deps.networks.thirdParties.make(job, [...asked.values()], 'bulk', deps)
  const provisioned = new Map<string, ThirdPartyResult>()
  for (const [key, { line }] of asked) {
    const end = ends.get(line)
    if (end !== undefined) provisioned.set(key, end)
  }
  return provisioned
}
