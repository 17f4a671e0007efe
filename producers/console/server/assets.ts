// The files of every page: the style, the picture of the tab, and the module that asks for passkeys. They are read once.
import { readFileSync } from 'node:fs'
import { type ConsoleApp, OPEN } from '../app.ts'

const FILES = {
  'console.css': 'text/css; charset=utf-8',
  'icon.svg': 'image/svg+xml',
  'passkey.js': 'text/javascript; charset=utf-8',
} as const

export function assetRoutes(app: ConsoleApp): void {
  for (const [name, type] of Object.entries(FILES)) {
    const text = readFileSync(new URL(`../browser/${name}`, import.meta.url), 'utf8')
    app.get(`/${name}`, OPEN, async (_request, reply) => reply.type(type).send(text))
  }
}
