// Compares the store with the networks: asks for the state of each live scheme token about once an hour, or less often
// in a large installation. The first time it also asks for other tokens of its card at the network. The store takes the
// network's state; each difference is counted and leaves an audit row.
import type { Urgency } from '../../../src/scheme/provider.ts'
import type { StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import { providerOf } from '../call-provider.ts'
import type { ProviderDeps } from '../deps.ts'
import { allSettledThenThrow, openLease } from '../lease.ts'
import { storedCard } from '../pending-card.ts'
import { noteDrift } from './drift.ts'
import { reconcileRow } from './reconcile-row.ts'

const HOUR_MS = 3_600_000
/**
 * Per run, and there is one run a minute: 30,000 rows per hour and process. A larger installation needs longer than an
 * hour.
 */
const ROWS_MAX = 500
const AT_ONCE = 8
const BULK: Urgency = 'bulk'
const REFERENCES_MAX = 50
/** After this time every job that could still use a third party's token has ended. */
const UNUSED_MS = 8 * 86_400_000

/** Compares once the rows whose last comparison is older than `olderThanMs`; returns how many. */
export async function sweep(deps: ProviderDeps, olderThanMs = HOUR_MS): Promise<number> {
  const { store, clock } = deps
  await schemeTokens.retireUntaken(store, clock() - UNUSED_MS, clock(), ROWS_MAX)
  const before = clock() - olderThanMs
  let checked = 0
  for (let some = AT_ONCE; some === AT_ONCE && checked < ROWS_MAX; checked += some) some = await checkSome(before, deps)
  return checked
}

/**
 * Leases only as many rows as are compared at the same time, because a job that needs one of them waits for the lease.
 */
async function checkSome(before: number, deps: ProviderDeps): Promise<number> {
  const lease = openLease(deps)
  try {
    const rows = await schemeTokens.takeUnchecked(deps.store, lease.id, {
      until: lease.until(),
      before,
      limit: AT_ONCE,
    })
    await allSettledThenThrow(rows.map(row => check(row, lease.id, deps)))
    return rows.length
  } finally {
    lease.end()
  }
}

async function check(row: StoredScheme, lease: string, deps: ProviderDeps): Promise<void> {
  const after = await reconcileRow(row, lease, BULK, deps, {
    onChange: (db, written) => {
      const drift = { what: written.state === row.state ? 'data' : 'state', ...written } as const
      return noteDrift(db, drift, deps)
    },
  })
  if (after && row.checkedAt === null) await searchOrphans(after, deps)
}

/** Reports tokens of the card at its network that no row has. An operator must find out who made them. */
async function searchOrphans(row: StoredScheme, deps: ProviderDeps): Promise<void> {
  const provider = providerOf(deps, row.provider)
  const [token] = await tokens.findByIds(deps.store, [row.tokenId])
  const card = token && storedCard(token, deps.ring)
  if (!provider || !card || row.reference === null || !row.current) return
  const taken = [row.reference]
  while (taken.length < REFERENCES_MAX) {
    const answer = await provider.find(row.provisionId, { card, taken }, BULK)
    if (answer.answer !== 'done' || !answer.value || taken.includes(answer.value.reference)) return
    const { reference } = answer.value
    taken.push(reference)
    const [known] = await storedSchemes.findByReferences(deps.store, row.provider, [reference])
    if (!known) await noteDrift(deps.store, { what: 'orphan', provider: row.provider, reference }, deps)
  }
}
