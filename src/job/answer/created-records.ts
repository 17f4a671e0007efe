// The texts of records that made a token of a card: what `toResult` and `pack` (chunk-outcomes.ts) make of each, byte for
// byte, or the result's columns (created-columns.ts). The other records of the chunk stand beside them as objects.
import { REFERENCE_OUTCOMES } from '../../token/on-file.ts'
import { formatReuseToken } from '../../token/token.ts'
import { packedText, type RecordOutcome, toResult } from '../chunk-outcomes.ts'
import { OUTCOMES } from '../outcome.ts'
import { type CreatedRecords, createdColumns } from './created-columns.ts'

const CREATED = OUTCOMES.indexOf('CREATED')
const ADDED = REFERENCE_OUTCOMES.indexOf('ADDED')

/** JSON of the record's result. */
function resultAt(created: CreatedRecords, at: number): string {
  const { lines, references, isAdded } = created
  const named = references[at] === undefined ? '' : `,"reference":${JSON.stringify(references[at])}`
  const claimed = isAdded[at] ? ',"reference_outcome":"ADDED"' : ''
  return `{"line":${lines[at]},"outcome":"CREATED","code":200${named}${claimed}${created.isNamed ? cardAt(created, at) : ''}}`
}

function cardAt({ tokenIds, bins, lastFours, expiryMonths, expiryYears, brands }: CreatedRecords, at: number): string {
  const brand = brands[at] ?? null
  const branded = brand === null ? '' : `,"brand":${JSON.stringify(brand)}`
  const month = expiryMonths[at]
  const dated = month === 0 ? '' : `,"expiry_month":${month},"expiry_year":${expiryYears[at]}`
  const token = formatReuseToken(tokenIds[at] ?? '')
  return `,"reuse_token":"${token}","bin":"${bins[at]}","last_four":"${lastFours[at]}"${dated}${branded}`
}

/** JSON of the record in the form that the receipt stores. */
function packedAt({ lines, references, tokenIds, presented, isAdded }: CreatedRecords, at: number): string {
  const named = references[at] === undefined ? '0' : JSON.stringify(references[at])
  return `[${lines[at]},${CREATED},"${tokenIds[at]}",${named},null,"",${isAdded[at] ? ADDED : -1},null,"${presented[at]}"]`
}

/** The records without those of `lost`, which made no token after all. */
export function withoutLost(created: CreatedRecords, lost: readonly { line: number }[]): CreatedRecords {
  if (lost.length === 0) return created
  const gone = new Set(lost.map(({ line }) => line))
  return { ...created, byLine: created.byLine.filter(place => !gone.has(created.lines[place] ?? 0)) }
}

/** The JSON of what a result says of a chunk's records, and of all records in the form that the receipt stores. */
export interface RecordTexts {
  /** Beside `columns` only the records that aren't in the columns. */
  records: string
  columns: string | undefined
  packed: string
}

/**
 * `others`: sorted by line. `inColumns`: the result tells of the created records in columns. Each text is made as one
 * string, because a string for each record would take more than twice the time.
 */
export function textsOf(others: readonly RecordOutcome[], created: CreatedRecords, inColumns: boolean): RecordTexts {
  const { lines, byLine } = created
  const places: number[] = []
  let told = ''
  let packed = ''
  let next = 0
  const takeBefore = (line: number) => {
    for (let at = byLine[next]; at !== undefined && (lines[at] ?? 0) < line; at = byLine[next]) {
      next += 1
      packed += `,${packedAt(created, at)}`
      if (!inColumns) told += `,${resultAt(created, at)}`
    }
  }
  for (const [index, other] of others.entries()) {
    takeBefore(other.line)
    places.push(next + index)
    packed += `,${packedText(other)}`
    told += `,${JSON.stringify(toResult(other))}`
  }
  takeBefore(Number.POSITIVE_INFINITY)
  return {
    records: `[${told.slice(1)}]`,
    columns: inColumns ? JSON.stringify(createdColumns(created, places)) : undefined,
    packed: `[${packed.slice(1)}]`,
  }
}
