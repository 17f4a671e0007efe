// People in a real browser: an administrator invites with a touch, the secret of the link is sent to nobody, and who opens the
// link is that person. Any violation of the content security policy fails the test.
import type { Browser, BrowserContext, Locator, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { invitePerson } from '../../../../src/acts/person.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { type ConsoleBundle, OURS, openConsoleBundle } from '../bundle.ts'

describeChromium('the page People', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  let ada: Page
  const complaints: string[] = []
  /** What any page sent. */
  const sent: string[] = []

  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    const by = { actor: { kind: 'machine' as const, id: 'test' }, reason: undefined }
    const person = { name: 'ada', roles: ['ADMIN' as const], entities: null }
    const site = { ...bundle.installation.vault, rpId: 'localhost' }
    const invited = await invitePerson(site, person, by, Date.now())
    if ('refused' in invited) throw new Error(invited.refused)
    ada = await takeSeat()
    await enrol(ada, `${bundle.origin}/welcome#${invited.done.secret}`)
  })
  afterAll(async () => {
    await browser?.close()
    await bundle?.close()
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  async function takeSeat(): Promise<Page> {
    const context: BrowserContext = await browser.newContext({ viewport: { width: 1_440, height: 900 } })
    await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin: bundle.origin })
    const page = await context.newPage()
    page.on('request', request => sent.push(`${request.url()} ${request.postData() ?? ''}`))
    page.on('console', message => {
      if (message.type() === 'error' && !/the server responded with a status of/.test(message.text()))
        complaints.push(message.text())
    })
    page.on('pageerror', error => complaints.push(error.message))
    const cdp = await context.newCDPSession(page)
    await cdp.send('WebAuthn.enable')
    const options = {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    } as const
    await cdp.send('WebAuthn.addVirtualAuthenticator', { options })
    return page
  }
  async function enrol(page: Page, link: string): Promise<void> {
    await page.goto(link)
    await page.getByRole('button', { name: 'Continue' }).click()
    await page.getByText('Your passkey is enrolled').waitFor()
    await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
    await page.waitForURL('**/now')
  }
  /** Until the modules of the next page run. */
  const follow = async (page: Page, link: Locator) => {
    const loaded = page.waitForEvent('load')
    await link.press('Enter')
    await loaded
  }
  const sideways = (page: Page) =>
    page.evaluate('document.documentElement.scrollWidth - document.documentElement.clientWidth')
  const linkOn = async (page: Page) => {
    await page.getByText('It is shown only now.').waitFor()
    return (await page.textContent('[data-link]')) ?? ''
  }

  it('invites with a touch by a link whose secret no server gets, and the person who opens it is who was meant', async () => {
    await ada.goto(`${bundle.origin}/people`)
    await follow(ada, ada.getByRole('link', { name: 'Invite a person…' }))
    await ada.getByLabel(/^Name/).fill('bea')
    await ada.getByRole('checkbox', { name: /^OPERATOR/ }).check()
    await ada.getByRole('radio', { name: /^Only what belongs/ }).check()
    await ada.getByLabel(/^Entities, one/).fill(OURS)
    await ada.getByLabel(/^Why\?/).fill('works from today')
    await ada.getByRole('button', { name: 'Invite this person' }).click()
    const link = await linkOn(ada)
    expect(link).toMatch(new RegExp(`^${bundle.origin}/welcome#[A-Za-z0-9_-]{43}$`))
    await ada.getByRole('button', { name: 'Copy the link' }).click()
    await ada.getByText('Copied', { exact: true }).waitFor()
    expect(await ada.evaluate('navigator.clipboard.readText()')).toBe(link)
    await ada.setViewportSize({ width: 375, height: 800 })
    expect(await sideways(ada)).toBe(0)
    await ada.setViewportSize({ width: 1_440, height: 900 })
    await ada.reload()
    await ada.getByText('It was shown once').waitFor()
    expect(await ada.textContent('main')).not.toContain(link)
    expect(await ada.evaluate('sessionStorage.length')).toBe(0)
    const secret = link.slice(link.indexOf('#') + 1)
    expect(sent.filter(text => text.includes('lookup_hash'))).toHaveLength(2)
    expect(sent.filter(text => text.includes(secret))).toEqual([])
    const bea = await takeSeat()
    await enrol(bea, link)
    const [row] = await bundle.rows(
      `select p.roles, p.entities, i.invited_by = 'person:' || a.person_id as by from tokenmill.person as p
join tokenmill.invite as i on i.name = p.name join tokenmill.person as a on a.name = 'ada' where p.name = 'bea'`,
    )
    expect(row).toEqual({ roles: ['OPERATOR'], entities: [OURS], by: true })
    expect(await bea.locator('.rail').textContent()).not.toContain('People')
    expect((await bea.goto(`${bundle.origin}/people`))?.status()).toBe(404)
    await bea.context().close()
  })

  it('changes rights, makes a new link and revokes, each with a touch, by keyboard, and leads back', async () => {
    await ada.goto(`${bundle.origin}/people`)
    await follow(ada, ada.getByRole('link', { name: 'bea', exact: true }))
    const page = ada.url()
    await follow(ada, ada.getByRole('link', { name: 'Change roles' }))
    expect(await ada.getByRole('checkbox', { name: /^OPERATOR/ }).isChecked()).toBe(true)
    expect(await ada.getByLabel(/^Entities, one/).inputValue()).toBe(OURS)
    await ada.getByRole('checkbox', { name: /^VIEWER/ }).press('Space')
    await ada.getByRole('button', { name: 'Change roles and entities' }).press('Enter')
    await ada.getByText('Done.').waitFor()
    expect(await ada.textContent('main')).toContain('VIEWER, OPERATOR')
    await ada.goto(page)
    await follow(ada, ada.getByRole('link', { name: 'Make a new link' }))
    await ada.getByRole('button', { name: 'Make a new link for bea' }).press('Enter')
    expect(await linkOn(ada)).toContain('/welcome#')
    await follow(ada, ada.getByRole('main').getByRole('link', { name: 'People', exact: true }))
    await follow(ada, ada.getByRole('link', { name: 'Revoke…' }))
    await ada.getByRole('button', { name: 'Revoke the invite of bea' }).press('Enter')
    await ada.getByText('Done.').waitFor()
    await ada.goto(`${page}/revoke`)
    await ada.getByRole('button', { name: 'Revoke bea' }).press('Enter')
    await ada.getByText('Done.').waitFor()
    const [left] = await bundle.rows(
      `select (select count(*) from tokenmill.person where name = 'bea' and revoked_at is null) as people,
  (select count(*) from tokenmill.invite where used_at is null) as invites`,
    )
    expect(left).toEqual({ people: 0, invites: 0 })
    await bundle.rows(
      `insert into tokenmill.person_identity (identity_id, person_id, issuer, subject) values (gen_random_uuid(), $1, $2, $3)`,
      [page.slice(-36), `https://login.example.com/${'realm'.repeat(40)}`, 'subject'.repeat(36)],
    )
    await ada.setViewportSize({ width: 375, height: 800 })
    for (const path of ['/people', '/people/invite', page.slice(bundle.origin.length)]) {
      await ada.goto(`${bundle.origin}${path}`)
      expect([path, await sideways(ada)]).toEqual([path, 0])
    }
  })
})
