// `sequence`: a job takes effect on a token only if it is later than the last of this client that did. Refusals and
// no-ops of the rules don't move the mark.
import { isRefusal, refuse } from '../../src/errors.ts'
import * as sequences from '../../src/store/token/sequences.ts'
import type { Deps } from '../deps.ts'
import { type Decision, noEffect, type Work } from './work.ts'

export async function decideInSequence(
  work: Work<unknown>,
  tokenId: string,
  deps: Deps,
  decide: () => Promise<Decision>,
): Promise<Decision> {
  const { sequence } = work.claims
  if (sequence === undefined) return decide()
  const { clientId } = work.client
  const last = await sequences.find(deps.store, clientId, tokenId)
  if (last !== undefined && sequence <= last) return noEffect(refuse('sequence_stale', 'body.sequence'))
  const decision = await decide()
  return {
    ...decision,
    save: async db => {
      const settled = await decision.save(db)
      if (!isRefusal(settled)) await sequences.advance(db, clientId, tokenId, sequence)
      return settled
    },
  }
}
