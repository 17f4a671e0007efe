// The texts of records that made a token of a card: what `toResult` and `pack` (chunk-outcomes.ts) make of each, byte for
// byte, or the result's columns (created-columns.ts). The other records of the chunk stand beside them as objects.
import { REFERENCE_OUTCOMES } from '../../token/on-file.ts'
import { formatReuseToken } from '../../token/token.ts'
import { packedText, type RecordOutcome, toResult } from '../chunk-outcomes.ts'
import { OUTCOMES } from '../outcome.ts'
import { createdColumns, type ToldCreated } from './created-columns.ts'

/** What an answer says of an ACTIVE vault token. */
export interface CreatedRecord extends ToldCreated {
  /** It holds nothing that JSON escapes. */
  reference: string | undefined
  tokenId: string
  /** The card as the record gave it (`presentedText`). */
  presented: string
}

/** Values of the same place belong to the same record; the lines grow. */
export interface CreatedRecords {
  records: readonly CreatedRecord[]
  /** JSON of each record's result; undefined if the result tells of them in columns. */
  results: readonly string[] | undefined
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

/** `inColumns`: the result tells of these records in columns. */
export function textsOfCreated(created: readonly CreatedRecord[], inColumns: boolean): CreatedRecords {
  const records = created.toSorted((a, b) => a.line - b.line)
  return {
    records,
    results: inColumns ? undefined : records.map(createdResult),
    packed: records.map(createdPacked),
  }
}

/** The texts without those of `lost`: records that made no token after all. */
export function withoutLost(created: CreatedRecords, lost: readonly { line: number }[]): CreatedRecords {
  if (lost.length === 0) return created
  const { records, results, packed } = created
  const gone = new Set(lost.map(({ line }) => line))
  const isKept = (_: unknown, index: number) => !gone.has(records[index]?.line ?? 0)
  return { records: records.filter(isKept), results: results?.filter(isKept), packed: packed.filter(isKept) }
}

/** The JSON of what a result says of a chunk's records, and of all records in the form that the receipt stores. */
export interface RecordTexts {
  /** Beside `columns` only the records that aren't in the columns. */
  records: string
  columns: string | undefined
  packed: string
}

/** `others`: sorted by line. */
export function textsOf(others: readonly RecordOutcome[], { records, results, packed }: CreatedRecords): RecordTexts {
  const told: string[] = []
  const allPacked: string[] = []
  const places: number[] = []
  let next = 0
  const takeBefore = (line: number) => {
    for (; next < records.length && (records[next]?.line ?? 0) < line; next += 1) {
      if (results) told.push(results[next] ?? '')
      allPacked.push(packed[next] ?? '')
    }
  }
  for (const other of others) {
    takeBefore(other.line)
    places.push(allPacked.length)
    told.push(JSON.stringify(toResult(other)))
    allPacked.push(packedText(other))
  }
  takeBefore(Number.POSITIVE_INFINITY)
  return {
    records: `[${told.join(',')}]`,
    columns: results ? undefined : JSON.stringify(createdColumns(records, reuseTokensOf(records), places)),
    packed: `[${allPacked.join(',')}]`,
  }
}

function reuseTokensOf(records: readonly CreatedRecord[]): string {
  let text = ''
  for (const { tokenId } of records) text += formatReuseToken(tokenId)
  return text
}
