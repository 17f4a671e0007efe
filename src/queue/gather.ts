// Gathers items that are asked for at the same time into sets. A set begins in the same turn of the event loop or right
// after it, if fewer than `lanes` sets are under way. Items that are asked for while all lanes are taken wait for the
// next set. What a set does is unknown here.
import { settlesWithin } from './bounded-call.ts'

/** The result of an item that can't be done in its set, and is then done alone. */
export const ALONE = Symbol('alone')

interface Ways<Item, Out> {
  /**
   * Does a set. Returns one result for each item, in the same order; an `Error` rejects only the promise of its item.
   */
  together(items: readonly Item[]): Promise<readonly (Out | Error | typeof ALONE)[]>
  /** Does an item that has no company, whose set failed, or that had to leave its set. */
  alone(item: Item): Promise<Out>
}

interface Bounds<Item> {
  /** The most items of a set. */
  max: number
  /** How many sets are under way at once. */
  lanes: number
  /** How many items are done alone at once; the others wait. Default: any number. */
  loneMax?: number
  /** No set has two items with a common key. Default: any two may go together. */
  keysOf?: (item: Item) => readonly string[]
}

interface Asked<Item, Out> extends PromiseWithResolvers<Out> {
  item: Item
}

/**
 * How long a lane waits for items of its set that are done alone, in ms. Such an item may wait for a lock much longer.
 */
const LANE_MS = 100

export function gather<Item, Out>(
  { together, alone }: Ways<Item, Out>,
  { max, lanes, loneMax = Number.POSITIVE_INFINITY, keysOf }: Bounds<Item>,
): (item: Item) => Promise<Out> {
  let waiting: Asked<Item, Out>[] = []
  let busy = 0
  let lone = 0
  const loneWaiting: (() => void)[] = []
  let isScheduled = false

  function take(): Asked<Item, Out>[] {
    if (!keysOf) return waiting.splice(0, max)
    const set: Asked<Item, Out>[] = []
    const rest: Asked<Item, Out>[] = []
    const taken = new Set<string>()
    for (const asked of waiting) {
      const keys = set.length < max ? keysOf(asked.item) : []
      if (set.length === max || keys.some(key => taken.has(key))) rest.push(asked)
      else set.push(asked)
      // An item that stays behind keeps its keys, too: a later one with the same key doesn't overtake it.
      for (const key of keys) taken.add(key)
    }
    waiting = rest
    return set
  }

  async function go(set: readonly Asked<Item, Out>[]): Promise<void> {
    busy += 1
    // A single item is done alone. If `loneMax` items are being done alone, and perhaps wait for locks, it is done as a
    // set of one instead of waiting behind them.
    const outs = set.length === 1 && lone < loneMax ? [ALONE] : await doTogether(set)
    const left: Promise<Out>[] = []
    for (const [index, { item, resolve, reject }] of set.entries()) {
      const out = outs[index] as Out | Error | typeof ALONE
      if (out instanceof Error) reject(out)
      else if (out !== ALONE) resolve(out)
      else {
        const done = doAlone(item)
        left.push(done)
        done.then(resolve, reject)
      }
    }
    if (left.length > 0) await settlesWithin(LANE_MS, Promise.allSettled(left))
    busy -= 1
    schedule()
  }

  async function doAlone(item: Item): Promise<Out> {
    if (lone >= loneMax) await new Promise<void>(resolve => loneWaiting.push(resolve))
    else lone += 1
    try {
      return await alone(item)
    } finally {
      // The next waiting item takes over the place.
      const next = loneWaiting.shift()
      if (next) next()
      else lone -= 1
    }
  }

  /** If the set fails, each item is done alone, once: an item that makes sets fail spoils no other. */
  async function doTogether(set: readonly Asked<Item, Out>[]): Promise<readonly (Out | Error | typeof ALONE)[]> {
    try {
      return await together(set.map(({ item }) => item))
    } catch {
      return set.map(() => ALONE)
    }
  }

  function leave(): void {
    isScheduled = false
    while (busy < lanes && waiting.length > 0) void go(take())
  }
  /** Items that are asked for in the same turn of the event loop go together. */
  function schedule(): void {
    if (isScheduled || busy >= lanes || waiting.length === 0) return
    isScheduled = true
    setImmediate(leave)
  }

  /** The set begins after all code that awaited the same promises has run. */
  function scheduleInTurn(): void {
    isScheduled = true
    process.nextTick(leave)
  }

  return item => {
    const asked = { ...Promise.withResolvers<Out>(), item }
    waiting.push(asked)
    // Nothing is under way: the set begins before the turn ends, so that an item without company loses no time. It
    // doesn't begin at once: jobs whose former set ended together ask together for their next item.
    if (busy === 0 && !isScheduled) scheduleInTurn()
    else schedule()
    return asked.promise
  }
}
