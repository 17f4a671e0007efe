// Gathers the lines of a chunk of transactions in columns while they are read, so that a plain line of a file never is
// an object. The chunk can be had in both forms: in columns (columns.ts) and in rows.
import {
  isText,
  lineAt,
  TEXT_FIELDS,
  type TextField,
  type TransactionColumns,
  type TransactionLine,
  UID,
  UID_DIGITS,
} from './columns.ts'
import { TRANSACTION_FIELDS, type TransactionField } from './transaction.ts'

/** The lines of a chunk in one of their forms, as members of its request. */
export interface GatheredForms {
  rows(): { transactions: TransactionLine[] }
  /** The same lines always make the same text. Lines with a value or a field that columns can't hold are objects. */
  columns(): { columns: TransactionColumns; transactions: TransactionLine[] }
}

export interface Gathered extends GatheredForms {
  readonly count: number
  /** The uid of a line as the file gives it, '' for none; `line`: its number in the source. */
  uidOf(line: number): string
}

/** Which amounts a line lacked in its file; they stand behind the others in the object of such a line. */
export const LACKS = { fee: 1, commission: 2 } as const

/** The columns of a chunk that isn't complete yet. Values at the same place belong to the same line. */
export interface Gathering {
  readonly line: number[]
  /** The hexadecimal digits of the uids, in lower case, in ASCII, one after the other. */
  readonly uids: Buffer
  /** For each of TEXT_FIELDS its values; '' is no value. */
  readonly texts: readonly string[][]
  /** For each line a sum of LACKS. */
  readonly lacks: number[]
  /** The members of the object of a line that wasn't given as an object, in their order. */
  order: readonly TransactionField[]
  /** Adds a line as an object. */
  put(line: TransactionLine): void
  end(): Gathered
}

/** Gathers at most `size` lines. */
export function openGathering(size: number): Gathering {
  const line: number[] = []
  const uids = Buffer.allocUnsafe(size * UID_DIGITS)
  const texts: readonly string[][] = TEXT_FIELDS.map(() => [])
  const lacks: number[] = []
  /** Lines that were given as objects and are in the columns, too, by their places there. */
  const given = new Map<number, TransactionLine>()
  const others: number[] = []
  const transactions: TransactionLine[] = []
  return {
    line,
    uids,
    texts,
    lacks,
    order: TRANSACTION_FIELDS,
    put(added) {
      const { transaction } = added
      if (!fits(transaction)) {
        others.push(line.length + others.length)
        transactions.push(added)
        return
      }
      given.set(line.length, added)
      uids.write(String(transaction['transaction_uid']).replaceAll('-', ''), line.length * UID_DIGITS, 'latin1')
      for (let at = 0; at < texts.length; at += 1)
        texts[at]?.push((transaction[TEXT_FIELDS[at] as TextField] ?? '') as string)
      line.push(added.line)
      lacks.push(0)
    },
    end() {
      const columns = columnsOf(line, uids, texts, others)
      return endOf({ columns, transactions, given, lacks, order: this.order })
    },
  }
}

interface Ended {
  columns: TransactionColumns
  transactions: TransactionLine[]
  given: ReadonlyMap<number, TransactionLine>
  lacks: readonly number[]
  order: readonly TransactionField[]
}

function endOf({ columns, transactions, given, lacks, order }: Ended): Gathered {
  const { others } = columns
  const rowAt = (at: number) => given.get(at) ?? ordered(lineAt(columns, at), order, lacks[at] ?? 0)
  const count = columns.line.length + others.length
  return {
    count,
    columns: () => ({ columns, transactions }),
    rows: () => {
      const rows: TransactionLine[] = []
      for (let at = 0, other = 0; rows.length < count; ) {
        const apart = others[other] === rows.length ? transactions[other] : undefined
        rows.push(apart ?? rowAt(at))
        if (apart) other += 1
        else at += 1
      }
      return { transactions: rows }
    },
    uidOf: line => {
      const at = columns.line.indexOf(line)
      const found = at < 0 ? transactions.find(other => other.line === line) : lineAt(columns, at)
      return String(found?.transaction['transaction_uid'] ?? '')
    },
  }
}

function columnsOf(
  line: readonly number[],
  uids: Buffer,
  texts: readonly (readonly string[])[],
  others: readonly number[],
): TransactionColumns {
  const columns = TEXT_FIELDS.map((name, at) => [name, shortened(texts[at] ?? [])])
  return {
    line,
    transaction_uid: uids.toString('latin1', 0, line.length * UID_DIGITS),
    ...(Object.fromEntries(columns) as Record<TextField, readonly string[]>),
    others,
  }
}

/** One value, if the values are all the same. */
function shortened(texts: readonly string[]): readonly string[] {
  const [first] = texts
  return first !== undefined && texts.every(text => text === first) ? [first] : texts
}

/** The members in the order in which a row of a file gets them. Amounts that it lacked come last. */
function ordered({ line, transaction }: TransactionLine, order: readonly TransactionField[], lacks: number) {
  const made: Record<string, unknown> = {}
  const isLacking = (name: TransactionField) => Object.hasOwn(LACKS, name) && (lacks & LACKS[name as 'fee']) !== 0
  for (const name of order) if (transaction[name] !== undefined && !isLacking(name)) made[name] = transaction[name]
  for (const name in LACKS) if (transaction[name] !== undefined) made[name] ??= transaction[name]
  return { line, transaction: made }
}

const FIELDS: ReadonlySet<string> = new Set(TRANSACTION_FIELDS)

/** Whether columns can hold the line. */
function fits(transaction: Readonly<Record<string, unknown>>): boolean {
  for (const name in transaction) {
    const value = transaction[name]
    if (value !== undefined && (!isText(value) || value === '' || !FIELDS.has(name))) return false
  }
  const { transaction_uid: uid } = transaction
  return typeof uid === 'string' && UID.test(uid)
}
