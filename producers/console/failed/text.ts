// Failed jobs in words.
import { FAULTS } from '../../../src/errors.ts'
import { RETRY_REFUSALS, type RetryRefusal, type WhyNot } from '../../../src/queue/failed/copy.ts'
import { passesLuhn } from '../../../src/token/pan.ts'
import { holdsPossiblePan } from '../../../src/token/possible-pan.ts'
import { count } from '../figures.ts'
import { type Html, html } from '../html.ts'

/** What an act on several is done to. */
export const MANY = { noun: 'failed jobs' } as const

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

/** Why a copy can't be sent again: `its card data were removed …`. */
export function reasonText(word: WhyNot): string {
  return RETRY_REFUSALS[word]
}

const BECAUSE: Record<RetryRefusal, string> = {
  card_data_removed: 'the card data were removed after 15 minutes; submit again',
  expired: 'no worker starts an envelope that has expired; submit again',
  client_revoked: 'the client is revoked',
  gone: 'somebody else retried or discarded the copy',
  in_work: 'the worker that gave it up still had the job; try again in a minute',
}

/** `7 jobs, because the card data were removed …`. */
export function notDone(n: number, word: string): string {
  return `${jobs(n)}, because ${Object.hasOwn(BECAUSE, word) ? BECAUSE[word as RetryRefusal] : word}`
}

const SHORT: Record<WhyNot, string> = {
  card_data_removed: 'no, card data removed',
  expired: 'no, expired',
  client_revoked: 'no, client revoked',
}

export function sendable(whyNot: WhyNot | undefined): Html {
  if (whyNot === undefined) return html`yes`
  return html`<span class="muted" title="${reasonText(whyNot)}">${SHORT[whyNot]}</span>`
}

/** Whether the text could be, or hold, a card number. */
export function couldBeCard(text: string): boolean {
  return (/^\d{12,19}$/.test(text) && passesLuhn(text)) || holdsPossiblePan(text)
}

/** A text that a sender chose, unless it could be a card number. */
export function chosen(text: string): Html {
  return couldBeCard(text)
    ? html`<span class="muted">not shown: it holds digits that could be a card number</span>`
    : html`<code>${text}</code>`
}
