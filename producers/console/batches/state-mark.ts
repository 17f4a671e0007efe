// The state of a batch, a schedule or a run as a person sees it: a glyph, the word and a colour, always together. Grey is normal; only a state
// that needs somebody has a colour.
import type { BatchState } from '../../../src/store/batch/batch-state.ts'
import type { RunState } from '../../../src/store/console/seen-runs.ts'
import { type Html, html } from '../html.ts'

/** The selector after a glyph asks for its form as text, not as a picture. */
const TEXT = '\uFE0E'
/** Drawn, because many fonts have no ⏸. */
const BARS = html`<svg viewBox="0 0 12 12" width="12" height="12" focusable="false"><path d="M2 1h3v10H2zM7 1h3v10H7z" fill="currentColor"></path></svg>`

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
} as const satisfies Record<BatchState | RunState | ScheduleWord | 'UNKNOWN', { glyph: string | Html; tone: string }>

export type ShownState = keyof typeof MARKS

export function stateMark(state: ShownState): Html {
  return mark(state, MARKS[state])
}

/** The state of anything else. `word`: in capitals. */
export function mark(word: string, { glyph, tone }: { glyph: string | Html; tone: string }): Html {
  const drawn = typeof glyph === 'string' ? `${glyph}${TEXT}` : glyph
  return html`<span class="state ${tone}"><span class="glyph" aria-hidden="true">${drawn}</span>${word}</span>`
}
