// The files of every page: styles, the picture of the tab, and modules. All that `browser/` and its `styles/` hold is read once and
// served by its name; so is the table of the marks of states, which is written once, for pages and for browsers.
import { readdirSync, readFileSync } from 'node:fs'
import { extname } from 'node:path'
import { type ConsoleApp, OPEN } from '../app.ts'
import { type Html, html, path } from '../html.ts'
import { MARKS_MODULE } from '../state-mark.ts'

const TYPES: Partial<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.js': 'text/javascript; charset=utf-8',
}
const ROOM = new URL('../browser/', import.meta.url)
const FILES = [ROOM, new URL('styles/', ROOM)].flatMap(room =>
  readdirSync(room, { withFileTypes: true })
    .filter(entry => entry.isFile())
    .map(({ name }) => ({ name, file: new URL(name, room) })),
)

/**
 * The links to all styles, for the head of a page. `console.css` holds what all pages share; a page's own rules have a file.
 * `darkIn`: the media query for which the dark colours hold.
 */
function stylesOf(darkIn: string): readonly Html[] {
  const names = FILES.map(({ name }) => name).filter(name => name.endsWith('.css'))
  return names
    .sort()
    .map(name =>
      name === 'dark.css'
        ? html`<link rel="stylesheet" href="${path`/${name}`}" media="${darkIn}">`
        : html`<link rel="stylesheet" href="${path`/${name}`}">`,
    )
}

export const STYLES = stylesOf('(prefers-color-scheme: dark)')
/** A wall display is dark, but where its browser forces colours of its own. */
export const WALL_STYLES = stylesOf('(forced-colors: none), (prefers-color-scheme: dark)')

export function assetRoutes(app: ConsoleApp): void {
  app.get('/marks.js', OPEN, async (_request, reply) => reply.type(TYPES['.js'] ?? '').send(MARKS_MODULE))
  for (const { name, file } of FILES) {
    const text = readFileSync(file, 'utf8')
    const type = TYPES[extname(name)]
    if (type === undefined) throw new Error(`no type is known for ${name}`)
    app.get(`/${name}`, OPEN, async (_request, reply) => reply.type(type).send(text))
  }
}
