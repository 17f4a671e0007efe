// The state of a batch as a person sees it: a glyph, the word and a colour, always together. Grey is normal; only a state
// that needs somebody has a colour.
import type { BatchState } from '../../../src/store/batch/batch-state.ts'
import { type Html, html } from '../html.ts'

/** The selector after a glyph asks for its form as text, not as a picture. */
const TEXT = '\uFE0E'

const MARKS = {
  RUNNING: { glyph: '▶', tone: 'plain' },
  OPEN: { glyph: '○', tone: 'plain' },
  PAUSED: { glyph: '⏸', tone: 'warn' },
  STALLED: { glyph: '⚠', tone: 'bad' },
  FINISHED: { glyph: '✓', tone: 'muted' },
  CANCELLED: { glyph: '✕', tone: 'muted' },
  ABANDONED: { glyph: '◌', tone: 'muted' },
  UNKNOWN: { glyph: '?', tone: 'unknown' },
} as const satisfies Record<BatchState | 'UNKNOWN', { glyph: string; tone: string }>

export type ShownState = keyof typeof MARKS

export function stateMark(state: ShownState): Html {
  const { glyph, tone } = MARKS[state]
  return html`<span class="state ${tone}"><span class="glyph" aria-hidden="true">${glyph}${TEXT}</span>${state}</span>`
}
