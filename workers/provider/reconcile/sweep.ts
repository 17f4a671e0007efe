// Holds the store against the networks: each live scheme token is asked for about once an hour, and the first time also
// whether its card has tokens there that nobody here knows of. The store follows the network; what differed is counted
// and leaves an audit row.
import type { Urgency } from '../../../src/scheme/provider.ts'
import type { StoredScheme } from '../../../src/store/provider/scheme-row.ts'
import * as schemeTokens from '../../../src/store/provider/scheme-tokens.ts'
import * as storedSchemes from '../../../src/store/provider/stored-schemes.ts'
import * as tokens from '../../../src/store/token/tokens.ts'
import type { Deps } from '../../deps.ts'
import { providerOf } from '../call-provider.ts'
import { allThrough, openLease } from '../lease.ts'
import { storedCard } from '../pending-card.ts'
import { noteDrift } from './drift.ts'
import { drive } from './reconcile-row.ts'

const HOUR_MS = 3_600_000
/** Per run, which comes every minute: 30,000 an hour and process; more take longer to come round. */
const ROWS_MAX = 500
const AT_ONCE = 8
const BULK: Urgency = 'bulk'
const TAKEN_MAX = 50
/** Longer than any job that could still take a third party's token up. */
const UNTAKEN_MS = 8 * 86_400_000

/** Once; returns how many were held against their network. `olderThanMs`: since they last were. */
export async function sweep(deps: Deps, olderThanMs = HOUR_MS): Promise<number> {
  const { store, clock } = deps
  await schemeTokens.retireUntaken(store, clock() - UNTAKEN_MS, clock(), ROWS_MAX)
  const before = clock() - olderThanMs
  let checked = 0
  for (let some = AT_ONCE; some === AT_ONCE && checked < ROWS_MAX; checked += some) some = await checkSome(before, deps)
  return checked
}

/** No more than are asked about at once: a job that wants one of them waits for its lease. */
async function checkSome(before: number, deps: Deps): Promise<number> {
  const lease = openLease(deps)
  try {
    const rows = await schemeTokens.takeUnchecked(deps.store, lease.id, {
      until: lease.until(),
      before,
      limit: AT_ONCE,
    })
    await allThrough(rows.map(row => check(row, lease.id, deps)))
    return rows.length
  } finally {
    lease.end()
  }
}

async function check(row: StoredScheme, lease: string, deps: Deps): Promise<void> {
  const after = await drive(row, lease, BULK, deps, {
    onChange: (db, written) => {
      const drift = { what: written.state === row.state ? 'data' : 'state', ...written } as const
      return noteDrift(db, drift, deps)
    },
  })
  if (after && row.checkedAt === null) await searchOrphans(after, deps)
}

/** Tokens of that card at its network that no provisioning of ours stands for. Whose they are an operator must say. */
async function searchOrphans(row: StoredScheme, deps: Deps): Promise<void> {
  const provider = providerOf(deps, row.provider)
  const [token] = await tokens.findByIds(deps.store, [row.tokenId])
  const card = token && storedCard(token, deps.ring)
  if (!provider || !card || row.reference === null || !row.current) return
  const taken = [row.reference]
  while (taken.length < TAKEN_MAX) {
    const answer = await provider.find(row.provisionId, { card, taken }, BULK)
    if (answer.answer !== 'done' || !answer.value || taken.includes(answer.value.reference)) return
    const { reference } = answer.value
    taken.push(reference)
    const [known] = await storedSchemes.findByReferences(deps.store, row.provider, [reference])
    if (!known) await noteDrift(deps.store, { what: 'orphan', provider: row.provider, reference }, deps)
  }
}
