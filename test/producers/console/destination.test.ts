// Where a sign-in leads: every page of the console can be it, and nothing else can.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import type { ConsoleApp } from '../../../producers/console/app.ts'
import { listRoutes } from './looks/pages.ts'
import { openRoutes } from './open-routes.ts'

let app: ConsoleApp
let pages: string[]
beforeAll(async () => {
  app = await openRoutes()
  const open = /^\/$|\.(css|js|svg)$|\/(live|again)$|^\/(sign-in|welcome|display|openid\/callback)/
  pages = (await listRoutes()).filter(route => !open.test(route))
})
afterAll(() => app.close())

describe('a sign-in', () => {
  it('leads to every page that needs a session, and takes its filter along', () => {
    expect(pages.length).toBeGreaterThan(30)
    for (const page of pages) {
      const to = page.replace(/:\w+/g, () => randomUUID())
      expect(app.destinationOf(to)).toBe(to)
      expect(app.destinationOf(`${to}?kind=report&since=2026-11-20`)).toBe(`${to}?kind=report&since=2026-11-20`)
    }
  })

  it('leads to a page whose UUID ends with twelve digits', () => {
    const page = '/explain/tokens/de19eff2-ee1d-4749-8f5e-546350808440'
    expect(app.destinationOf(page)).toBe(page)
    expect(app.destinationOf('/explain/tokens/546350808440')).toBe('/')
  })

  it('leads to the page of an act on 50 ticked jobs', () => {
    const ids = Array.from({ length: 50 }, () => `&id=f_${'A'.repeat(43)}`).join('')
    expect(app.destinationOf(`/failed/ticked/retry?kind=report${ids}`)).toContain('/failed/ticked/retry?')
  })

  it('leads from an address that is too long to the beginning', () => {
    expect(app.destinationOf(`/batches/${'1'.repeat(200)}`)).toBe('/')
    expect(app.destinationOf(`/batches?${'a=b&'.repeat(2_000)}a=b`)).toBe('/')
  })

  it('leads to a live page itself, where that asked for itself anew', () => {
    expect(app.destinationOf('/now/again')).toBe('/now')
    expect(app.destinationOf('/batches/12/again')).toBe('/batches/12')
  })

  it.each([
    ...['/', '', undefined, ['/now'], {}, 17],
    ...[
      '//evil.example',
      '//evil.example/now',
      'https://evil.example/now',
      '/\\evil.example',
      '\\\\evil.example',
      'javascript:x',
    ],
    ...['/now/', '/now//evil.example', '/now/../x', '/batches/..', '/batches/.', '/batches/%2e%2e', '/batches/1%2f2'],
    ...[' /now', '/now ', '/now\n', '/now\r\nSet-Cookie: x', '/now\t', '/now#x', '/now?a=b#x', '/now?a=b?c=d', '/now?'],
    ...['/batches?state=%22', '/batches/1?x=javascript:', '/batches?state=//evil.example', '/batches?to=http%3A//x'],
    ...['/nowhere', '/sign-in', '/welcome', '/display', '/openid/callback', '/console.css', '/batches/csv.csv'],
    ...['/now/live', '/batches/12/live', '/display/live', '/display/again'],
    ...['/batches/4111111111111111', '/batches?client=4111111111111111', '/audit?like=any&who=4111111111111111'],
  ])('leads from %j to the beginning', asked => {
    expect(app.destinationOf(asked)).toBe('/')
  })
})
