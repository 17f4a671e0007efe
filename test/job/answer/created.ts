// Records that made tokens, one by one, as the columns that a worker makes of them.
import type { CreatedRecords } from '../../../src/job/answer/created-columns.ts'

export interface CreatedRecord {
  line: number
  reference: string | undefined
  tokenId: string
  bin: string
  lastFour: string
  month: number
  year: number
  brand: string | null
  presented: string
  isAdded: boolean
}

/** `records`: in any order. */
export function createdOf(records: readonly CreatedRecord[], isNamed = true): CreatedRecords {
  const tokenIds = records.map(({ tokenId }) => tokenId)
  return {
    lines: records.map(({ line }) => line),
    references: records.map(({ reference }) => reference),
    ids: Buffer.from(tokenIds.join('').replaceAll('-', ''), 'hex'),
    tokenIds,
    bins: records.map(({ bin }) => bin),
    lastFours: records.map(({ lastFour }) => lastFour),
    expiryMonths: records.map(({ month }) => month),
    expiryYears: records.map(({ year }) => year),
    brands: records.map(({ brand }) => brand),
    presented: records.map(({ presented }) => presented),
    isAdded: records.map(({ isAdded }) => isAdded),
    isNamed,
    byLine: records.map((_, at) => at).sort((a, b) => (records[a]?.line ?? 0) - (records[b]?.line ?? 0)),
  }
}
