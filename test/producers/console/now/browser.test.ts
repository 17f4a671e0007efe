// The page Now in a real browser: it stays live, says `unknown` when no news comes, and fits its screen. Any violation of the
// content security policy fails the test.
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { SHOWN_STATES, stateMark } from '../../../../producers/console/state-mark.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, openConsoleBundle } from '../bundle.ts'
import { keepBeating } from '../heard.ts'

describeChromium('the page Now', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  let cookie: string
  let batchNo: number
  let hush: (() => Promise<void>) | undefined
  const complaints: string[] = []
  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
    cookie = (await bundle.addPerson('ada')).cookie
    batchNo = await bundle.addBatch({ batchId: 'x'.repeat(64), rowsDone: 10, extentRows: 1_234_567_890 })
    hush = await keepBeating(bundle.installation.vault.store)
    for (let n = 0; n < 5; n++) await bundle.addBatch({ rowsDone: 1_000, extentRows: 5_000 })
  })
  afterAll(async () => {
    await hush?.()
    await browser?.close()
    await bundle?.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  async function open(
    prepare?: (page: Page) => Promise<void>,
    more: { javaScriptEnabled?: boolean } = {},
  ): Promise<Page> {
    const context = await browser.newContext({ viewport: { width: 1_440, height: 900 }, ...more })
    const [name = '', value = ''] = cookie.split('=')
    await context.addCookies([{ name, value, url: bundle.origin }])
    const page = await context.newPage()
    page.on('console', message => {
      if (message.type() === 'error' && !/net::ERR_FAILED/.test(message.text())) complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
    await prepare?.(page)
    await page.goto(`${bundle.origin}/now`)
    return page
  }

  const shows = (place: Locator, text: RegExp) =>
    until(async () => text.test((await place.textContent()) ?? ''), { what: `${text}` })

  it('puts in what has changed, a state as glyph, word and colour, and is asked for anew when there is something new to list', async () => {
    const page = await open(page => page.clock.install())
    await shows(page.locator('h1'), /^Well$/)
    await page.getByText('As of').waitFor()
    const rows = page.locator(`#batch-${batchNo}-rows`)
    await bundle.rows('update tokenmill.batch set rows_done = 4321 where batch_no = $1', [batchNo])
    await shows(rows, /^4,321$/)
    expect(await page.locator(`#batch-${batchNo}-bar`).getAttribute('value')).toBe('4321')
    // Not while the person is in the middle of something.
    await page.locator('summary').first().click()
    await bundle.rows('update tokenmill.batch set paused_at = now() where batch_no = $1', [batchNo])
    await page.getByText('The page has changed').waitFor()
    await page.clock.fastForward(6_000)
    await shows(rows, /^4,321$/)
    // What it still shows is as of now: another state is told in its word, and of what isn't listed any more nothing is known.
    await shows(page.locator(`#batch-${batchNo}-state`), /^PAUSED$/)
    expect(await page.locator(`#batch-${batchNo}-state > .state.warn svg`).count()).toBe(1)
    const other = page.locator(`#batch-${batchNo + 1}-rows`)
    expect(await other.textContent()).toBe('1,000')
    await bundle.rows(
      'update tokenmill.batch set chunks_done = 1, finished_at = now(), revision = 1 where batch_no = $1',
      [batchNo + 1],
    )
    await shows(other, /^\?$/)
    await shows(page.locator(`#batch-${batchNo + 1}-state .state.unknown`), /^\?\uFE0EUNKNOWN$/)
    await page.locator('summary').first().click()
    // Nor while the person goes to another page, whose answer may be slow.
    await page.evaluate(`isSame = true; dispatchEvent(new Event('beforeunload')); document.activeElement.blur()`)
    await bundle.rows('update tokenmill.batch set rows_done = 4400 where batch_no = $1', [batchNo])
    await shows(rows, /^4,400$/)
    expect(await page.evaluate('typeof isSame')).toBe('boolean')
    await Promise.all([page.waitForEvent('load'), page.clock.fastForward(11_000)])
    await page.locator('.state.warn').waitFor()
    expect(new URL(page.url()).pathname).toBe('/now')
    await page.context().close()
  })

  it('says unknown after 10 s without news, and all as before when news comes', async () => {
    const page = await open(async page => {
      await page.clock.install()
      await page.route('**/now/live', route => route.abort())
    })
    expect(await page.textContent('h1')).toBe('Well')
    await page.clock.fastForward(11_000)
    await shows(page.locator('h1'), /^unknown since \d\d:\d\d:\d\d$/)
    expect(await page.locator('[data-tone="well"]').count()).toBe(0)
    expect(await page.locator('#failed-now').textContent()).toMatch(/^unknown since/)
    expect(await page.locator('#kind-act-waiting').textContent()).toBe('?')
    expect(await page.locator('td.mark').count()).toBeGreaterThan(0)
    expect(await page.locator('td.mark:not(:has(.state.unknown))').count()).toBe(0)
    await page.unroute('**/now/live')
    await shows(page.locator('h1'), /^Well$/)
    expect(await page.locator('#failed-now').textContent()).toBe('0')
    await page.context().close()
  })

  it('draws the mark of every state as the server does', async () => {
    const page = await open()
    const drawn = await page.evaluate(
      `import('/mark.js').then(({ mark }) => ${JSON.stringify(SHOWN_STATES)}.map(state => {
        const element = document.createElement('span')
        mark(element, state)
        return element.innerHTML
      }))`,
    )
    expect(drawn).toEqual(SHOWN_STATES.map(state => `${stateMark(state)}`))
    await page.context().close()
  })

  it('fits a screen of 1440 × 900, scrolls sideways on none, and is read without scripts', async () => {
    const page = await open(undefined, { javaScriptEnabled: false })
    const box = async () =>
      page.locator('html').evaluate(html => [html.scrollHeight, html.scrollWidth - html.clientWidth])
    expect(await box()).toEqual([900, 0])
    for (const width of [1_440, 768, 375]) {
      await page.setViewportSize({ width, height: 900 })
      expect((await box())[1], `${width}`).toBe(0)
    }
    expect(await page.locator('noscript meta').count()).toBe(1)
    await page.context().close()
  })
})
