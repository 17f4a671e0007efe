// Writes a report as CSV (RFC 4180, CRLF, UTF-8): a header row, then records whose first column says their type: LINE,
// GROUP (sums, after the last line of a group) and, at the end, one TOTAL per currency. Text that a spreadsheet would
// take for a formula gets an apostrophe in front; amounts never do. The rows of a page are joined into one text, since
// a report may have a million rows.
import { cellOf } from '../csv-text.ts'
import type { ColumnType } from './definition.ts'
import { cellsOf } from './entry-cells.ts'
import type { Write } from './report-header.ts'

/**
 * Only columns of type text can hold a caller's text, which needs quoting; all other cells are numbers, dates and
 * times.
 */
const IS_TEXT: Record<ColumnType, boolean> = {
  text: true,
  date: false,
  time: false,
  money: false,
  count: false,
  number: false,
}

export const writeCsv: Write = async function* (definition, _plan, _head, entries) {
  const { columns } = definition
  const texts = columns.map(({ type }) => IS_TEXT[type])
  yield `record,${columns.map(({ name }) => name).join(',')},lines\r\n`
  for await (const page of entries) {
    let text = ''
    for (const entry of page) {
      const { record, cells, lines } = cellsOf(entry, definition)
      text += record
      cells.forEach((cell, index) => {
        text += texts[index] ? `,${cellOf(cell)}` : `,${cell}`
      })
      text += `,${lines}\r\n`
    }
    if (text !== '') yield text
  }
}
