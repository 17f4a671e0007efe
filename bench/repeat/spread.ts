// The figures of several runs: their median, the lowest and the highest, and how they are printed.

export interface Spread {
  median: number
  lowest: number
  highest: number
}

/** Undefined without figures. */
export function spreadOf(figures: readonly number[]): Spread | undefined {
  const sorted = figures.toSorted((a, b) => a - b)
  const [lowest, highest] = [sorted[0], sorted.at(-1)]
  if (lowest === undefined || highest === undefined) return undefined
  const middle = (sorted.length - 1) / 2
  const median = ((sorted[Math.floor(middle)] ?? lowest) + (sorted[Math.ceil(middle)] ?? lowest)) / 2
  return { median, lowest, highest }
}

/** The median, and the others in parentheses if they differ. */
export function textOf(spread: Spread | undefined, digits: number): string {
  if (!spread) return ''
  const [median, lowest, highest] = [spread.median, spread.lowest, spread.highest].map(one => one.toFixed(digits))
  return lowest === highest ? `${median}` : `${median} (${lowest} to ${highest})`
}
