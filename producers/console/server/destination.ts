// Where a sign-in leads: to the page of this console that was asked for. Pages are the GET routes that need a session, so a new
// page is one of them by itself. What isn't exactly such a page leads to the beginning, whatever was asked for.
import { UUIDS } from '../../../src/token/possible-pan.ts'
import type { ConsoleApp } from '../app.ts'

/** Long enough for the page of an act on 50 ticked jobs. */
export const DESTINATION_MAX = 3_000
/** Where the other pages begin. */
const FIRST = '/'

/** A part of an address that changes: ids, dates and words. It holds no character that leads out of its part. */
const PART = '[\\w-]{1,128}'
/** Filters of lists. `:` stands in the name of an actor. */
const QUERY = /^[a-z_]{1,20}=(?:[\w.-]|%3A){0,80}(?:&[a-z_]{1,20}=(?:[\w.-]|%3A){0,80}){0,60}$/
/** Digits that could be a card number are repeated in no address. The last part of a UUID may be digits alone. */
const DIGITS = /(?<![A-Za-z0-9])\d{12,19}(?![A-Za-z0-9])/
/** Streams, and pages that ask for themselves anew, are no pages of their own. */
const OF_LIVE = /\/(live|again)$/

/** Notes the routes that are added from now on. */
export function noteDestinations(app: ConsoleApp): void {
  const pages: RegExp[] = []
  const others: RegExp[] = []
  app.addHook('onRoute', ({ method, url, config }) => {
    if (method !== 'GET') return
    const isPage = !config?.isOpen && !config?.isDisplay && !OF_LIVE.test(url) && url !== FIRST
    ;(isPage ? pages : others).push(patternOf(url))
  })
  app.decorate('destinationOf', (asked: unknown) => {
    if (typeof asked !== 'string' || asked.length > DESTINATION_MAX) return FIRST
    const [path = '', ...queries] = asked.split('?')
    // A live page that is asked for anew.
    const page = path.replace(/\/again$/, '')
    const isIn = (routes: readonly RegExp[]) => routes.some(route => route.test(page))
    if (!isIn(pages) || isIn(others) || DIGITS.test(asked.replaceAll(UUIDS, ''))) return FIRST
    if (queries.length === 0) return page
    return queries.length === 1 && QUERY.test(queries[0] ?? '') ? `${page}?${queries[0]}` : FIRST
  })
}

function patternOf(url: string): RegExp {
  const parts = url.split('/').map(part => (part.startsWith(':') ? PART : part.replace(/[^\w-]/g, '\\$&')))
  return new RegExp(`^${parts.join('/')}$`)
}
