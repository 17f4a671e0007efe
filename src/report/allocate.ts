// A percentage of a sum, split into parts that add up to it exactly. The percentage of the running sum is rounded half
// away from zero, and a part is its growth since the line before. So each part differs from its exact value by at most
// one minor unit, no part is kept in memory, and the order of the lines alone decides which lines get the odd units.

interface Allocation {
  /** The part of the line with the sum `amount`, which must be the next line. */
  next(amount: bigint): bigint
  /** The sum of all parts so far: the rounded percentage of the sum so far. */
  total(): bigint
}

/** `percent` is a decimal text: `19`, `12.5`. */
export function openAllocation(percent: string): Allocation {
  const { numerator, denominator } = ratioOf(percent)
  let sum = 0n
  let given = 0n
  return {
    next(amount) {
      sum += amount
      const before = given
      given = roundHalfAway(sum * numerator, denominator)
      return given - before
    },
    total: () => given,
  }
}

function ratioOf(percent: string): { numerator: bigint; denominator: bigint } {
  const [whole = '0', fraction = ''] = percent.split('.')
  return { numerator: BigInt(whole + fraction), denominator: 100n * 10n ** BigInt(fraction.length) }
}

/** The quotient, rounded half away from zero. `denominator` must be above zero. */
export function roundHalfAway(numerator: bigint, denominator: bigint): bigint {
  const size = numerator < 0n ? -numerator : numerator
  const rounded = (2n * size + denominator) / (2n * denominator)
  return numerator < 0n ? -rounded : rounded
}
