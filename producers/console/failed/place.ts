// Where a page of the failed set begins, as its address says it.
import { readMoment, writeMoment } from './filter.ts'

/** A place in the order of the list: newest first, by ids where the moment is the same. */
export interface Place {
  /** ms since the epoch. */
  failedAt: number
  id: string
}

/** Both are bounds: what an earlier page listed is beyond one of them. */
export interface From {
  /** The last copy of a page that was full. */
  place: Place | undefined
  /**
   * How many of the oldest copies of each kind may still be to be shown, in the order of the kinds that were looked through. Copies
   * that are removed meanwhile make later ones be read again, and leave none out.
   */
  unread: readonly number[] | undefined
}

/** The member `before` of an address: `first` or the place, and after `~` what is unread. */
export function writeFrom({ place, unread }: From): string {
  const from = place ? `${writeMoment(place.failedAt)}.${place.id}` : 'first'
  return unread ? `${from}~${unread.map(count => count.toString(36)).join('-')}` : from
}

/** Undefined: from the newest on. Whatever isn't understood is left out: an address may have been typed. */
export function readFrom(before: unknown): From | undefined {
  const form = /^(?:first|([0-9a-z]{8,9})\.(f_[\w-]{43}))(?:~([0-9a-z]{1,6}(?:-[0-9a-z]{1,6})*))?$/
  const [, moment = '', id = '', counts] = form.exec(typeof before === 'string' ? before : '') ?? []
  const failedAt = readMoment(moment)
  const place = failedAt === undefined ? undefined : { failedAt, id }
  const unread = counts?.split('-').map(count => Number.parseInt(count, 36))
  return place || unread ? { place, unread } : undefined
}
