// `sequence`: a job takes effect on a token only if its sequence is higher than that of this client's last job that
// did. Refused jobs don't change the stored sequence.
import { isRefusal, type Refusal, refuse } from '../../src/errors.ts'
import type { Deps } from '../deps.ts'
import { type EffectDecision, noEffect, type Work } from '../work.ts'

export async function decideInSequence(
  work: Work<unknown>,
  tokenId: string,
  deps: Deps,
  decide: () => Promise<EffectDecision>,
): Promise<EffectDecision> {
  const { sequence } = work.claims
  if (sequence === undefined) return decide()
  const { clientId } = work.client
  const last = await deps.lookUps.sequence({ clientId, tokenId })
  if (last !== undefined && sequence <= last) {
    // The job with the higher sequence may have deleted the token after this one had read it.
    const isGone = (await deps.lookUps.token(tokenId))?.status === 'DELETED'
    return noEffect(isGone ? refuse('token_not_found', 'body.id') : refuse('sequence_stale', 'body.sequence'))
  }
  const decision = await decide()
  if (isRefusal(decision.answer)) return decision
  return { ...decision, effect: { ...decision.effect, sequences: [{ clientId, tokenId, sequence }] } }
}

/** The refusal of a job with a stale sequence, which must not call a provider. */
export async function staleRefusal(
  { claims, client }: Work<unknown>,
  tokenId: string,
  { lookUps }: Pick<Deps, 'lookUps'>,
): Promise<Refusal | undefined> {
  if (claims.sequence === undefined) return undefined
  const last = await lookUps.sequence({ clientId: client.clientId, tokenId })
  return last !== undefined && claims.sequence <= last ? refuse('sequence_stale', 'body.sequence') : undefined
}
