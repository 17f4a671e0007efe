// The order in which the cards of a batch go to a network: by turns one card from each account range. Issuers answer at
// different speeds, and files are usually sorted by issuer. Every card is kept, and the cards of one range stay in
// their order.

/**
 * Returns the items in an order that spreads the items of each range evenly. `rangeOf`: the range of an item (a card's
 * BIN).
 */
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
  // The items of a short range are spread over all rounds; otherwise only the long ranges would be left at the end.
  const order = Array.from({ length: rounds }, () => [] as T[])
  for (const queue of queues)
    for (const [index, item] of queue.entries()) order[Math.floor((index * rounds) / queue.length)]?.push(item)
  return order.flat()
}
