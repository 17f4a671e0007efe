// A percentage of a sum, split into parts that add up to it exactly. Each running sum is rounded half away from zero,
// and a part is the growth of the running sum: each part differs from its exact value by at most one minor unit, no
// part is kept in memory, and only the order of the lines decides where odd units fall.

interface Allocation {
  /** The part that falls to the next `amount`. */
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

/** `denominator` is above zero. */
export function roundHalfAway(numerator: bigint, denominator: bigint): bigint {
  const size = numerator < 0n ? -numerator : numerator
  const rounded = (2n * size + denominator) / (2n * denominator)
  return numerator < 0n ? -rounded : rounded
}
