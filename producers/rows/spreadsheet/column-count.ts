// Counts by column what no single id shows: last digits that a spreadsheet has rounded, leading zeros that it took, and ids
// that repeat though they should not. It only counts: a person decides.
import type { Row } from '../record.ts'

export interface ColumnCount {
  field: string
  /** Rows in which the field is filled. */
  filled: number
  /** Whole numbers of more digits than a spreadsheet keeps, and those of them whose further digits are all 0. */
  long: number
  rounded: number
  /** Whole numbers that are shorter than the usual length, if all are numbers and none begins with 0; else 0. */
  short: number
}

export interface FileCount {
  rows: number
  skipped: number
  /** By reason and field, such as `field_spreadsheet on_file.card_id`. */
  rejected: Record<string, number>
  /** By repair. */
  repairs: Record<string, number>
  columns: readonly ColumnCount[]
  /** Rows whose reference, or whose owner, an earlier row has. Only the first ids are compared. */
  repeated: { references: number; owners: number }
}

/** A spreadsheet keeps so many digits. */
const DIGITS_KEPT = 15
/** The most ids that are kept to find those that repeat. */
const IDS_MAX = 1_000_000

/** `fields`: those whose texts each row keeps, in that order. */
export function openFileCount(fields: readonly string[]) {
  const columns = fields.map(field => ({ field, ...openColumn() }))
  const [references, owners] = [openRepeats(), openRepeats()]
  const count = { rows: 0, skipped: 0, rejected: {} as Record<string, number>, repairs: {} as Record<string, number> }
  return {
    see({ kept = [], reference, owner, skipped, rejected, field, repairs = [] }: Row): void {
      count.rows += 1
      if (skipped !== undefined) {
        count.skipped += 1
        return
      }
      if (rejected !== undefined) add(count.rejected, field === undefined ? rejected : `${rejected} ${field}`)
      for (const repair of repairs) add(count.repairs, repair)
      for (const [index, column] of columns.entries()) column.see(kept[index]?.trim() ?? '')
      if (reference !== undefined) references.see(reference)
      if (typeof owner === 'object') owners.see(JSON.stringify(owner))
    },
    end(): FileCount {
      const repeated = { references: references.count(), owners: owners.count() }
      return { ...count, columns: columns.map(({ field, end }) => ({ field, ...end() })), repeated }
    },
  }
}

function openColumn() {
  const counts = { filled: 0, long: 0, rounded: 0 }
  let others = 0
  const lengths = new Map<number, number>()
  return {
    see(text: string): void {
      if (text === '') return
      counts.filled += 1
      if (!/^[1-9]\d*$/.test(text)) others += 1
      else lengths.set(text.length, (lengths.get(text.length) ?? 0) + 1)
      if (text.length <= DIGITS_KEPT || !/^\d+$/.test(text)) return
      counts.long += 1
      if (/^0+$/.test(text.slice(DIGITS_KEPT))) counts.rounded += 1
    },
    end: () => ({ ...counts, short: others > 0 ? 0 : shortOf(lengths, counts.filled) }),
  }
}

/** Numbers that are counted up have many lengths: a length is usual if most have it and none is longer. */
function shortOf(lengths: ReadonlyMap<number, number>, filled: number): number {
  const usual = lengths.get(Math.max(...lengths.keys())) ?? 0
  return usual * 2 > filled ? filled - usual : 0
}

function openRepeats() {
  const ids = new Set<string>()
  let repeats = 0
  return {
    see(id: string): void {
      if (ids.has(id)) repeats += 1
      else if (ids.size < IDS_MAX) ids.add(id)
    },
    count: () => repeats,
  }
}

function add(counts: Record<string, number>, name: string): void {
  counts[name] = (counts[name] ?? 0) + 1
}

/** What a person should look at, a sentence each. */
export function sentencesOf({ rows, skipped, rejected, repairs, columns, repeated }: FileCount): string[] {
  const refused = Object.values(rejected).reduce((sum, one) => sum + one, 0)
  return [
    `${rows} rows: ${rows - skipped - refused} are read, ${refused} rejected, ${skipped} skipped`,
    ...Object.entries(rejected).map(([why, n]) => `${n} rejected: ${why}`),
    ...Object.entries(repairs).map(([repair, n]) => `${n} repaired: ${repair}`),
    ...columns.flatMap(({ field, long, rounded, short }) => [
      ...(rounded * 2 > long
        ? [`${field}: ${rounded} of ${long} long numbers have only zeros after the 15th digit, as a spreadsheet rounds`]
        : []),
      ...(short > 0 ? [`${field}: numbers shorter than the others: ${short}; leading zeros may be lost`] : []),
    ]),
    ...(repeated.references > 0 ? [`rows with the reference of an earlier row: ${repeated.references}`] : []),
    ...(repeated.owners > 0 ? [`rows with the customer and card of an earlier row: ${repeated.owners}`] : []),
  ]
}
