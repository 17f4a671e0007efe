// The order in which the cards of a batch go to a network: taken in turn from each account range, because issuers
// answer at their own speed and a file is usually sorted by them. It drops nothing and keeps each range's own order.

/** `items` with neighbours of one range as far apart as a round of all ranges. `rangeOf`: a card's BIN. */
export function spread<T>(items: readonly T[], rangeOf: (item: T) => string): T[] {
  const ranges = new Map<string, T[]>()
  for (const item of items) {
    const range = rangeOf(item)
    const queue = ranges.get(range)
    if (queue) queue.push(item)
    else ranges.set(range, [item])
  }
  const rounds = Math.max(0, ...[...ranges.values()].map(queue => queue.length))
  const queues = [...ranges.values()]
  // A short range is stretched over all rounds, or long ones would be left alone at the end.
  const order = Array.from({ length: rounds }, () => [] as T[])
  for (const queue of queues)
    for (const [index, item] of queue.entries()) order[Math.floor((index * rounds) / queue.length)]?.push(item)
  return order.flat()
}
