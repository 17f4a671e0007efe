// The exceptions of a pack on paper: what was decided, and what is open.
import type { Exceptions } from '../exceptions.ts'
import type { Pack } from '../pack.ts'
import { grouped, type PaperSheet } from './sheet.ts'

/** The most rows of each table: people don't read more, and the JSON and the results have them. */
const SHOWN_MAX = 200

const ROW = [
  { label: 'Batch', width: 18, size: 6.5 },
  { label: 'Line, item', width: 11, size: 7 },
  { label: 'Reference', width: 15, size: 7 },
  { label: 'Ended', width: 12, size: 7 },
  { label: 'Reason', width: 17, size: 7 },
]

export function drawExceptions(page: PaperSheet, { exceptions, batches }: Pack): void {
  const shownOf = <Cell>(cells: readonly Cell[]) => (batches.length === 1 ? cells.slice(1) : cells)
  page.title('Exceptions and decisions')
  const {
    rows,
    open,
    decided,
    by_decision: byDecision,
    listed_open: openRows,
    listed_decided: decidedRows,
  } = exceptions
  if (rows === 0) {
    page.say('There is no exception.')
    unusedOf(page, exceptions)
    return
  }
  if (byDecision.length > 0)
    page.table(
      [
        { label: 'Decision', width: 70 },
        { label: 'Rows', width: 16, number: true },
      ],
      byDecision.map(one => [one.decision, one.rows]),
    )
  if (open > 0) {
    page.say(`Open: ${grouped(open)} without a decision.`, true)
    page.table(
      shownOf(ROW),
      openRows.slice(0, SHOWN_MAX).map(row => shownOf(cellsOf(row))),
    )
    more(page, open - Math.min(openRows.length, SHOWN_MAX))
  }
  if (decided > 0) {
    page.say(`Decided: ${grouped(decided)}.`, true)
    page.table(
      shownOf([...ROW, { label: 'Decision', width: 30, size: 7 }]),
      decidedRows.slice(0, SHOWN_MAX).map(row => shownOf([...cellsOf(row), decisionOf(row)])),
    )
    more(page, decided - Math.min(decidedRows.length, SHOWN_MAX))
  }
  unusedOf(page, exceptions)
}

type Row = Exceptions['listed_open'][number]

/** The first cell is the batch; a line isn't an amount, so it is a text. */
function cellsOf({ batch_id: batch, line, item, reference, kind, reason }: Row): string[] {
  return [
    batch,
    item === null ? String(line) : `${line}, ${item}`,
    reference ?? '',
    kind === 'total' ? 'left out of the total' : kind,
    reason ?? '',
  ]
}

function decisionOf({ decision, by, on, note }: Exceptions['listed_decided'][number]): string {
  return `${decision}; ${by}, ${on}${note === undefined ? '' : `. ${note}`}`
}

function more(page: PaperSheet, n: number): void {
  if (n > 0) page.say(`${grouped(n)} more.`)
}

function unusedOf(page: PaperSheet, { unused_decisions: { count, lines } }: Exceptions): void {
  if (count === 0) return
  const named = lines.slice(0, 20).join(', ')
  page.say(`Decisions about no exception: ${grouped(count)}, in line ${named}${count > 20 ? ', …' : ''} of the file.`)
}
