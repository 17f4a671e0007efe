// What a verification of the audit finds. Each finding names its row or its segment.

export type Finding =
  | { found: 'changed' | 'added'; seq: number; says: string }
  | Removed
  /** The rows `seq` and `with` are in each other's place. */
  | { found: 'swapped'; seq: number; with: number; says: string }
  /**
   * The head of the audit was moved: a row says so, or the head isn't the last row. Or the store is older than its
   * segments.
   */
  | { found: 'went-back'; says: string }
  | { found: 'segment'; segment: number; says: string }

/** The rows from `seq` to `to`. */
export interface Removed {
  found: 'removed'
  seq: number
  to: number
  says: string
}

export const removed = (seq: number, to: number, where: string): Removed => ({
  found: 'removed',
  seq,
  to,
  says: seq === to ? `row ${seq} was removed${where}` : `rows ${seq} to ${to} were removed${where}`,
})

export const changed = (seq: number, how: string): Finding => ({ found: 'changed', seq, says: `row ${seq} ${how}` })

export const segmentSays = (segment: number, says: string): Finding => ({
  found: 'segment',
  segment,
  says: `segment ${segment}: ${says}`,
})

/**
 * One finding for each row and kind, because the comparison with segments finds again what the store showed. A swapped
 * row isn't told as changed, and a removed row isn't told again if a wider finding names it.
 */
export function distinct(findings: readonly Finding[]): Finding[] {
  const seen = new Set<string>()
  const covers = coversOf(findings)
  const swapped = new Set(findings.flatMap(one => (one.found === 'swapped' ? [one.seq, one.with] : [])))
  return findings.filter(one => {
    if (one.found === 'changed' && swapped.has(one.seq)) return false
    if (one.found === 'removed' && covers(one)) return false
    const key = 'seq' in one ? `${one.found} ${one.seq}` : one.says
    return !seen.has(key) && Boolean(seen.add(key))
  })
}

/** Whether another finding names these removed rows and more. It compares numbers only: a forged head may name very many. */
function coversOf(findings: readonly Finding[]): (one: Removed) => boolean {
  const spans: Removed[] = []
  const wide = findings.filter(one => one.found === 'removed').filter(one => one.to > one.seq)
  for (const span of wide.toSorted((a, b) => a.seq - b.seq || b.to - a.to))
    if (span.to > (spans.at(-1)?.to ?? 0)) spans.push(span)
  return one => {
    let low = 0
    let high = spans.length
    while (low < high) {
      const middle = (low + high) >>> 1
      if ((spans[middle]?.seq ?? 0) <= one.seq) low = middle + 1
      else high = middle
    }
    const span = spans[low - 1]
    return span !== undefined && span !== one && one.to <= span.to
  }
}
