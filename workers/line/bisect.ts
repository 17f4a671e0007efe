// Bisection: finds the records of a chunk that can't be worked, by trying parts of the chunk. The caller makes each
// try.

/** After more probes than this the chunk fails as a whole. */
const PROBES_MAX = 200

/**
 * The indexes below `size` of the records that fail when they are tried alone. `probe(from, to)`: whether the records
 * from `from` up to, without, `to` work. None if all parts work; undefined if too many records fail.
 */
export async function findFailing(
  size: number,
  probe: (from: number, to: number) => Promise<boolean>,
): Promise<number[] | undefined> {
  let probes = 0
  const failing: number[] = []
  const suspects: { from: number; to: number }[] = [{ from: 0, to: size }]
  for (let suspect = suspects.pop(); suspect; suspect = suspects.pop()) {
    const { from, to } = suspect
    if (to - from === 1) {
      failing.push(from)
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
  return failing.sort((a, b) => a - b)
}
