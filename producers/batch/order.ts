// Which chunks of a batch may be worked at the same time, so that what happens to one token keeps the order of the list. Creates
// need no order: each token's row remembers which line gave each field. Chunks of updates and actions go together if they have
// no token and no owner in common. Where what happens to a token depends on its other owners, or on other tokens' cards,
// each chunk goes alone.
import { parseReuseToken } from '../../src/token/token.ts'
import type { Touched } from '../client/window.ts'
import type { BatchOptions } from './interface.ts'

type Ordered = Pick<BatchOptions, 'kind' | 'policy'>

/** Tells the names of the tokens and owners that records may change. Undefined for a batch whose chunks need no order. */
export function touchedBy({ kind, policy = {} }: Ordered): ((requests: Iterable<object>) => Touched) | undefined {
  const { on_orphan: onOrphan = 'keep', relink = false } = policy
  if (onOrphan !== 'keep' || relink || kind === 'reference') return () => 'all'
  return kind === 'token-create' ? undefined : namesIn
}

interface Request {
  id?: unknown
  card?: unknown
  encrypted_card?: unknown
  on_file?: OwnerGiven | null
}

interface OwnerGiven {
  provider?: unknown
  provider_account?: unknown
  customer_id?: unknown
  card_id?: unknown
}

function namesIn(requests: Iterable<Request>): Touched {
  const names = new Set<string>()
  for (const { id, card, encrypted_card: encrypted, on_file: owner } of requests) {
    if (card !== undefined || encrypted !== undefined) return 'all'
    names.add(tokenName(String(id)))
    if (owner) names.add(ownerName(owner))
  }
  return names
}

/** A token may be named by its reuse token or by its UUID, in upper or lower case. */
const tokenName = (id: string) => parseReuseToken(id) ?? id.toLowerCase()

const ownerName = ({ provider, provider_account: account, customer_id: customer, card_id: card }: OwnerGiven) =>
  JSON.stringify([provider, account, customer, card])
