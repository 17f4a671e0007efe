// Makes a create ready for the rules of fold.ts, from its card in clear.
import { isRefusal } from '../../../src/errors.ts'
import type { RecordOutcome } from '../../../src/job/chunk-outcomes.ts'
import { presentedText } from '../../../src/job/presented-card.ts'
import type { CreateRecord } from '../../../src/job/token-batch.ts'
import type { Scope } from '../../../src/store/access/scopes.ts'
import type { CardInput } from '../../../src/token/card.ts'
import type { Claim } from '../../../src/token/on-file.ts'
import type { Giver } from '../../../src/token/token.ts'
import { keyOf } from '../../card/by-card.ts'
import { factsOf } from '../../card/card-facts.ts'
import { withContractExpiry } from '../../card/contract.ts'
import type { Deps } from '../../deps.ts'
import type { Contract } from '../../networks.ts'
import { fieldsOf, givenOf } from '../../token-create.ts'
import { type PreparedCreate, rejected } from '../fold.ts'
import type { CardField } from './records.ts'

/** A create, and what is known of it before its card is. */
interface Asked {
  line: number
  reference: string | undefined
  request: Pick<CreateRecord, 'card_brand' | 'token_type' | 'token_expiry_date'>
  scope: Scope
  contract: Contract | undefined
  claim: Claim | undefined
  giver: Giver
  /** The batch may link a token to this card. */
  relinks: boolean
}

/** The create with its card, or its refusal. `field`: the one that a refusal of the card names. */
export function preparedOf(
  { line, reference, request, scope, contract, claim, giver, relinks }: Asked,
  card: CardInput,
  field: CardField,
  deps: Pick<Deps, 'ring' | 'directory' | 'settings'>,
): PreparedCreate | RecordOutcome {
  // A token that is linked to this card may be one for analytics.
  const withAnalytics = relinks || (request.token_type !== undefined && request.token_type !== 'REUSE')
  const options = { scope, cardBrand: request.card_brand, withAnalytics, field, place: contract?.place }
  const facts = factsOf(card, options, deps)
  if (isRefusal(facts)) return rejected({ line, reference }, facts)
  const given = withContractExpiry(contract, { ...givenOf(card), ...fieldsOf(request) })
  const key = keyOf(facts.fingerprints)
  // The expiry date of `card`, not that of `given`: `withContractExpiry` may have changed the latter.
  const presented = presentedText(card, facts.fingerprints)
  return { line, reference, field, scope, pan: card.pan, facts, given, key, contract, claim, giver, presented }
}
