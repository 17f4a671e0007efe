// The tables of Installation: on a narrow screen each row becomes a few words under its first cell, each with its column's title.
import { type Html, html, type Value } from '../html.ts'

export interface Column {
  title: string
  /** Further classes of its cells, such as `figure`. `second`: on a phone they are the row's second line; one or two have it. */
  class?: string
}

/** Each row has a value for each column; the first one says what the row is. */
export function table(columns: readonly Column[], rows: readonly (readonly Value[])[]): Html {
  const head = ({ title, class: own }: Column) => html`<th scope="col" class="${own ?? ''}">${title}</th>`
  const cell = (value: Value, at: number) => {
    const { title = '', class: own = '' } = columns[at] ?? {}
    return html`<td class="${at === 0 ? `main ${own}` : own}" data-title="${at === 0 ? '' : title}">${value}</td>`
  }
  return html`<table class="listed"><thead><tr>${columns.map(head)}</tr></thead>
<tbody>${rows.map(row => html`<tr>${row.map(cell)}</tr>`)}</tbody></table>`
}

const TEXT = '\uFE0E'
const MARKS = {
  live: { glyph: '▶', tone: 'plain' },
  coming: { glyph: '○', tone: 'plain' },
  former: { glyph: '◌', tone: 'muted' },
  gone: { glyph: '✕', tone: 'muted' },
  warn: { glyph: '⚠', tone: 'warn' },
  bad: { glyph: '⚠', tone: 'bad' },
  unknown: { glyph: '?', tone: 'unknown' },
} as const

export type Mark = keyof typeof MARKS

/** A state: glyph, word and colour; only what needs somebody has a colour. */
export function mark(sort: Mark, word: string): Html {
  const { glyph, tone } = MARKS[sort]
  return html`<span class="state ${tone}"><span class="glyph" aria-hidden="true">${glyph}${TEXT}</span>${word}</span>`
}
