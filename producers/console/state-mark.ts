// The state of a batch, a schedule or a run as a person sees it: a glyph, the word and a colour, always together. Grey is normal; only a state
// that needs somebody has a colour.
import type { BatchState } from '../../src/job/choices.ts'
import type { RunState } from '../../src/store/console/runs.ts'
import { type Html, html } from './html.ts'

/** The selector after a glyph asks for its form as text, not as a picture. */
const TEXT = '\uFE0E'
/** Drawn on 12 × 12, because many fonts have no ⏸. */
const BARS = { d: 'M2 1h3v10H2zM7 1h3v10H7z' }

/** A sign, or what is drawn in place of it. */
type Glyph = string | { d: string }

/** How a schedule is, where no state of a run says it. */
type ScheduleWord = 'LATE' | 'MISSED' | 'REMOVED' | 'ON TIME'

const MARKS = {
  RUNNING: { glyph: '▶', tone: 'plain' },
  OPEN: { glyph: '○', tone: 'plain' },
  PAUSED: { glyph: BARS, tone: 'warn' },
  STALLED: { glyph: '⚠', tone: 'bad' },
  FINISHED: { glyph: '✓', tone: 'muted' },
  CANCELLED: { glyph: '✕', tone: 'muted' },
  ABANDONED: { glyph: '◌', tone: 'muted' },
  // Of a run, and of a schedule.
  DUE: { glyph: '○', tone: 'plain' },
  QUEUED: { glyph: '▶', tone: 'plain' },
  FAULTED: { glyph: '↻', tone: 'warn' },
  SUCCEEDED: { glyph: '✓', tone: 'muted' },
  FAILED: { glyph: '✕', tone: 'bad' },
  LATE: { glyph: '⚠', tone: 'bad' },
  MISSED: { glyph: '⚠', tone: 'bad' },
  REMOVED: { glyph: '◌', tone: 'muted' },
  'ON TIME': { glyph: '✓', tone: 'muted' },
  UNKNOWN: { glyph: '?', tone: 'unknown' },
} as const satisfies Record<BatchState | RunState | ScheduleWord | 'UNKNOWN', { glyph: Glyph; tone: string }>

export type ShownState = keyof typeof MARKS
export const SHOWN_STATES = Object.keys(MARKS) as ShownState[]

/** The same marks for the page that is open (`browser/live.js`), as a module. */
export const MARKS_MODULE = `export const MARKS = ${JSON.stringify(MARKS)}\nexport const TEXT = ${JSON.stringify(TEXT)}\n`

export function stateMark(state: ShownState): Html {
  return mark(state, MARKS[state])
}

/** The state of anything else. `word`: in capitals. */
export function mark(word: string, { glyph, tone }: { glyph: Glyph; tone: string }): Html {
  const drawn =
    typeof glyph === 'string'
      ? `${glyph}${TEXT}`
      : html`<svg viewBox="0 0 12 12" width="12" height="12" focusable="false"><path d="${glyph.d}" fill="currentColor"></path></svg>`
  return html`<span class="state ${tone}"><span class="glyph" aria-hidden="true">${drawn}</span>${word}</span>`
}
