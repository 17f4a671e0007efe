// Explain in a real browser: the field in the bar by keyboard, hostile texts, and no page that scrolls sideways. Any violation of
// the content security policy fails the test.
import { randomUUID } from 'node:crypto'
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../../producers/client.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { type ConsoleBundle, openConsoleBundle } from '../bundle.ts'

const HOSTILE = `"><img src=x onerror="window.pwned=1"><script>window.pwned=1</script>`

describeChromium('Explain', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  let page: Page
  let client: Client
  const complaints: string[] = []
  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    client = await bundle.installation.connect()
    const { cookie } = await bundle.addPerson('ada')
    const [name = '', value = ''] = cookie.split('=')
    const context = await browser.newContext({ viewport: { width: 1_440, height: 900 } })
    await context.addCookies([{ name, value, url: bundle.origin }])
    page = await context.newPage()
    page.on('console', message => {
      if (message.type() === 'error' && !/the server responded with a status of/.test(message.text()))
        complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
  })
  afterAll(async () => {
    await browser?.close()
    await client?.close()
    await bundle?.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  const isOneScreenWide = () =>
    page.evaluate('document.documentElement.scrollWidth <= document.documentElement.clientWidth')
  async function look(): Promise<void> {
    for (const width of [1_440, 768, 375]) {
      await page.setViewportSize({ width, height: 900 })
      expect(await isOneScreenWide(), `${page.url()} at ${width}`).toBe(true)
    }
    await page.setViewportSize({ width: 1_440, height: 900 })
  }

  it('leads from the bar to a job, whatever its sender has written', async () => {
    for (const jti of ['first', 'a'.repeat(128)])
      await client
        .call('token-lifecycle', { id: 't00000000000000000000000000', action: 'SUSPEND' }, { jti, reference: HOSTILE })
        .catch(() => undefined)
    await page.goto(`${bundle.origin}/batches`)
    await page.getByLabel('Explain a job, token or batch').fill(HOSTILE)
    await page.keyboard.press('Enter')
    await page.waitForURL('**/explain/jobs/*')
    expect(await page.title()).toBe('One job · tokenmill')
    expect(await page.getByText(HOSTILE).count()).toBe(1)
    expect(await page.evaluate('window.pwned')).toBeUndefined()
    expect(await page.locator('.timeline li').count()).toBe(3)
    await look()
    await page.getByRole('link', { name: /^token-lifecycle/ }).click()
    await page.waitForURL('**/explain/jobs/*')
    await look()
  })

  it('says on one page that nothing was found, and what can be looked up', async () => {
    await page.goto(`${bundle.origin}/explain`)
    await look()
    await page.getByLabel('What happened to').fill(randomUUID())
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { name: 'Nothing found' }).waitFor()
    await look()
  })
})
