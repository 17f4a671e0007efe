// Decides whether a create makes the vault's own token, or a third party makes it under a contract. It asks no third party
// for a token.
import { type Refusal, refuse } from '../../src/errors.ts'
import { contractScopeId } from '../../src/job/envelope/ids.ts'
import type { TokenCreate } from '../../src/job/token-create.ts'
import type { Client } from '../../src/store/access/clients.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import type { Given } from '../../src/token/decide.ts'
import type { ThirdPartyName } from '../../src/token/token.ts'
import type { Deps } from '../deps.ts'
import type { Contract, MadeToken } from '../networks.ts'

type TokenRequest = Pick<TokenCreate, 'reuse_token_type' | 'reuse_token_details' | 'token_context' | 'token_type'>

/** Checks the request's members about third parties; the refusal if they are wrong. */
export function contextRefusal(
  {
    reuse_token_type: type = 'INTERNAL',
    reuse_token_details: details,
    token_context: context,
    token_type,
  }: TokenRequest,
  client: Client,
  { settings }: Pick<Deps, 'settings'>,
): Refusal | undefined {
  const entity = context?.entity_id
  if (type !== 'INTERNAL') {
    if (!settings.thirdPartyTypes.includes(type)) return refuse('field_value', 'body.reuse_token_type')
    const isPlaceless = !entity && !context?.payment_provider_contract
    const placeless = { reason: 'third_party_context', field: 'body.token_context' } as const
    if (!details)
      return { ...refuse('field_required', 'body.reuse_token_details'), ...(isPlaceless ? { also: [placeless] } : {}) }
    if (isPlaceless) return refuse(placeless.reason, placeless.field)
    if (token_type === 'ANALYTICS') return refuse('third_party_analytics', 'body.token_type')
  }
  return entity === undefined || client.entities.includes(entity)
    ? undefined
    : refuse('entity_forbidden', 'body.token_context.entity_id')
}

/**
 * The contract; undefined for the vault's own token. A refusal if the context names another entity than the scope's. The
 * caller has called `contextRefusal` before.
 */
export function contractFor(
  { reuse_token_type: type = 'INTERNAL', reuse_token_details: details, token_context: context }: TokenRequest,
  scope: Scope,
  { networks }: Pick<Deps, 'networks'>,
): Contract | undefined | Refusal {
  const { entityId } = scope
  // Token and contract must both belong to the scope's entity.
  if ((context?.entity_id ?? entityId) !== entityId) return refuse('field_conflict', 'body.token_context.entity_id')
  if (type === 'INTERNAL' || !details) return undefined
  const contract = context?.payment_provider_contract
  const found = networks.thirdParties.findContract({ type, contract, entityId })
  if (!found) return refuse('third_party_unavailable', 'body.token_context')
  return {
    type,
    provider: found.provider,
    place: contractScopeId(scope.tokenScope, found.contract),
    expiryMonth: details.expiry_month,
    expiryYear: details.expiry_year,
  }
}

/** The given fields with the contract's expiry, which overrides the card's own. */
export function withContractExpiry(contract: Contract | undefined, given: Given): Given {
  return contract ? { ...given, expiryMonth: contract.expiryMonth, expiryYear: contract.expiryYear } : given
}

/** The third party's name for a token, for a new row. */
export function nameOf({ type }: Contract, { token }: MadeToken): ThirdPartyName {
  return { type, token }
}
