// Whether card networks and third parties accept calls at the rate in the scheme file. Worker processes write the
// actual rate beside their shares, once a second; no network is called here.
import * as schemeRates from '../../../src/store/provider/scheme-rates.ts'
import { count, duration } from '../../../src/units.ts'
import { type Verdict, warning, well } from '../check.ts'
import type { WorkSources } from './work.ts'

type Slowed = schemeRates.SlowedRow

/** A row counts only if its process renewed it within this time; a live process does so about once a second. */
const SEEN_MS = 15_000
const SHOWN_MAX = 5

/** The words for what slows a process, worst first. */
const WORDS = {
  breaker_open: 'gives no answers or 5xx, and calls to it are held back: its circuit breaker is open',
  throttled: 'answers 429',
  failing: 'answers 5xx',
} as const satisfies Record<schemeRates.SlowedBy, string>

const NEXT = {
  breaker_open: 'look at the provider’s own status, and whether this network reaches it; calls go on by themselves',
  throttled: 'ask the provider which rate it grants; if it is less, lower ratePerSecond in the scheme file',
  failing: 'look at the provider’s own status; calls go on by themselves',
} as const satisfies Record<schemeRates.SlowedBy, string>

const CAUSES = ['breaker_open', 'throttled', 'failing'] as const

export async function askNetworks({ store, now }: Pick<WorkSources, 'store' | 'now'>): Promise<Verdict> {
  const slowed = await schemeRates.listSlowed(await store(), SEEN_MS)
  const providers = [...Map.groupBy(slowed, ({ provider }) => provider)].map(([name, rows]) => judge(name, rows, now))
  if (providers.length === 0) return well('no provider slows calls')
  const more = providers.length > SHOWN_MAX ? ` and ${count(providers.length - SHOWN_MAX, 'more', 'more')}` : ''
  const says = providers.slice(0, SHOWN_MAX).map(({ words }) => words)
  const causes = CAUSES.filter(cause => providers.some(({ by }) => by === cause))
  return warning(`${says.join('; ')}${more}`, causes.map(cause => NEXT[cause]).join('; '))
}

/** The state of the process that the provider slows most. */
function judge(name: string, rows: readonly Slowed[], now: number): { by: schemeRates.SlowedBy; words: string } {
  const by = CAUSES.find(cause => rows.some(row => row.by === cause)) ?? 'failing'
  const [slowest] = rows.toSorted((a, b) => a.rate - b.rate)
  const since = duration(Math.max(0, now - Math.min(...rows.map(row => row.since))))
  const rates = `${perSecond(slowest?.rate ?? 0)} of ${perSecond(slowest?.granted ?? 0)} calls a second now`
  return { by, words: `${name} ${WORDS[by]}: ${rates}, for ${since}` }
}

const perSecond = (rate: number) => (rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString('en'))
