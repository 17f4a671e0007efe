// Sign-in by OpenID in a real browser, on another site than the console: an account is connected with a touch, signs in, and is
// disconnected. Any violation of the content security policy fails the test.
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { invitePerson } from '../../../../src/acts/person.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { NAME, type OpenIdBundle, openOpenIdBundle } from './bundle.ts'

describeChromium('OpenID', () => {
  let bundle: OpenIdBundle
  let browser: Browser
  let page: Page
  const complaints: string[] = []

  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openOpenIdBundle(), openBrowser()])
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    bundle.provider.open(`${bundle.origin}/openid/callback`)
    bundle.provider.account = { subject: 'ada-at-keycloak', email: 'ada@example.com' }
    page = await (await browser.newContext({ viewport: { width: 375, height: 800 } })).newPage()
    page.on('console', message => {
      const isStatus = /the server responded with a status of/.test(message.text())
      if (message.type() === 'error' && !isStatus) complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
    const cdp = await page.context().newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    await cdp.send('WebAuthn.addVirtualAuthenticator', {
      options: {
        protocol: 'ctap2',
        transport: 'internal',
        hasResidentKey: true,
        hasUserVerification: true,
        isUserVerified: true,
        automaticPresenceSimulation: true,
      },
    })
  })
  afterAll(async () => {
    await browser?.close()
    await bundle?.close()
  })

  const press = (name: string) => page.getByRole('button', { name, exact: true }).click()
  const sideways = () => page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')

  it('connects, signs in by it, and acts with the passkey only', async () => {
    const by = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
    const person = { name: 'ada', roles: ['ADMIN' as const], entities: null }
    const invited = await invitePerson({ ...bundle.installation.vault, rpId: 'localhost' }, person, by, Date.now())
    if (!('done' in invited)) return expect.fail()
    await page.goto(`${bundle.origin}/welcome#${invited.done.secret}`)
    await press('Continue')
    await page.getByText('Your passkey is enrolled').waitFor()
    // Nobody is connected yet.
    await press(`Sign in with ${NAME}`)
    await page.getByText('no person here is connected').waitFor()
    await page.goto(`${bundle.origin}/sign-in`)
    await press('Sign in with a passkey')
    await page.waitForURL('**/now')
    await page.goto(`${bundle.origin}/passkeys`)
    await press(`Connect ${NAME}…`)
    await page.waitForURL('**/identities/connect')
    expect(await page.textContent('main')).toContain('ada-at-keycloak')
    expect(await sideways()).toBe(0)
    await press('Connect this account')
    await page.getByText('The account signs you in from now on.').waitFor()
    await page.goto(`${bundle.origin}/passkeys`)
    expect(await page.textContent('main')).toContain('ada-at-keycloak')
    expect(await sideways()).toBe(0)

    await press('Sign out')
    await page.goto(`${bundle.origin}/batches`)
    await press(`Sign in with ${NAME}`)
    await page.waitForURL('**/batches')
    const cookies = await page.context().cookies(bundle.origin)
    expect(cookies.filter(({ name }) => name.startsWith('tokenmill'))).toMatchObject([
      { name: 'tokenmill-console', httpOnly: true, sameSite: 'Lax' },
    ])
    await page.goto(`${bundle.origin}/sessions`)
    expect(await page.textContent('main')).toContain(NAME)
    expect(await sideways()).toBe(0)
    const no = await bundle.addBatch({ batchId: 'by-passkey' })
    await page.goto(`${bundle.origin}/batches/${no}/cancel`)
    await page.locator('button.main').click()
    await page.waitForURL('**/acts/*')
    await page.getByText('Done.').waitFor()

    await page.goto(`${bundle.origin}/passkeys`)
    await page.getByRole('link', { name: 'Disconnect…' }).click()
    await press('Disconnect this account')
    await page.getByText('The account signs you in no more.').waitFor()
    // This session goes on with the passkey that was touched.
    await page.goto(`${bundle.origin}/sessions`)
    expect(await page.textContent('main')).toMatch(/passkey/)
    await press('Sign out')
    await press(`Sign in with ${NAME}`)
    await page.getByText('no person here is connected').waitFor()
    const acts = await bundle.rows<{ action: string; sub: string }>(
      `select action, detail->>'sub' as sub from tokenmill.audit where action like 'identity.%' and outcome = 'done'
order by audit_id`,
    )
    expect(acts).toEqual(
      ['identity.connect', 'identity.disconnect'].map(action => ({ action, sub: 'ada-at-keycloak' })),
    )
    expect(complaints).toEqual([])
  })
})
