// Lines of transactions in columns: as the command makes them, and as simply as can be, for comparison.
import {
  TEXT_FIELDS,
  type TextField,
  type TransactionColumns,
  type TransactionLine,
  UID,
} from '../../../src/job/ledger/columns.ts'
import { openGathering } from '../../../src/job/ledger/gather.ts'
import { TRANSACTION_FIELDS } from '../../../src/job/ledger/transaction.ts'

interface InColumns {
  columns: TransactionColumns
  transactions: TransactionLine[]
}

export function inColumns(lines: readonly TransactionLine[]): InColumns {
  const gathering = openGathering(lines.length)
  for (const line of lines) gathering.put(line)
  return gathering.end().columns()
}

export function inColumnsSimply(lines: readonly TransactionLine[]): InColumns {
  const taken = lines.filter(fits)
  const texts = Object.fromEntries(TEXT_FIELDS.map(name => [name, columnOf(taken, name)]))
  const columns = {
    line: taken.map(({ line }) => line),
    transaction_uid: taken
      .map(({ transaction }) => String(transaction['transaction_uid']).replaceAll('-', ''))
      .join(''),
    ...(texts as Record<TextField, string[]>),
    others: [...lines.keys()].filter(place => !fits(lines[place] as TransactionLine)),
  }
  return { columns, transactions: lines.filter(line => !fits(line)) }
}

function fits({ transaction }: TransactionLine): boolean {
  const names: readonly string[] = TRANSACTION_FIELDS
  return (
    UID.test(String(transaction['transaction_uid'])) &&
    Object.entries(transaction).every(
      ([name, value]) => names.includes(name) && typeof value === 'string' && value.length > 0 && value.length <= 255,
    )
  )
}

function columnOf(lines: readonly TransactionLine[], name: TextField): string[] {
  const values = lines.map(({ transaction }) => String(transaction[name] ?? ''))
  return new Set(values).size === 1 ? values.slice(0, 1) : values
}
