// Lets a page of Installation be seen only by people who see the whole installation: for others it is a page that doesn't exist.
import type { FastifyReply, FastifyRequest } from 'fastify'
import type { LiveSession } from '../../../src/store/console/sessions.ts'
import { type Sight, sightOf } from '../../../src/store/sight.ts'
import type { ConsoleDeps } from '../deps.ts'
import { type Html, html, type Path } from '../html.ts'
import { sessionOf } from '../server/guard.ts'
import { framed, missingPage, sendPage } from '../server/page.ts'

export interface Viewer {
  session: LiveSession
  /** It sees everything. */
  sight: Sight
}

/** Answers with `content`; undefined: there is nothing of this name, or the person sees some entities. */
export async function answerWhole(
  deps: ConsoleDeps,
  request: FastifyRequest,
  reply: FastifyReply,
  { title, content }: { title: string; content: (viewer: Viewer) => Promise<Html | undefined> },
): Promise<FastifyReply> {
  const session = sessionOf(request)
  const sight = sightOf(session.entities)
  const shown = sight.sees === 'all' ? await content({ session, sight }) : undefined
  if (!shown) return sendPage(reply, 404, missingPage(deps, session))
  return sendPage(reply, 200, framed(deps, { title, session, at: 'installation', content: shown }))
}

/** How many rows one page lists. */
export const LISTED = 50

/** Links between the pages of a list. `addressOf`: the page behind this row; without one the first page. */
export function pages<Row>(rows: readonly Row[], isLater: boolean, addressOf: (last?: Row) => Path): Html {
  const last = rows.length > LISTED ? rows[LISTED - 1] : undefined
  return html`<p class="pages">${isLater ? html`<a href="${addressOf()}">First page</a> ` : undefined}${last && html`<a href="${addressOf(last)}">Next page</a>`}</p>`
}

/** A choice between two orders, as links. */
export function orderLinks<Order extends string>(
  orders: readonly Order[],
  chosen: Order,
  { words, addressOf }: { words: Record<Order, string>; addressOf: (order: Order) => Path },
): Html {
  const link = (order: Order) =>
    order === chosen
      ? html`<li><strong>${words[order]}</strong></li>`
      : html`<li><a href="${addressOf(order)}">${words[order]}</a></li>`
  return html`<ul class="choices">${orders.map(link)}</ul>`
}

/** A parameter of an address, if it has this form. */
export function parameter(query: unknown, name: string, form: RegExp): string | undefined {
  const value = typeof query === 'object' && query !== null ? (query as Record<string, unknown>)[name] : undefined
  return typeof value === 'string' && form.test(value) ? value : undefined
}

export const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/
