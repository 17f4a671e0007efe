// How a rate that is granted to an installation is divided between its processes, as values: what a process wants, what
// is due to it beside the others, what it may take of that at once, and whose silence means that it is gone. It asks no
// clock and no store.

import type { Urgency } from './provider.ts'
import type { Load } from './rate-limiter.ts'

export interface Claim {
  process: string
  /** It serves interactive kinds, and keeps more to begin with. */
  interactive: boolean
  /** Calls per second. */
  wants: Record<Urgency, number>
  /** What it may be using, calls per second. */
  holds: number
}

/** A share that isn't renewed for so long is used no more. Without the store no call could be recorded anyway. */
export const HOLD_MS = 5_000
/** And is others' to take so long after its process was last seen to have renewed it: later, as steady clocks drift. */
const SILENT_MS = 6_000

/** Of a granted rate, for all processes of a sort together: what they keep though they want nothing, to begin with at once. */
const FLOORS = { interactive: 0.03, bulk: 0.005 } as const
/** Of a granted rate: what interactive calls may take from bulk. */
const INTERACTIVE_MOST = 0.5

/** By process; together never more than `granted`. */
export function targetsOf(granted: number, claims: readonly Claim[]): Map<string, number> {
  const interactive = claims.filter(claim => claim.interactive).length
  const floors = claims.map(claim =>
    claim.interactive
      ? (granted * FLOORS.interactive) / interactive
      : (granted * FLOORS.bulk) / (claims.length - interactive),
  )
  const beyond = (index: number, wanted: number) => Math.max(0, wanted - (floors[index] ?? 0))
  const urgent = claims.map(({ wants }, index) => beyond(index, wants.interactive))
  const bulk = claims.map(({ wants }, index) => beyond(index, wants.interactive + wants.bulk) - (urgent[index] ?? 0))
  const room = granted - sum(floors)
  const first = fill(urgent, Math.min(room, granted * INTERACTIVE_MOST))
  const second = fill(bulk, room - sum(first))
  const rest = fill(
    urgent.map((need, index) => need - (first[index] ?? 0)),
    room - sum(first) - sum(second),
  )
  const parts = [floors, first, second, rest]
  return new Map(claims.map(({ process }, index) => [process, sum(parts.map(part => part[index] ?? 0))]))
}

/** Everybody gets what is needed, or else the same as all others who don't. */
function fill(needs: readonly number[], room: number): number[] {
  const filled = needs.map(() => 0)
  let left = Math.max(0, room)
  const order = needs.map((need, index) => ({ need, index })).sort((a, b) => a.need - b.need)
  for (const [at, { need, index }] of order.entries()) {
    const part = Math.min(need, left / (order.length - at))
    filled[index] = part
    left -= part
  }
  return filled
}

/** What is due to `ours`, and what may be had of that before others give back what is due from them. */
export function shareOf(granted: number, ours: Claim, others: readonly Claim[]): number {
  const target = targetsOf(granted, [...others, ours]).get(ours.process) ?? 0
  const free = granted - sum(others.map(({ holds }) => holds))
  // Downwards: what is rounded up many times is more than there is.
  return Math.floor(Math.max(0, Math.min(target, free)) * 1_000) / 1_000
}

/** A process's line about one provider, as all processes see it. */
export interface Line extends Claim {
  provider: string
  /** Counts the renewals of its process. */
  beat: number
}

export interface Renewal {
  seen: Seen
  /** Processes whose lines are to go. */
  silent: string[]
  /** All others' lines. */
  others: Line[]
  /** Ours, as they are to be written. */
  ours: Line[]
  /** What we may use from when that is written, by provider. */
  shares: ReadonlyMap<string, number>
}

/**
 * What comes of the lines that were read under the lock. `ours`: a line for each provider, holding what we use now;
 * `now`: of our own steady clock, not before the reading. Who is to get less goes on holding it in its line until it has
 * come again: nothing that is still in use is others' to take, though the answer to this be lost.
 */
export function renew(
  granted: ReadonlyMap<string, number>,
  ours: readonly Line[],
  { lines, seen: before, now }: { lines: readonly Line[]; seen: Seen; now: number },
): Renewal {
  const isOurs = ({ process }: Line) => process === ours[0]?.process
  const seen = observe(
    before,
    lines.filter(line => !isOurs(line)),
    now,
  )
  const silent = [...seen].filter(([, { since }]) => now - since >= SILENT_MS).map(([process]) => process)
  const others = lines.filter(line => !isOurs(line) && !silent.includes(line.process))
  const shares = new Map<string, number>()
  const written = ours.map(line => {
    const same = ({ provider }: Line) => provider === line.provider
    const share = shareOf(granted.get(line.provider) ?? 0, line, others.filter(same))
    shares.set(line.provider, share)
    // Without a line there was nothing to hold.
    const held = lines.some(one => isOurs(one) && same(one)) ? line.holds : 0
    return { ...line, holds: Math.max(held, share) }
  })
  return { seen, silent, others, ours: written, shares }
}

/** At which renewal each process was seen last, and since when, ms of our own steady clock: nobody's wall clock is asked. */
export type Seen = ReadonlyMap<string, { beat: number; since: number }>

function observe(seen: Seen, lines: readonly Line[], now: number): Seen {
  return new Map(
    lines.map(({ process, beat }) => {
      const before = seen.get(process)
      return [process, before?.beat === beat ? before : { beat, since: now }]
    }),
  )
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)

export interface Demand {
  wants: Record<Urgency, number>
  /** Calls started per second, of late. */
  used: Record<Urgency, number>
  started: Record<Urgency, number>
}

/** To what was used of late so much is added: what comes next may be more. */
const HEADROOM = { interactive: 1.5, bulk: 1.25 } as const
/** Seconds: bulk comes in chunks, and ends at once. */
const LATELY = { interactive: 3, bulk: 0.25 } as const
/** And what waits is to have gone in so many seconds. */
const WAIT = 0.25

export const NO_DEMAND: Demand = {
  wants: { interactive: 0, bulk: 0 },
  used: { interactive: 0, bulk: 0 },
  started: { interactive: 0, bulk: 0 },
}

/** `seconds` after `before`, above 0. */
export function demandOf(before: Demand, load: Load, seconds: number): Demand {
  const used = (urgency: Urgency) => {
    const weight = 1 - Math.exp(-seconds / LATELY[urgency])
    const now = (load.started[urgency] - before.started[urgency]) / seconds
    return before.used[urgency] + weight * (now - before.used[urgency])
  }
  const recent = { interactive: used('interactive'), bulk: used('bulk') }
  const want = (urgency: Urgency) => recent[urgency] * HEADROOM[urgency] + load.waiting[urgency] / WAIT
  return { used: recent, started: load.started, wants: { interactive: want('interactive'), bulk: want('bulk') } }
}
