// Browsers of people for tests of the console, each with an authenticator that verifies its user. What a page complains of, above
// all a violation of the content security policy, is gathered: a test expects none.
import type { Browser, BrowserContext, BrowserContextOptions, CDPSession, Page } from 'playwright-core'
import { invitePerson } from '../../../src/acts/person.ts'
import type { PersonRole } from '../../../src/store/person/persons.ts'
import type { ConsoleBundle } from './bundle.ts'

/** A browser of one person. */
export interface Seat {
  context: BrowserContext
  page: Page
  cdp: CDPSession
  authenticatorId: string
}

/** `complaints`: what pages complain of is added. */
export interface SeatDeps {
  bundle: ConsoleBundle
  browser: Browser
  complaints: string[]
}

/** Gathers what a page complains of. The status of an answer is no complaint: tests ask for refused pages, too. */
export function listenTo(page: Page, complaints: string[]): void {
  page.on('console', message => {
    const isStatus = /the server responded with a status of/.test(message.text())
    if (message.type() === 'error' && !isStatus) complaints.push(message.text())
  })
  page.on('pageerror', error => complaints.push(error.message))
  page.on('dialog', dialog => complaints.push(`a dialog: ${dialog.message()}`))
}

export async function takeSeat(
  { browser, complaints }: Pick<SeatDeps, 'browser' | 'complaints'>,
  options: BrowserContextOptions = {},
): Promise<Seat> {
  const context = await browser.newContext({ viewport: { width: 1_440, height: 900 }, ...options })
  const page = await context.newPage()
  listenTo(page, complaints)
  const cdp = await context.newCDPSession(page)
  await cdp.send('WebAuthn.enable')
  const { authenticatorId } = await cdp.send('WebAuthn.addVirtualAuthenticator', {
    options: {
      protocol: 'ctap2',
      transport: 'internal',
      hasResidentKey: true,
      hasUserVerification: true,
      isUserVerified: true,
      automaticPresenceSimulation: true,
    },
  })
  return { context, page, cdp, authenticatorId }
}

/** The link of a new invite. */
export async function invite(
  { installation, origin }: Pick<ConsoleBundle, 'installation' | 'origin'>,
  name: string,
  roles: PersonRole[],
  entities: string[] | null = null,
): Promise<string> {
  const by = { actor: { kind: 'machine' as const, id: 'test' }, reason: undefined }
  const deps = { ...installation.vault, rpId: 'localhost' }
  const invited = await invitePerson(deps, { name, roles, entities }, by, Date.now())
  if ('refused' in invited) throw new Error(invited.refused)
  return `${origin}/welcome#${invited.done.secret}`
}

export async function signIn({ page }: Pick<Seat, 'page'>, origin: string): Promise<void> {
  await page.goto(`${origin}/sign-in`)
  await page.getByRole('button', { name: 'Sign in with a passkey' }).click()
  await page.waitForURL('**/now')
}

/** A person who came by an invite and signed in with the passkey that it ended in. */
export async function enrolled(
  deps: SeatDeps,
  name: string,
  roles: PersonRole[],
  entities: string[] | null = null,
): Promise<Seat> {
  const seat = await takeSeat(deps)
  await seat.page.goto(await invite(deps.bundle, name, roles, entities))
  await seat.page.getByRole('button', { name: 'Continue' }).click()
  await seat.page.getByText('Your passkey is enrolled').waitFor()
  await signIn(seat, deps.bundle.origin)
  return seat
}
