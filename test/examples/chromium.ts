// Opens the browser for tests of pages: Chromium, driven by playwright-core. Without one the tests are skipped with a
// message; with REQUIRE_CHROMIUM=1 they fail.
import { existsSync } from 'node:fs'
import { type Browser, chromium } from 'playwright-core'
import { describe, it } from 'vitest'

const PLACES = ['/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome']
const found = [process.env['CHROMIUM'], ...PLACES].find(path => path !== undefined && existsSync(path))
const required = process.env['REQUIRE_CHROMIUM'] === '1'

if (!found && !required)
  process.stderr.write('\n!! No Chromium here: the tests of pages are SKIPPED (apt-get install chromium).\n\n')

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
  describe.skipIf(!found)(name, laws)
}

export function openBrowser(): Promise<Browser> {
  // Containers have no sandbox and little shared memory. A page is not drawn on a screen: a process for that costs a sixth.
  const gpu = ['--disable-gpu', '--in-process-gpu', '--disable-software-rasterizer']
  const args = ['--no-sandbox', '--disable-dev-shm-usage', ...gpu]
  return chromium.launch({ ...(found ? { executablePath: found } : {}), headless: true, args })
}
