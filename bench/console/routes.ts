// The addresses of the console's pages: its routes are listed by the functions that add them, and their addresses are found as a
// person finds them, by the links and filters of the pages. So a new page is measured without a word here, and a route to which
// nothing leads is named.

import type { ConsoleApp } from '../../producers/console/app.ts'
import type { ConsoleDeps } from '../../producers/console/deps.ts'
import { ROUTES } from '../../producers/console/routes.ts'
import { CATALOGUE } from '../../src/job/composition.ts'
import type { Ask } from './visitor.ts'

/** So many addresses of one route are looked at, and so many are measured. */
const LOOKED = 30
const KEPT = 60
/** Answered by another page, open for as long as somebody watches, or a file of the pages. */
const NOT_PAGES = /^\/$|\/live$|\.\w+$/

/** The templates of all pages: `/batches/:no`. Files of the pages (scripts, styles) are left out. */
export function listPages(): string[] {
  const pages: string[] = []
  const nothing = () => async () => ({ isAllowed: true })
  const get = (template: string) => pages.push(template)
  const app = new Proxy({}, { get: (_app, name) => (name === 'get' ? get : nothing) }) as ConsoleApp
  for (const add of ROUTES) add(app, { catalogue: CATALOGUE } as ConsoleDeps)
  const variables = (page: string) => page.split(':').length
  // Of two that fit, the router takes the one with more fixed words.
  return [...new Set(pages)].filter(page => !NOT_PAGES.test(page)).sort((a, b) => variables(a) - variables(b))
}

export interface Found {
  /** Addresses by the route that answers them. */
  addresses: Map<string, string[]>
  /** Routes to which no link leads this person. */
  unreached: string[]
}

/** Follows links and filters from these addresses on. */
export async function findAddresses(ask: Ask, from: readonly string[]): Promise<Found> {
  const pages = listPages()
  const addresses = new Map<string, string[]>()
  const looked = new Map<string, number>()
  const waiting = [...from]
  const known = new Set(waiting)
  for (let to = waiting.shift(); to !== undefined; to = waiting.shift()) {
    const template = templateOf(to, pages)
    if (template === undefined) continue
    const own = addresses.get(template) ?? []
    const times = looked.get(template) ?? 0
    if (own.length >= KEPT) continue
    if (times >= LOOKED) {
      addresses.set(template, [...own, to])
      continue
    }
    looked.set(template, times + 1)
    const { status, text } = await ask('GET', to)
    if (status !== 200) continue
    addresses.set(template, [...own, to])
    for (const next of [...linksOf(text), ...filtersOf(text)])
      if (!known.has(next)) {
        known.add(next)
        waiting.push(next)
      }
  }
  return { addresses, unreached: pages.filter(page => !addresses.has(page)) }
}

function templateOf(address: string, pages: readonly string[]): string | undefined {
  const [path = ''] = address.split('?')
  const fits = (page: string) => new RegExp(`^${page.replace(/:\w+/g, '[^/]+')}$`).test(path)
  return pages.find(page => page === path) ?? pages.find(fits)
}

const plain = (text: string) => text.replaceAll('&#38;', '&').replaceAll('&amp;', '&')

function linksOf(text: string): string[] {
  return [...text.matchAll(/<a [^>]*href="(\/[^"#]*)/g)].map(([, to = '']) => plain(to))
}

/** Each choice of each filter alone, the others as they stand. */
function filtersOf(text: string): string[] {
  return [...text.matchAll(/<form [^>]*method="get" action="([^"]+)"[^>]*>(.*?)<\/form>/gs)].flatMap(
    ([, action = '', form = '']) => {
      const lists = [...form.matchAll(/<select [^>]*name="(\w+)"[^>]*>(.*?)<\/select>/gs)].map(
        ([, name = '', options = '']) => ({
          name,
          values: [...options.matchAll(/<option value="([^"]*)"/g)].map(([, value = '']) => plain(value)),
        }),
      )
      const first = Object.fromEntries(lists.map(({ name, values }) => [name, values[0] ?? '']))
      return lists.flatMap(({ name, values }) =>
        values.slice(0, LOOKED).map(value => `${action}?${new URLSearchParams({ ...first, [name]: value })}`),
      )
    },
  )
}
