// The policy `newest`: of two givers of a field the later one counts, whatever the order in which they are worked. This is a
// maximum, so it doesn't depend on that order, within a batch and across batches. Only rows that such a batch has touched,
// or that got another number, keep their givers; every writer of such a row notes itself.
import { CARD_FIELD_NAMES, CARD_FIELDS, type Given } from './card-fields.ts'
import type { CardFieldName, DatedName, GivenAt, Giver, TokenRow } from './token.ts'

/** Whether a value of `one` counts before a value of `other`; undefined: nobody has given one. */
export function isLater(one: Giver, other: Giver | undefined): boolean {
  if (other === undefined) return true
  const [time, input, line] = one
  const [otherTime, otherInput, otherLine] = other
  if (time !== otherTime) return time > otherTime
  return input === otherInput ? line > otherLine : input > otherInput
}

/** A giver that has only a time: that of a single job, or of a row without givers. */
export function giverAt(time: number): Giver {
  return [time, '', 0]
}

/**
 * A copy of the row's givers. If the row has none, all that it holds counts as given when the row was last changed, and
 * its number as its first.
 */
export function giversOf(row: TokenRow): { -readonly [name in DatedName]?: Giver } {
  if (row.givenAt) return { ...row.givenAt }
  const giver = giverAt(row.updatedAt)
  const held = CARD_FIELD_NAMES.filter(name => CARD_FIELDS[name].held(row))
  return Object.fromEntries([...held, 'status' as const].map(name => [name, giver]))
}

/** The givers of a row that a line makes. The line that gives the expiry date also decides the first status. */
export function firstGivers(given: Given, giver: Giver): GivenAt {
  const names: DatedName[] = namesGiven(given)
  if (CARD_FIELDS.expiry.given(given)) names.push('status')
  return Object.fromEntries(names.map(name => [name, giver]))
}

/** The fields that a request gives. */
export function namesGiven(given: Given): CardFieldName[] {
  return CARD_FIELD_NAMES.filter(name => CARD_FIELDS[name].given(given))
}

/** Notes the giver in a row that keeps givers; false if it doesn't, or if nothing was given. */
export function noteGiver(row: TokenRow, names: readonly DatedName[], giver: Giver): boolean {
  if (row.givenAt === null || names.length === 0) return false
  row.givenAt = { ...row.givenAt, ...Object.fromEntries(names.map(name => [name, giver])) }
  return true
}
