// Measures requests one after the other: warm, and each page's first one after PostgreSQL was restarted with nothing cached.
import { writeFileSync } from 'node:fs'
import { setTimeout as pause } from 'node:timers/promises'
import { findBinaries } from '../../src/embedded/binaries.ts'
import { stop } from '../../src/embedded/cluster.ts'
import { findClusterLocation } from '../../src/embedded/cluster-location.ts'
import type { Ask } from './visitor.ts'

interface Request {
  path: string
  /** Posted. */
  form?: Record<string, string>
}

/** A route and its addresses, which are asked for in turn. */
export interface Measured {
  name: string
  own: Request[]
}

interface Took {
  name: string
  /** ms, of each request. */
  all: { ms: number; path: string }[]
  /** How many were answered neither 200 nor 303 nor, of a search, 404. */
  others: number
}

const WARM_UP = 5
const HEALED_MS_MAX = 60_000

export async function warmly(ask: Ask, asked: readonly Measured[], requests: number): Promise<Took[]> {
  const took: Took[] = []
  for (const { name, own } of asked) {
    for (let n = 0; n < Math.min(WARM_UP, own.length); n += 1) await askFor(ask, own, n)
    const one: Took = { name, all: [], others: 0 }
    for (let n = 0; n < requests; n += 1) await measure(ask, own, n, one)
    took.push(one)
  }
  return took
}

/** Each page once after each restart, in an order that moves on: a page warms the next one. */
export async function coldly(
  ask: Ask,
  asked: readonly Measured[],
  { restarts, dir }: { restarts: number; dir: string },
): Promise<Took[]> {
  const took = asked.map(({ name }): Took => ({ name, all: [], others: 0 }))
  for (let turn = 0; turn < restarts; turn += 1) {
    const location = await findClusterLocation(dir)
    await stop(location, await findBinaries(location))
    // Whoever is attached to it starts it again.
    const until = performance.now() + HEALED_MS_MAX
    while ((await ask('GET', '/sessions')).status !== 200 && performance.now() < until) await pause(200)
    dropCache()
    for (let n = 0; n < asked.length; n += 1) {
      const at = (n + Math.floor((turn * asked.length) / restarts)) % asked.length
      const [measured, one] = [asked[at], took[at]]
      if (measured && one) await measure(ask, measured.own, turn, one)
    }
  }
  return took
}

function dropCache(): void {
  try {
    writeFileSync('/proc/sys/vm/drop_caches', '3')
  } catch {
    process.stdout.write('the cache of the operating system was not dropped: that takes root\n')
  }
}

function askFor(ask: Ask, own: readonly Request[], n: number) {
  const { path, form } = own[n % own.length] ?? { path: '/' }
  return ask(form ? 'POST' : 'GET', path, form)
}

async function measure(ask: Ask, own: readonly Request[], n: number, into: Took): Promise<void> {
  const { status, ms } = await askFor(ask, own, n)
  into.all.push({ ms, path: own[n % own.length]?.path ?? '' })
  if (status !== 200 && status !== 303 && !(status === 404 && into.name.startsWith('POST'))) into.others += 1
}

/** Writes a line for each route; returns whether one is above the goal, in ms, or was refused. */
export function write(took: readonly Took[], goalMs: number): boolean {
  let failed = false
  for (const { name, all, others } of took) {
    const sorted = all.toSorted((a, b) => a.ms - b.ms)
    const at = (part: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]?.ms ?? 0
    const slowest = sorted.at(-1)
    const isBad = at(0.99) > goalMs || others > 0
    failed ||= isBad
    const shown = [0.5, 0.95, 0.99].map(part => at(part).toFixed(0).padStart(5)).join('')
    const more = isBad ? `  ${others} others; slowest ${slowest?.ms.toFixed(0)} ms: ${slowest?.path}` : ''
    process.stdout.write(`${isBad ? '✗' : '✓'} ${name.padEnd(34)}${shown}${more}\n`)
  }
  return failed
}
