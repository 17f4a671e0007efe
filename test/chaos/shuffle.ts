// Random orders that can be repeated: a failing test prints the seed.

/** The same items in an order that follows from `seed` (mulberry32, Fisher and Yates). */
export function shuffle<T>(items: readonly T[], seed: number): T[] {
  const shuffled = [...items]
  let state = seed >>> 0
  const draw = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
  for (let index = shuffled.length - 1; index > 0; index--) {
    const other = Math.floor(draw() * (index + 1))
    const item = shuffled[index] as T
    shuffled[index] = shuffled[other] as T
    shuffled[other] = item
  }
  return shuffled
}
