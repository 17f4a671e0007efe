// Says of each row of the results whether the total leaves it out. The vault and the results name rows of nested JSON in
// different ways; only this file knows both.
import { tookEffect } from '../../../src/job/outcome.ts'
import { FileError } from '../../rows/file-error.ts'
import type { ResultLine } from '../results-file.ts'
import type { TotalException } from '../total.ts'

export interface LeftOutRows {
  /** Why the total leaves the row out; undefined if it doesn't. Each batch's rows come in the order of its results. */
  reasonOf(batchId: string, row: ResultLine): string | undefined
  /** To be called after the last row. Throws a FileError if the results lack a row that the total leaves out. */
  end(): void
}

/** Rows of one batch, in the order of its results, and which of them comes next. */
interface Queue<Row> {
  rows: Row[]
  next: number
}

/** `exceptions`: as the vault names rows. */
export function leftOutOf(exceptions: readonly TotalException[]): LeftOutRows {
  const queues = queuesOf(exceptions)
  for (const { rows } of queues.values()) rows.sort((a, b) => a.line - b.line)
  return {
    reasonOf(batchId, { number, outcome }) {
      const found = takeIf(queues.get(batchId), row => row.line === number)
      if (found && !tookEffect(outcome)) throw differs(batchId)
      return found?.reason
    },
    end() {
      for (const [batchId, { rows, next }] of queues) if (next < rows.length) throw differs(batchId)
    },
  }
}

/** A row as the file of rows to leave out names it: in the same way as the results. */
export interface NamedRow {
  batch_id: string
  line: number
  item: string | null
  reason: string
}

/** `named` also holds the rows that took no effect: for these the results themselves give the reason. */
export function leftOutBy(named: readonly NamedRow[]): LeftOutRows {
  const queues = queuesOf(named)
  return {
    reasonOf(batchId, { line, item, outcome }) {
      const found = takeIf(queues.get(batchId), row => row.line === line && row.item === item)
      return tookEffect(outcome) ? found?.reason : undefined
    },
    end() {
      for (const [batchId, { rows, next }] of queues) if (next < rows.length) throw differs(batchId)
    },
  }
}

function queuesOf<Row extends { batch_id: string }>(all: readonly Row[]): Map<string, Queue<Row>> {
  const queues = new Map<string, Queue<Row>>()
  for (const row of all) {
    const queue = queues.get(row.batch_id)
    if (queue) queue.rows.push(row)
    else queues.set(row.batch_id, { rows: [row], next: 0 })
  }
  return queues
}

function takeIf<Row>(queue: Queue<Row> | undefined, isIt: (row: Row) => boolean): Row | undefined {
  const row = queue?.rows[queue.next]
  if (!queue || row === undefined || !isIt(row)) return undefined
  queue.next += 1
  return row
}

function differs(batchId: string): FileError {
  return new FileError(
    'input',
    `The total leaves out rows of the batch ${batchId} that its results don't show as rows with a token.`,
    'Put back the results as migrate wrote them. If rows that had failed were worked since, run migrate again for that file, and name the manifest that it writes (FILE.replay.manifest.json) in place of the file.',
  )
}
