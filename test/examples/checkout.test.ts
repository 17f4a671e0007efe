// The example shop in a real browser: from the first field to the token, with the bank's page.
import type { Browser, BrowserContext, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { CODE } from '../../src/simulate/three-ds/cards.ts'
import { CARD } from '../three-ds/samples.ts'
import { describeChromium, openBrowser } from './chromium.ts'
import { openShop, type Shop } from './shop.ts'

const PHONE = { width: 375, height: 667 }
const FIELDS = ['number', 'expiry', 'cvv', 'first', 'last', 'email', 'street', 'city', 'country'] as const
const VALUES: Record<string, string> = {
  expiry: '1230',
  cvv: '739',
  first: 'Ada',
  last: 'Tester',
  email: 'ada@example.com',
  street: 'Test Street 1',
  city: 'Testville',
}

describeChromium('the example shop', () => {
  let shop: Shop
  let browser: Browser
  let context: BrowserContext
  let page: Page
  /** All that the browser sent and received, without headers. */
  const seen: { url: string; sent: string; got: string }[] = []
  const complaints: string[] = []

  beforeAll(async () => {
    ;[shop, browser] = await Promise.all([openShop(), openBrowser()])
  })
  afterAll(async () => {
    await browser?.close()
    await shop?.close()
  })

  async function visit(viewport = { width: 1_280, height: 900 }): Promise<void> {
    await context?.close()
    context = await browser.newContext({ viewport })
    page = await context.newPage()
    page.on('console', message => {
      // A browser reports this if a frame of another origin tries to take the focus; the page gives it the focus
      // (checkout.js).
      const isOurs = !message.text().startsWith('Blocked autofocusing')
      if (message.type() === 'error' && isOurs) complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
    page.on('requestfinished', async request => {
      const response = await request.response()
      const got = await response?.text().catch(() => '')
      seen.push({ url: request.url(), sent: request.postData() ?? '', got: got ?? '' })
    })
    await page.goto(shop.url)
    await page.getByText('€12.50').waitFor()
  }
  async function fill(pan: string): Promise<void> {
    for (const [name, value] of Object.entries({ number: pan, ...VALUES })) await page.fill(`#${name}`, value)
    await page.fill('#expiry', '12/30')
  }
  const focused = () => page.evaluate('document.activeElement.id')
  const token = async () => {
    await page.locator('#done').waitFor()
    return page.textContent('#token')
  }
  const bank = () => page.frameLocator('iframe[name=challenge]')
  const overflow = (of: Page | ReturnType<Page['frame']>) =>
    of?.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

  it('takes a payment that the bank asks about, and keeps the card as a token', async () => {
    await visit()
    await fill(CARD.challengeY)
    await page.click('#pay')
    await bank().getByLabel('One-time code').fill(CODE)
    await bank().getByRole('button', { name: 'Confirm' }).click()
    const kept = await token()
    expect(kept).toMatch(/^t[0-9A-Z]{26}$/)
    expect(await page.textContent('#outcome')).toBe('Confirmed by your bank')
    expect(await page.textContent('#card')).toContain('2503, 12/30')
    const { status, body } = await shop.gateway.call('GET', `/oidc/api/v2/card/${kept}`, {
      authorization: shop.bundle.authorization,
    })
    expect({ status, body }).toMatchObject({ status: 200, body: { last_four: '2503', card_holder_name: 'Ada Tester' } })
  })

  it('is used by keyboard alone, at phone width, the bank’s page included', async () => {
    await visit(PHONE)
    expect(await overflow(page)).toBe(0)
    const { keyboard } = page
    await page.focus('#number')
    for (const [index, name] of FIELDS.entries()) {
      if (index > 0) await keyboard.press('Tab')
      expect(await focused()).toBe(name)
      if (name === 'country') await keyboard.type('Austria')
      else await keyboard.type(name === 'number' ? CARD.mastercardChallenge : (VALUES[name] ?? ''))
    }
    expect(await page.inputValue('#number')).toBe('5200 0000 0000 2151')
    expect(await page.inputValue('#country')).toBe('AT')
    await keyboard.press('Tab')
    expect(await focused()).toBe('pay')
    await keyboard.press('Enter')
    await bank().getByLabel('One-time code').waitFor()
    const frame = page.frame({ name: 'challenge' })
    expect(await overflow(frame)).toBe(0)
    const inCode = () => frame?.evaluate('document.activeElement.id === "code"')
    for (let presses = 0; presses < 5 && !(await inCode()); presses += 1) await keyboard.press('Tab')
    expect(await inCode()).toBe(true)
    await keyboard.type('000000')
    await keyboard.press('Enter')
    await bank().getByRole('alert').waitFor()
    for (let presses = 0; presses < 5 && !(await inCode()); presses += 1) await keyboard.press('Tab')
    await keyboard.type(CODE)
    await keyboard.press('Enter')
    expect(await token()).toMatch(/^t[0-9A-Z]{26}$/)
    expect(await focused()).toBe('done')
    expect(await overflow(page)).toBe(0)
  })

  it('asks for no code where the bank agrees at once', async () => {
    await visit()
    await fill(CARD.Y)
    await page.keyboard.press('Enter')
    expect(await token()).toMatch(/^t/)
    expect(seen.some(({ url }) => url.endsWith('/api/validate'))).toBe(true)
  })

  it('says of a screen of 30 bits what 3-D Secure knows of screens', async () => {
    await visit()
    await page.addInitScript(`Object.defineProperty(Screen.prototype, 'colorDepth', { get: () => 30 })`)
    await page.reload()
    await page.getByText('€12.50').waitFor()
    await fill(CARD.Y)
    await page.click('#pay')
    expect(await token()).toMatch(/^t/)
    const sent = seen.findLast(({ url }) => url.endsWith('/api/lookup'))?.sent ?? ''
    expect(JSON.parse(sent)).toMatchObject({ device_data_info: { browser_color_depth: 24 } })
  })

  it.each([
    ['refuses', CARD.N, 'Please contact your bank about this payment.'],
    ['rejects', CARD.R, 'Your bank refuses this payment.'],
    ['is silent', CARD.malformed, 'Your bank could not be asked. Please try another card.'],
  ])('keeps nothing where the bank %s, and lets the customer try again', async (_, pan, text) => {
    await visit()
    await fill(pan)
    await page.click('#pay')
    await page.getByRole('alert').filter({ hasText: text }).waitFor()
    expect(await page.isEnabled('#pay')).toBe(true)
    const refused = await page.evaluate(
      `fetch('/api/card', { method: 'PUT', headers: { 'content-type': 'application/json' }, body: '{}' }).then(a => a.status)`,
    )
    expect(refused).toBe(403)
    complaints.splice(0, complaints.length, ...complaints.filter(text => !text.includes('403')))
    await fill(CARD.Y)
    await page.click('#pay')
    expect(await token()).toMatch(/^t/)
  })

  it('lets the customer leave the bank’s page, by its own button, by ours and by Escape', async () => {
    await visit()
    await fill(CARD.challengeY)
    await page.click('#pay')
    await bank().getByRole('button', { name: 'Cancel payment' }).click()
    await page.getByRole('alert').filter({ hasText: 'did not confirm' }).waitFor()
    await page.click('#pay')
    await bank().getByLabel('One-time code').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('alert').filter({ hasText: 'You left your bank’s page' }).waitFor()
    await page.click('#pay')
    await bank().getByLabel('One-time code').waitFor()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.getByRole('alert').filter({ hasText: 'You left your bank’s page' }).waitFor()
  })

  it('says beside each field what is wrong, and leads to the first', async () => {
    await visit(PHONE)
    await page.click('#pay')
    expect(await focused()).toBe('number')
    expect(await page.textContent('#number-error')).toBe('Please fill this in.')
    expect(await page.locator('[aria-invalid=true]').count()).toBe(8)
    await fill('4000000000001001')
    await page.fill('#expiry', '01/20')
    await page.click('#pay')
    expect(await page.textContent('#number-error')).toBe('This is not a card number.')
    expect(await page.textContent('#expiry-error')).toContain('to come')
    expect(await page.locator('[aria-invalid=true]').count()).toBe(2)
  })

  it('sends no card number and no security code, is shown no credentials, and nothing was complained of', () => {
    expect(seen.length).toBeGreaterThan(20)
    const lookups = seen.filter(({ url }) => url.endsWith('/api/lookup'))
    expect(lookups.length).toBeGreaterThan(5)
    for (const { url, sent, got } of seen)
      for (const pan of Object.values(CARD)) {
        expect(sent.replaceAll(' ', ''), url).not.toContain(pan)
        expect(url).not.toContain(pan)
        if (!url.startsWith(shop.url)) expect(got, url).not.toContain(pan)
      }
    // With its quotes, because ciphertext may hold the three letters by chance.
    for (const { sent } of lookups) expect(sent).not.toContain('"cvv"')
    for (const { got, url } of seen) expect(got, url).not.toContain(shop.apiKey)
    expect(complaints).toEqual([])
  })
})
