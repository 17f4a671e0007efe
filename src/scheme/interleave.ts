// The order in which the cards of a batch go to a network: one card from each account range in turn. Issuers answer at
// different speeds, and a file is usually sorted by issuer. Nothing is dropped, and each range keeps its own order.

/** Two items of one range stand as far apart as possible. `rangeOf`: a card's BIN. */
export function interleave<T>(items: readonly T[], rangeOf: (item: T) => string): T[] {
  const ranges = new Map<string, T[]>()
  for (const item of items) {
    const range = rangeOf(item)
    const queue = ranges.get(range)
    if (queue) queue.push(item)
    else ranges.set(range, [item])
  }
  const rounds = Math.max(0, ...[...ranges.values()].map(queue => queue.length))
  const queues = [...ranges.values()]
  // A short range is stretched over all rounds; else only the long ranges would be left at the end.
  const order = Array.from({ length: rounds }, () => [] as T[])
  for (const queue of queues)
    for (const [index, item] of queue.entries()) order[Math.floor((index * rounds) / queue.length)]?.push(item)
  return order.flat()
}
