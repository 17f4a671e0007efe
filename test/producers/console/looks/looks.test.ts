// Every page of the console in a real browser, for people with other eyes and other hands than those who wrote it: axe-core finds
// nothing in light, dark and forced colours, nothing scrolls sideways at 200 % and at 400 %, the focus is seen everywhere, and a page
// can be printed. Any violation of the content security policy fails the test. ../acts/by-keys.test.ts does each act by keys alone.
import type { Browser, BrowserContext } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it, onTestFinished } from 'vitest'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { type OpenIdBundle, openOpenIdBundle } from '../openid/bundle.ts'
import { enrolled, listenTo, type Seat } from '../seats.ts'
import { withoutStore } from '../without-store.ts'
import { openAxe } from './axe.ts'
import { focused, follow, press, tabTo } from './keys.ts'
import { listRoutes, pagesOf } from './pages.ts'
import { noneWrong, type Stand, WHOLE, walk } from './walk.ts'
import { beat, fillWorld, type World } from './world.ts'

/** What a scheduler and workers say of themselves holds for 10 s. */
const BEAT_MS = 4_000

describeChromium('the looks of the console', () => {
  let bundle: OpenIdBundle
  let browser: Browser
  let context: BrowserContext
  let cookies: string[]
  let world: World
  let olga: Seat
  const wrong = noneWrong()
  const complaints: string[] = []
  let missing: string[]

  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openOpenIdBundle({ TOKENMILL_ENVIRONMENT: 'production' }), openBrowser()])
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    const ada = await bundle.addPerson('ada')
    ;[world, olga] = await Promise.all([
      fillWorld(bundle, ada),
      enrolled({ bundle, browser, complaints }, 'olga', ['ADMIN']),
    ])
    cookies = [ada.cookie, `tokenmill-display=${world.displays.all}`]
    context = await openContext(cookies)
    const found = pagesOf(await listRoutes(), world)
    missing = found.missing
    const left = [...found.paths]
    const beating = setInterval(() => beat(bundle), BEAT_MS)
    await Promise.all([1, 2].map(() => walkAll(left)))
    for (const [whose, value] of [
      [', of some entities', world.displays.some],
      [', revoked', world.displays.revoked],
    ] as const)
      await walkAs({ whose, cookies: [`tokenmill-display=${value}`] }, ['/display'])
    clearInterval(beating)
    // Every page is looked at several times: minutes, where the machine is slow.
  })
  afterAll(async () => {
    await browser?.close()
    await bundle?.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  /** Time stands still for its pages: none loads itself anew while it is looked at. `own`: `Cookie` headers. */
  async function openContext(own: readonly string[]): Promise<BrowserContext> {
    const opened = await browser.newContext({ viewport: WHOLE })
    const pairs = own.map(cookie => cookie.split('='))
    await opened.addCookies(pairs.map(([name = '', value = '']) => ({ name, value, url: bundle.origin })))
    await opened.clock.install()
    await opened.clock.pauseAt(Date.now() + 1_000)
    return opened
  }
  async function openStand(of = context): Promise<Stand> {
    const page = await of.newPage()
    listenTo(page, complaints)
    return { page, cdp: await of.newCDPSession(page), origin: bundle.origin }
  }
  /** Looks at pages in a browser of its own. */
  async function walkAs(
    { whose, cookies: own }: { whose: string; cookies: readonly string[] },
    paths: readonly string[],
    found = wrong,
  ): Promise<void> {
    const opened = await openContext(own)
    const stand = { ...(await openStand(opened)), whose }
    for (const path of paths) await walk(stand, path, found)
    await opened.close()
  }
  async function walkAll(left: string[]): Promise<void> {
    const stand = await openStand()
    for (let path = left.shift(); path !== undefined; path = left.shift()) await walk(stand, path, wrong)
    await stand.page.close()
  }

  it('are looked at on the page of every route', () => {
    expect(missing).toEqual([])
    expect(wrong.absent.sort()).toEqual([
      ...['/batches/999999999: 404', '/display, revoked: 403', '/nowhere: 404', '/openid/callback: 403'],
    ])
    const { missing: added } = pagesOf(['/batches', '/added/:name'], world)
    expect(added).toHaveLength(1)
    expect(added[0]).toContain('Add a row for it to PARTED')
  })

  it('have beside them the command that does the same, or say that there is none', () => {
    expect(wrong.command).toEqual([])
  })

  it('are found faultless by axe-core, in light, dark and forced colours, at every width', () => {
    expect(wrong.axe).toEqual([])
  })

  it('are found faulty by axe-core where they are', async () => {
    const { page, cdp } = await openStand()
    await page.goto(`${bundle.origin}/batches`)
    await page.evaluate(`(() => {
      const text = document.createElement('p')
      text.textContent = 'hardly seen'
      text.style.color = 'light-dark(#cccccc, #333333)'
      document.querySelector('main').append(text, document.createElement('input'))
    })()`)
    const findWrong = await openAxe(cdp)
    const found = async (rules: 'all' | 'colours') => (await findWrong(rules)).map(one => one.replace(/:.*/s, ''))
    expect(await found('all')).toEqual(['color-contrast', 'label'])
    await page.emulateMedia({ colorScheme: 'dark' })
    expect(await found('colours')).toEqual(['color-contrast'])
    await page.close()
  })

  it('need no scrolling sideways at 200 %, at 400 %, on a phone, and with wider texts', () => {
    expect(wrong.narrow).toEqual([])
  })

  it('take two lines for each row of a list on a phone', async () => {
    const { page } = await openStand()
    const rows = ':is(.listed, .two-lines, .open, .kinds, .hosts) tbody tr'
    const tall = `[...document.querySelectorAll('${rows}')].map(row => {
      const { paddingTop, paddingBottom, borderTopWidth } = getComputedStyle(row)
      const inner = row.getBoundingClientRect().height - [paddingTop, paddingBottom, borderTopWidth].reduce((sum, one) => sum + parseFloat(one), 0)
      return inner > 44 ? inner + ' px: ' + row.textContent.replace(/\\s+/g, ' ') : ''
    }).filter(text => text !== '')`
    const found: string[] = []
    const ofInstallation = ['', '/clients', '/scopes', '/capture-keys', `/clients/${world.client}`]
    for (const path of [
      ...ofInstallation.map(one => `/installation${one}`),
      ...['/now', '/batches', '/failed', '/reports', '/audit', '/people'],
    ]) {
      await page.goto(`${bundle.origin}${path}`)
      for (const width of path.startsWith('/installation') ? [375, 320] : [375]) {
        await page.setViewportSize({ width, height: 900 })
        expect(await page.locator(rows).count()).toBeGreaterThan(0)
        found.push(...((await page.evaluate(tall)) as string[]).map(row => `${path} at ${width}: ${row}`))
      }
    }
    expect(found).toEqual([])
    await page.close()
  })

  it('show where the focus is, and lead it in the order in which the page is read', () => {
    expect(wrong.focus).toEqual([])
  })

  it('tell states by glyph and word, and draw charts, in forced colours', () => {
    expect(wrong.forced).toEqual([])
  })

  it('move nothing for people who ask for that', () => {
    expect(wrong.still).toEqual([])
  })

  it('are black on white on paper, without what can only be pressed', () => {
    expect(wrong.paper).toEqual([])
  })

  it('give the focus back where a passkey was refused', async () => {
    const { page, cdp, authenticatorId } = olga
    await page.goto(`${bundle.origin}/batches/${world.paused}/resume`)
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    await press(page, /^Resume 5/)
    await page.getByText('The passkey was not used').waitFor()
    expect(await focused(page)).toMatch(/^Resume 5/)
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
  })

  it('let the rail be skipped, and be a menu that keys open and close on a narrow screen', async () => {
    const { page } = await openStand()
    await page.goto(`${bundle.origin}/batches`)
    expect(await page.getByRole('button', { name: 'Menu' }).isVisible()).toBe(false)
    await press(page, 'Skip to the content')
    expect(await page.evaluate('document.activeElement.id')).toBe('content')
    await page.setViewportSize({ width: 768, height: 900 })
    await page.reload()
    const rail = page.getByRole('navigation')
    expect(await rail.isVisible()).toBe(false)
    await press(page, 'Menu')
    await rail.waitFor()
    await page.keyboard.press('Escape')
    expect(await rail.isVisible()).toBe(false)
    expect(await focused(page)).toBe('Menu')
    await page.keyboard.press('Enter')
    await follow(page, 'Failed')
    expect(page.url()).toBe(`${bundle.origin}/failed`)
    await page.close()
  })

  it('keep the focus while a page is live, and tell nobody every two seconds that all is as it was', async () => {
    const { page } = await openStand()
    await page.clock.install()
    await beat(bundle)
    const beating = setInterval(() => beat(bundle), BEAT_MS)
    onTestFinished(() => clearInterval(beating))
    await page.goto(`${bundle.origin}/now`)
    await page.evaluate(
      `window.told = 0; new MutationObserver(all => { window.told += all.filter(({ target }) => target.parentElement?.closest('[aria-live], [role=status], [role=alert]') ?? target.closest?.('[aria-live], [role=status], [role=alert]')).length }).observe(document, { subtree: true, childList: true, characterData: true })`,
    )
    const set = (text: string) => bundle.rows(`update tokenmill.batch set ${text} where batch_no = $1`, [world.paused])
    const rows = page.locator(`#batch-${world.paused}-rows`)
    await tabTo(page, 'Batches')
    // There is something new to list: the page isn't loaded anew under the person's hands.
    await set('rows_done = 400001, paused_at = null, active_at = now()')
    await page.getByText('The page has changed').waitFor()
    expect(await rows.textContent()).toBe('400,001')
    await page.clock.fastForward(6_000)
    await set('rows_done = 400002')
    await rows.filter({ hasText: '400,002' }).waitFor()
    expect(await focused(page)).toBe('Batches')
    expect(await page.evaluate('window.told')).toBe(0)
    await page.close()
  })

  it('are looked at as the others where the store is away, and say so', async () => {
    const found = noneWrong()
    await withoutStore(bundle, async () => {
      await walkAs({ whose: ', without the store', cookies }, ['/batches', '/display'], found)
    })
    const absent = ['/batches', '/display'].map(path => `${path}, without the store: 503`)
    // Nobody stands before a display to load its page anew, so that does it by itself.
    const again = expect.stringMatching(/^\/display, without the store.*: meta-refresh/)
    expect(found.axe.length).toBeGreaterThan(0)
    expect(found).toEqual({ ...noneWrong(), absent, axe: found.axe.map(() => again) })
  })
})
