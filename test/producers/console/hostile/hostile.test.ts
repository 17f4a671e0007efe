// Markup in every text that somebody else chose is shown as a text: no page has an element or an attribute of it, and in a real browser
// nothing of it runs and nothing violates the content security policy.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import type { Person } from '../bundle.ts'
import { fillWorld } from '../looks/world.ts'
import { type OpenIdBundle, openOpenIdBundle } from '../openid/bundle.ts'
import { callsOf, everyRoute, type Names, openAsk } from '../routes/calls.ts'
import { namesOf } from '../routes/names.ts'
import { readMarkup } from './markup.ts'
import { plant } from './texts.ts'

describe('a text with markup', () => {
  let bundle: OpenIdBundle
  let ada: Person
  let planted: string[]
  /** Pages by their paths. */
  const pages = new Map<string, string>()
  const marksOf = (text: string) => [...new Set([...text.matchAll(/mark(\d+)x/g)].map(([, mark]) => Number(mark)))]

  beforeAll(async () => {
    bundle = await openOpenIdBundle()
    const { close } = await bundle.installation.openWorkers({ roles: ['interactive'] })
    ada = await bundle.addPerson('ada')
    const names = await namesOf(bundle, await fillWorld(bundle, ada), ada)
    await close()
    const found = await plant(bundle, names)
    planted = found.planted
    const ask = openAsk(bundle)
    const all: Names[] = [names, { ...names, copy: found.copy }]
    for (const route of await everyRoute())
      if (route.method === 'GET' && !/\.\w+$|\/live$/.test(route.route))
        for (const one of all.flatMap(of => callsOf(route, of)))
          if (!pages.has(one.path)) pages.set(one.path, (await ask(one, ada.cookie)).text)
  })
  afterAll(() => bundle?.close())

  it('is shown on some page, whichever text it is', () => {
    const shown = new Set([...pages.values()].flatMap(marksOf))
    expect(planted.filter((_what, mark) => !shown.has(mark))).toEqual([])
  })

  it('makes no element and no attribute', () => {
    const wrong = [...pages].flatMap(([path, page]) =>
      readMarkup(page)
        .elements.filter(({ name, attributes }) => {
          const isHandled = [...attributes.keys()].some(key => key.startsWith('on') || key === 'style')
          const isLink = ['href', 'src', 'action'].some(key => /^(?!\/|#|https?:)/.test(attributes.get(key) ?? '/'))
          const isScript = name === 'script' && !/^\/[a-z-]+\.js$/.test(attributes.get('src') ?? '')
          return isHandled || isLink || isScript || ['img', 'b', 'iframe', 'object'].includes(name)
        })
        .map(({ name }) => `${path}: ${name}`),
    )
    expect(wrong).toEqual([])
    for (const page of pages.values()) {
      const { text, elements } = readMarkup(page)
      const values = elements.flatMap(({ attributes }) => [...attributes.values()])
      expect(marksOf([text, ...values].join()).sort()).toEqual(marksOf(page).sort())
    }
  })

  it('would be found where it is not escaped', () => {
    expect(readMarkup('<p class="x">a &#60;b&#62;</p>').text).toContain('a <b>')
    expect(readMarkup('<p><img src="x" onerror="y"></p>').elements[1]?.attributes.has('onerror')).toBe(true)
    for (const broken of ['<p>"><', '<p title="a<b">', "<img src=x onerror='y'>"])
      expect(() => readMarkup(broken)).toThrow('this is no tag')
  })

  describeChromium('in a browser', () => {
    it('runs nothing and violates nothing', async () => {
      const browser = await openBrowser()
      const context = await browser.newContext()
      const [name = '', value = ''] = ada.cookie.split('=')
      await context.addCookies([{ name, value, url: bundle.origin }])
      await context.addInitScript(`window.pwned = () => { document.title = 'pwned' }`)
      const page = await context.newPage()
      const ran: string[] = []
      page.on('dialog', ({ message }) => ran.push(message()))
      const seen = new Set<number>()
      for (const [path, text] of pages) {
        const marks = marksOf(text)
        if (marks.every(mark => seen.has(mark))) continue
        for (const mark of marks) seen.add(mark)
        await page.goto(`${bundle.origin}${path}`)
        if ((await page.title()) === 'pwned' || (await page.locator('img, b[id^=mark]').count()) > 0) ran.push(path)
      }
      await browser.close()
      expect(ran).toEqual([])
      expect(seen.size).toBe(planted.length)
    })
  })
})
