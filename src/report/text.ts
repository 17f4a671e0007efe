// A report as plain text: fixed-width columns under their headings, amounts aligned to the right. A text that is too
// long is cut and ends in `~`; a number is never cut. Width is counted in characters, so text outside ASCII may shift
// the columns.
import type { Column, Definition } from './definition.ts'
import { cellsOf } from './entry-cells.ts'
import { instant, periodText, type Write } from './report-header.ts'

const GAP = '  '
const RECORD_WIDTH = 6

export const writeText: Write = async function* (definition, plan, head, entries) {
  const facts = [
    ['Merchant entity', head.entityId],
    ['Period', periodText(plan, head.asOf)],
    ['As of', instant(head.asOf)],
    ['Report', head.reportUid],
  ]
  yield `${definition.title.toUpperCase()}\n\n`
  yield facts.map(([name = '', value]) => `${name.padEnd(16)}${value}\n`).join('')
  yield `\n${plan.notes.join('\n')}\n\n`
  yield headings(definition)
  let any = false
  for await (const page of entries) {
    let text = ''
    for (const entry of page) {
      const { record, cells, lines } = cellsOf(entry, definition)
      any = true
      text += `${line(record, cells, definition.columns)}${lines === '' ? '' : `${GAP}${lines} lines`}`.trimEnd()
      text += entry.kind === 'line' ? '\n' : '\n\n'
    }
    if (text !== '') yield text
  }
  if (!any) yield 'There is nothing to report.\n\n'
  yield 'End of report.\n'
}

function headings({ columns }: Definition): string {
  const labels = columns.map(({ label }) => label)
  const rule = columns.map(column => '-'.repeat(widthOf(column)))
  return `${line('Record', labels, columns)}\n${['-'.repeat(RECORD_WIDTH), ...rule].join(GAP)}\n`
}

function line(record: string, cells: readonly string[], columns: readonly Column[]): string {
  return [record.padEnd(RECORD_WIDTH), ...columns.map((column, index) => padded(cells[index] ?? '', column))].join(GAP)
}

const widthOf = ({ label, width, type }: Column) => Math.max(label.length, type === 'money' ? 20 : width)

function padded(cell: string, column: Column): string {
  const width = widthOf(column)
  if (column.type === 'money' || column.type === 'count' || column.type === 'number') return cell.padStart(width)
  // A line break would begin another row.
  const signs = [...cell.replace(/\p{Cc}/gu, ' ')]
  return signs.length > width ? `${signs.slice(0, width - 1).join('')}~` : cell + ' '.repeat(width - signs.length)
}
