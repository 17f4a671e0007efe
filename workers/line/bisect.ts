// Which records of a chunk can't be worked, found by halves. It knows neither what a record is nor how one fails.

/** Probes beyond this and the chunk is called bad as a whole. */
const PROBES_MAX = 200

/**
 * Indexes below `size` that fail alone. `probe(from, to)` tells whether the records from `from` up to `to` work.
 * Undefined where halves work but the whole doesn't, or where too many fail.
 */
export async function findPoison(
  size: number,
  probe: (from: number, to: number) => Promise<boolean>,
): Promise<number[] | undefined> {
  let probes = 0
  const poison: number[] = []
  const suspects: { from: number; to: number }[] = [{ from: 0, to: size }]
  for (let suspect = suspects.pop(); suspect; suspect = suspects.pop()) {
    const { from, to } = suspect
    if (to - from === 1) {
      poison.push(from)
      continue
    }
    const middle = (from + to) >> 1
    for (const half of [
      { from: middle, to },
      { from, to: middle },
    ]) {
      probes += 1
      if (probes > PROBES_MAX) return undefined
      if (!(await probe(half.from, half.to))) suspects.push(half)
    }
  }
  return poison.length > 0 ? poison.sort((a, b) => a - b) : undefined
}
