// The texts of records that made a token of a card, in columns: what `toResult` and `pack` (chunk-outcomes.ts) make of each,
// byte for byte, without an object for it. The other records of the chunk stand beside them as objects.
import { REFERENCE_OUTCOMES } from '../../token/on-file.ts'
import { formatReuseToken } from '../../token/token.ts'
import { packedText, type RecordOutcome, toResult } from '../chunk-outcomes.ts'
import { OUTCOMES } from '../outcome.ts'

/** What an answer says of an ACTIVE vault token. */
export interface CreatedRecord {
  line: number
  /** It holds nothing that JSON escapes. */
  reference: string | undefined
  tokenId: string
  bin: string
  lastFour: string
  month: number
  year: number
  brand: string | null
  /** The card as the record gave it (`presentedText`). */
  presented: string
  /** Its owner got a source reference. */
  isAdded: boolean
}

/** Values of the same place belong to the same record; the lines grow. */
export interface CreatedRecords {
  lines: readonly number[]
  /** JSON of each record's result. */
  results: readonly string[]
  /** JSON of each record in the form that the receipt stores. */
  packed: readonly string[]
}

const CREATED = OUTCOMES.indexOf('CREATED')
const ADDED = REFERENCE_OUTCOMES.indexOf('ADDED')

export function createdResult(record: CreatedRecord): string {
  const { line, reference, tokenId, bin, lastFour, month, year, brand, isAdded } = record
  const named = reference === undefined ? '' : `"reference":"${reference}",`
  const branded = brand === null ? '' : `,"brand":${JSON.stringify(brand)}`
  const claimed = isAdded ? '"reference_outcome":"ADDED",' : ''
  return `{"line":${line},"outcome":"CREATED","code":200,${named}${claimed}"reuse_token":"${formatReuseToken(tokenId)}","bin":"${bin}","last_four":"${lastFour}","expiry_month":${month},"expiry_year":${year}${branded}}`
}

export function createdPacked({ line, reference, tokenId, presented, isAdded }: CreatedRecord): string {
  const named = reference === undefined ? '0' : `"${reference}"`
  return `[${line},${CREATED},"${tokenId}",${named},null,"",${isAdded ? ADDED : -1},null,"${presented}"]`
}

export function textsOfCreated(created: readonly CreatedRecord[]): CreatedRecords {
  const sorted = created.toSorted((a, b) => a.line - b.line)
  return {
    lines: sorted.map(({ line }) => line),
    results: sorted.map(createdResult),
    packed: sorted.map(createdPacked),
  }
}

/** The texts without those of `lost`: records that made no token after all. */
export function withoutLost(records: CreatedRecords, lost: readonly { line: number }[]): CreatedRecords {
  if (lost.length === 0) return records
  const { lines, results, packed } = records
  const gone = new Set(lost.map(({ line }) => line))
  const isKept = (_: unknown, index: number) => !gone.has(lines[index] ?? 0)
  return { lines: lines.filter(isKept), results: results.filter(isKept), packed: packed.filter(isKept) }
}

/** The JSON of all results, and of all records in the form that the receipt stores. `others`: sorted by line. */
export function textsOf(
  others: readonly RecordOutcome[],
  { lines, results, packed }: CreatedRecords,
): { results: string; packed: string } {
  const allResults: string[] = []
  const allPacked: string[] = []
  let next = 0
  const takeBefore = (line: number) => {
    for (; next < lines.length && (lines[next] ?? 0) < line; next += 1) {
      allResults.push(results[next] ?? '')
      allPacked.push(packed[next] ?? '')
    }
  }
  for (const other of others) {
    takeBefore(other.line)
    allResults.push(JSON.stringify(toResult(other)))
    allPacked.push(packedText(other))
  }
  takeBefore(Number.POSITIVE_INFINITY)
  return { results: `[${allResults.join(',')}]`, packed: `[${allPacked.join(',')}]` }
}
