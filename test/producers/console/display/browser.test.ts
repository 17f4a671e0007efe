// A wall display in a real browser: its link opens by itself, it says unknown and comes back, and when it is revoked it says so. It
// fits its screen; the page Installation scrolls sideways on none. Any violation of the content security policy fails the test.
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { addDisplay, revokeDisplay } from '../../../../src/acts/display.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, openConsoleBundle } from '../bundle.ts'
import { keepBeating } from '../heard.ts'

const SAID = /^1 thing needs you/
const CHECKS = [
  { name: 'webhooks', state: 'warning', says: 'x', next: null },
  { name: 'store', state: 'well', says: 'x', next: null },
] as const
const QUEUE = { waiting: 12_345, active: 8, oldestMs: 12_000 }
const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const

describeChromium('a wall display', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  let hush: (() => Promise<void>) | undefined
  const complaints: string[] = []
  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
    hush = await keepBeating(bundle.installation.vault.store, { checks: CHECKS, queue: QUEUE })
  })
  afterAll(async () => {
    await hush?.()
    await browser?.close()
    await bundle?.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  async function newPage(viewport: { width: number; height: number }): Promise<Page> {
    const context = await browser.newContext({ viewport })
    const page = await context.newPage()
    page.on('console', message => {
      // Of a proxy before a console that is away, and of a display that is revoked.
      if (message.type() === 'error' && !/status of (403|503)/.test(message.text())) complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
    return page
  }

  const overflow = (page: Page) =>
    page.locator('html').evaluate(html => [html.scrollHeight - html.clientHeight, html.scrollWidth - html.clientWidth])
  const seen = (page: Page, text: RegExp) =>
    until(async () => text.test((await page.textContent('h1').catch(() => '')) ?? ''), { what: `${text}` })

  it('opens by its link, comes back after a silence, and ends when it is revoked', async () => {
    const { store } = bundle.installation.vault
    const ended = await addDisplay(store, { name: 'room 1', entities: null }, BY)
    if ('refused' in ended) throw new Error(ended.refused)
    const { value, displayId } = ended.done
    const page = await newPage({ width: 1_920, height: 1_080 })
    await page.clock.install()
    await page.goto(`${bundle.origin}/display/open#${value}`)
    await page.waitForURL('**/display')
    await seen(page, SAID)
    // The value is neither in the address nor in the history behind it.
    expect(await page.evaluate('location.href + history.length')).not.toContain(value)
    for (const size of [
      { width: 1_920, height: 1_080 },
      { width: 1_280, height: 720 },
      { width: 3_840, height: 2_160 },
    ]) {
      await page.setViewportSize(size)
      expect(await overflow(page), `${size.width}`).toEqual([0, 0])
      const figure = await page.evaluate<number>(
        `parseFloat(getComputedStyle(document.querySelector('.huge')).fontSize)`,
      )
      expect(figure).toBeGreaterThanOrEqual(Math.max(28, size.width * 0.04))
    }
    expect(await page.evaluate('getComputedStyle(document.body).backgroundColor')).toBe('rgb(20, 23, 28)')
    // A proxy answers for a console that is away: the browser gives the stream up, and nobody has to reload the page.
    await page.route('**/display/live', route => route.fulfill({ status: 503 }))
    await page.goto(`${bundle.origin}/display`)
    await page.clock.fastForward(11_000)
    await seen(page, /^unknown since \d\d:\d\d:\d\d$/)
    await page.unroute('**/display/live')
    const streamed = page.waitForResponse('**/display/live')
    await page.clock.fastForward(16_000)
    await seen(page, SAID)
    // A display that is revoked before its stream is open hears of it when it next asks for its page.
    expect((await streamed).status()).toBe(200)
    await revokeDisplay(store, { displayId, name: 'room 1' }, BY)
    await seen(page, /^Nothing is shown here$/)
    await page.context().close()
  })

  it('has a page beside it that lists displays, and scrolls sideways on no screen', async () => {
    const { cookie } = await bundle.addPerson('ada')
    const page = await newPage({ width: 1_440, height: 900 })
    const [name = '', value = ''] = cookie.split('=')
    await page.context().addCookies([{ name, value, url: bundle.origin }])
    for (const path of [
      '/installation',
      '/installation/clients',
      '/installation/scopes',
      '/installation/capture-keys',
    ]) {
      await page.goto(`${bundle.origin}${path}`)
      for (const width of [1_440, 768, 375]) {
        await page.setViewportSize({ width, height: 900 })
        expect((await overflow(page))[1], `${path} ${width}`).toBe(0)
      }
    }
    await page.context().close()
  })
})
