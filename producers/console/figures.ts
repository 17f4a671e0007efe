// Numbers, moments and ids in the form in which every page shows them.
import { type Html, html } from './html.ts'

const COUNT = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 })

/** 41200 → `41,200`. */
export function count(n: number): string {
  return COUNT.format(n)
}

/** `41,200 rows`, `1 row`. */
export function rows(n: number): string {
  return `${count(n)} ${n === 1 ? 'row' : 'rows'}`
}

/** A moment in UTC, to the second: `2026-11-23 19:40:31`. `ms`: since the epoch. */
export function moment(ms: number): Html {
  return html`<time datetime="${new Date(ms).toISOString()}">${momentText(ms)}</time>`
}

export function momentText(ms: number): string {
  return new Date(ms).toISOString().slice(0, 19).replace('T', ' ')
}

const SHOWN_MAX = 24
const END = 8

/** An id in monospace, shortened in the middle; its whole text is its title. */
export function id(text: string): Html {
  const isLong = text.length > SHOWN_MAX
  const shown = isLong ? `${text.slice(0, SHOWN_MAX - END - 1)}…${text.slice(-END)}` : text
  return isLong ? html`<code class="id" title="${text}">${shown}</code>` : html`<code class="id">${shown}</code>`
}

/** About how long: `12 s`, `5 min`, `3 h`, `2 d`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.ceil(seconds)} s`
  if (seconds < 90 * 60) return `${Math.round(seconds / 60)} min`
  return seconds < 36 * 3_600 ? `${Math.round(seconds / 3_600)} h` : `${Math.round(seconds / 86_400)} d`
}

/** A word of a command line: quoted for a shell unless it needs no quotes. */
export function word(text: string): string {
  return /^[\w./:@%+=,-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`
}

/** The command that does or shows the same, to be copied as a whole. */
export function command(...words: readonly string[]): Html {
  return html`<code class="command">${words.map((text, at) => (at === 0 ? word(text) : ` ${word(text)}`))}</code>`
}

const DAY_MS = 86_400_000

/** A moment on an axis of this length, in UTC: `12:03`, with seconds if it is short, with the day if it is long. */
export function spanText(ms: number, lengthMs: number): string {
  const text = momentText(ms)
  return lengthMs < 600_000 ? text.slice(11) : text.slice(lengthMs < DAY_MS / 2 ? 11 : 5, 16)
}

/** Text in which commands stand between backticks. */
export function withCommands(text: string): Html[] {
  return text
    .split('`')
    .map((words, at) => (at % 2 === 1 ? html`<code class="command">${words}</code>` : html`${words}`))
}
