// Opens the browser for tests of pages: Chromium, driven by playwright-core. Without one the tests are skipped with a
// message; with REQUIRE_CHROMIUM=1 they fail. Every page of every browser is listened to from its beginning: a violation of the
// content security policy fails the test in which it happens, and no test has to ask for that.
import { existsSync } from 'node:fs'
import { type Browser, type BrowserContext, chromium, type Page } from 'playwright-core'
import { afterAll, afterEach, describe, expect, it } from 'vitest'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const found = [process.env['CHROMIUM'], ...PLACES].find(path => path !== undefined && existsSync(path))
const required = process.env['REQUIRE_CHROMIUM'] === '1'

if (!found && !required)
  process.stderr.write('\n!! No Chromium here: the tests of pages are SKIPPED (apt-get install chromium).\n\n')

/** So long a page is waited for: only a test that fails waits to its end, and a busy machine may be slow. */
const PATIENCE_MS = 60_000

const VIOLATION = /content security policy|trusted ?(types?|html|script)/i
let isHeard = false
const violations: string[] = []

/** The violations since the last call. */
export const takeViolations = () => violations.splice(0)

/** A suite in a browser. */
export function describeChromium(name: string, laws: () => void): void {
  if (!found && required) {
    describe(name, () => {
      it('has a Chromium to run in', () => {
        throw new Error('REQUIRE_CHROMIUM=1, and there is no Chromium: apt-get install chromium')
      })
    })
    return
  }
  describe.skipIf(!found)(name, () => {
    isHeard = true
    afterEach(() => expect(takeViolations()).toEqual([]))
    afterAll(() => expect(takeViolations()).toEqual([]))
    laws()
  })
}

/** Only a suite of `describeChromium` listens to violations, so in a test no other opens a browser. */
export async function openBrowser(): Promise<Browser> {
  if (process.env['VITEST'] !== undefined && !isHeard) throw new Error('a browser is opened in describeChromium only')
  // Containers have no sandbox and little shared memory. A page is not drawn on a screen: a process for that costs a sixth.
  const gpu = ['--disable-gpu', '--in-process-gpu', '--disable-software-rasterizer']
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...gpu]
  const browser = await chromium.launch({ ...(found ? { executablePath: found } : {}), headless: true, args })
  const newContext = browser.newContext.bind(browser)
  browser.newContext = async options => listenTo(await newContext(options))
  // Pages of a context of their own, too.
  browser.newPage = async options => (await browser.newContext(options)).newPage()
  return browser
}

function listenTo(context: BrowserContext): BrowserContext {
  context.setDefaultTimeout(PATIENCE_MS)
  context.on('page', (page: Page) =>
    page.on('console', message => {
      if (VIOLATION.test(message.text())) violations.push(`${page.url()}: ${message.text()}`)
    }),
  )
  return context
}
