// Failed jobs in words.
import { FAULTS } from '../../../src/errors.ts'
import { RETRY_REFUSALS, type WhyNot } from '../../../src/queue/failed/copy.ts'
import { passesLuhn } from '../../../src/token/pan.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { count } from '../figures.ts'
import { type Html, html } from '../html.ts'

/** `41 jobs`, `1 job`. */
export function jobs(n: number): string {
  return `${count(n)} ${n === 1 ? 'job' : 'jobs'}`
}

/** Why it failed. */
export function faultText(code: string): string {
  return Object.hasOwn(FAULTS, code)
    ? FAULTS[code as keyof typeof FAULTS].text
    : 'Another release gave this code; see the documentation of that release.'
}

/** Why a copy can't be sent again, or wasn't; `its card data were removed …`. */
export function reasonText(word: string): string {
  return Object.hasOwn(RETRY_REFUSALS, word) ? RETRY_REFUSALS[word as WhyNot] : word
}

const SHORT: Record<WhyNot, string> = {
  card_data_removed: 'no: card data removed',
  expired: 'no: expired',
  client_revoked: 'no: client revoked',
}

export function sendable(whyNot: WhyNot | undefined): Html {
  if (whyNot === undefined) return html`yes`
  return html`<span class="muted" title="${reasonText(whyNot)}">${SHORT[whyNot]}</span>`
}

/** Whether a text that a sender chose could be, or hold, a card number. */
export function couldBeCard(text: string): boolean {
  return (/^\d{12,19}$/.test(text) && passesLuhn(text)) || holdsPossiblePan(text)
}

/** A text that a sender chose, unless it could be a card number. */
export function chosen(text: string): Html {
  return couldBeCard(text)
    ? html`<span class="muted">not shown: it holds digits that could be a card number</span>`
    : html`<code>${text}</code>`
}
