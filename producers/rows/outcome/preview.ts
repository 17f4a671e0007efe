// The first cards of a file as they were read, for a person to check before anything takes effect: a wrong form of
// expiry can't be noticed elsewhere. Only the last four digits of a card number are shown.
import { z } from 'zod'
import { digitsOf } from '../../../src/token/pan.ts'
import { couldLookLikeCard } from '../../../src/token/pan-lookalike.ts'
import { jsonOf } from '../column-record.ts'
import type { Row } from '../record.ts'

const HIDDEN = '(not shown: it could be a card number)'

export interface Preview {
  line: number
  /** In nested JSON: the element and the card within it, `17.2`. */
  item?: string | undefined
  reference?: string | undefined
  lastFour?: string | undefined
  /** `MM/YYYY` */
  expiry?: string | undefined
  /** Why the row isn't sent. */
  skipped?: string | undefined
  rejected?: string | undefined
  repairs?: readonly string[] | undefined
}

const Sent = z.object({
  request: z.object({ card: z.object({ expiryMonth: z.int().optional(), expiryYear: z.int().optional() }).optional() }),
})

export function previewOf({
  line,
  fileLine = line,
  item,
  reference,
  number,
  json,
  columns,
  skipped,
  rejected,
  repairs,
}: Row): Preview {
  const preview: Preview = {
    line: fileLine,
    item,
    reference: couldLookLikeCard(reference) ? HIDDEN : reference,
    skipped,
    rejected,
    repairs,
  }
  if (skipped !== undefined || rejected !== undefined) return preview
  const { expiryMonth, expiryYear } = Sent.parse(JSON.parse(jsonOf({ json, columns }))).request.card ?? {}
  const digits = digitsOf(number)
  if (digits.length >= 12) preview.lastFour = digits.slice(-4)
  if (expiryMonth && expiryYear) preview.expiry = `${String(expiryMonth).padStart(2, '0')}/${expiryYear}`
  return preview
}

/** A row as a sentence: `line 2: card ending 1111, expires 12/2030, reference card_1` */
export function sentenceOf({
  line,
  item,
  reference,
  lastFour,
  expiry,
  skipped,
  rejected,
  repairs = [],
}: Preview): string {
  const place = item === undefined ? `line ${line}` : `line ${line}, card ${item}`
  const facts = [
    skipped && `skipped (${skipped})`,
    rejected && `rejected (${rejected})`,
    lastFour && `card ending ${lastFour}`,
    expiry && `expires ${expiry}`,
    reference && `reference ${reference}`,
    repairs.length > 0 && `repaired: ${repairs.join(', ')}`,
  ]
  return `${place}: ${facts.filter(fact => fact).join(', ')}`
}

const CARDS_SHOWN = 10

/** A heading, and the first cards, one per line. */
export function firstCards(profile: string, rows: readonly Row[]): string[] {
  const cards = rows.filter(({ skipped, rejected }) => skipped === undefined && rejected === undefined)
  return [
    `by profile ${profile} the first cards read like this; stop with Ctrl-C if an expiry is wrong`,
    ...cards.slice(0, CARDS_SHOWN).map(row => `  ${sentenceOf(previewOf(row))}`),
  ]
}
