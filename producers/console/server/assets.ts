// The files of every page: styles, the picture of the tab, and modules. All that `browser/` holds is read once and served.
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type ConsoleApp, OPEN } from '../app.ts'
import { type Html, html, path } from '../html.ts'

const TYPES: Partial<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.js': 'text/javascript; charset=utf-8',
}
const ROOM = new URL('../browser/', import.meta.url)
const NAMES = readdirSync(ROOM).sort()

/** The links to all styles, for the head of a page. `console.css` holds what all pages share; a page's own rules have a file. */
export const STYLES: readonly Html[] = NAMES.filter(name => name.endsWith('.css')).map(
  name => html`<link rel="stylesheet" href="${path`/${name}`}">`,
)

export function assetRoutes(app: ConsoleApp): void {
  for (const name of NAMES) {
    const text = readFileSync(new URL(name, ROOM), 'utf8')
    const type = TYPES[extname(name)]
    if (type === undefined) throw new Error(`no type is known for ${name}`)
    app.get(`/${name}`, OPEN, async (_request, reply) => reply.type(type).send(text))
  }
}
