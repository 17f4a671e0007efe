// How a person without a mouse does each act of the console: by which links and buttons, and where the focus is afterwards. Each walk
// makes what it is done to. by-keys.test.ts goes them in the order of ACTS.
import { setTimeout as pause } from 'node:timers/promises'
import type { Page } from 'playwright-core'
import { expect } from 'vitest'
import type { ActName } from '../../../../src/job/system/act.ts'
import { until } from '../../../support/until.ts'
import { failCopy, KIND } from '../../../workers/act/failed-copies.ts'
import { type BatchOptions, OURS } from '../bundle.ts'
import { focused, follow, press, tabTo } from '../looks/keys.ts'
import type { OpenIdBundle } from '../openid/bundle.ts'
import { invite, type Seat } from '../seats.ts'

export interface Hands {
  bundle: OpenIdBundle
  /** An administrator for all entities. */
  ada: Seat
  takeSeat(): Promise<Seat>
}

type Walk = (hands: Hands) => Promise<void>

/** The account at the provider that is connected. */
export const ACCOUNT = { subject: 'ada-at-keycloak', email: 'ada@example.com' }

/** How often the page of an act that is under way asks, in ms. */
const ASK_MS = 2_000

export async function open({ bundle, ada }: Hands, path: string): Promise<void> {
  await ada.page.goto(`${bundle.origin}${path}`)
  await skip(ada.page)
}

/** Goes to another page, until its modules run, and past its rail. */
export async function go(page: Page, name: string | RegExp): Promise<void> {
  await follow(page, name)
  await page.waitForLoadState()
  await skip(page)
}

async function skip(page: Page): Promise<void> {
  await press(page, 'Skip to the content')
  await page.waitForURL(/#content$/)
}

export async function write(page: Page, field: string | RegExp, text: string): Promise<void> {
  await tabTo(page, field)
  await page.keyboard.type(text)
}

/** Presses the button of an act. Its verdict gets the focus. */
async function decide(page: Page, button: string | RegExp): Promise<void> {
  await press(page, button)
  await page.waitForURL(/\/acts\//)
  await until(async () => (await page.locator('.verdict.done').isVisible()) || (await page.clock.fastForward(ASK_MS)), {
    what: 'a verdict',
  })
  await until(async () => (await focused(page)).startsWith('Done.'), { what: 'the focus on the verdict' })
}

async function onBatch(hands: Hands, batch: BatchOptions, link: string, button: RegExp): Promise<void> {
  const { page } = hands.ada
  await hands.bundle.addBatch(batch)
  await open(hands, '/batches')
  await go(page, batch.batchId ?? '')
  await go(page, link)
  await write(page, /No card numbers/, 'by keys')
  await decide(page, button)
  await go(page, 'Back to the batch')
}

/** Two jobs that failed, and the list of their kind, which the filter was asked for. */
/** A browser forgets the letters that were typed in a list after a second, and takes the next for a new word. */
const FORGETS_MS = 1_500

/** Types the word in the list that has the focus, again where a busy machine typed too slowly. */
async function choose(page: Page, list: string, word: string): Promise<void> {
  await until(
    async () => {
      await page.keyboard.type(word)
      if ((await page.locator(list).inputValue()) === word) return true
      await pause(FORGETS_MS)
      return false
    },
    { what: `${word} in ${list}` },
  )
}

async function toFailed(hands: Hands): Promise<void> {
  const { credentials, queues } = hands.bundle.installation
  const { page } = hands.ada
  const times = [120_000, 60_000].map(ms => Date.now() - ms)
  await Promise.all(times.map(failedAt => failCopy(queues, { credentials, failedAt })))
  await open(hands, '/failed')
  await tabTo(page, 'Kind')
  await choose(page, '#kind', KIND)
  await go(page, 'Show')
}

async function decideFailed(page: Page, button: string): Promise<void> {
  await decide(page, button)
  await go(page, 'Failed jobs of this kind')
}

async function onSchedule(hands: Hands, more: string | undefined, link: string, button: RegExp): Promise<void> {
  const { page } = hands.ada
  const { clientId } = hands.bundle.installation.credentials.signingKey
  await hands.bundle.rows('delete from tokenmill.schedule_run')
  await hands.bundle.rows('delete from tokenmill.schedule')
  await hands.bundle.rows(
    `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone, paused_at)
select gen_random_uuid(), 'report', client_id, 'PARTNER_COMMISSION_REPORT', entities[1], 'text/csv', '02:00', 'Europe/Zurich', ${more ?? 'null'}
from tokenmill.client where client_id = $1`,
    [clientId],
  )
  await open(hands, '/reports')
  await go(page, 'Partner commission report')
  await go(page, link)
  await decide(page, button)
  await go(page, 'Back to the schedule')
}

/** Opens the page of one person from the list. */
async function toPerson(hands: Hands, name: string): Promise<void> {
  await open(hands, '/people')
  await go(hands.ada.page, name)
}

/** The module has made the secret of a link. */
const hasKey = (page: Page) =>
  until(async () => (await page.evaluate(`document.querySelector('[name=public_key]').value`)) !== '', {
    what: 'a key of the link',
  })

/** The link is shown after the verdict, and is copied without leaving the button. */
async function copyLink(page: Page): Promise<void> {
  await press(page, 'Copy the link')
  await page.getByText('Copied', { exact: true }).waitFor()
  expect(await focused(page)).toBe('Copy the link')
}

async function takeCsv(page: Page, button: string): Promise<void> {
  const [download] = await Promise.all([page.waitForEvent('download'), press(page, button)])
  expect(download.suggestedFilename()).toMatch(/\.csv$/)
  // The page stays, and the person on it.
  expect(await focused(page)).toBe(button)
}

const SECOND = {
  ...({ protocol: 'ctap2', transport: 'usb', hasResidentKey: true, hasUserVerification: true } as const),
  isUserVerified: true,
  automaticPresenceSimulation: true,
}

/** By a passkey that a second device makes and the first one confirms; the first is the one in use again. */
async function addPasskey(hands: Hands): Promise<void> {
  const { page, cdp, authenticatorId: first } = hands.ada
  const hold = (authenticatorId: string, enabled: boolean) =>
    cdp.send('WebAuthn.setAutomaticPresenceSimulation', { authenticatorId, enabled })
  const { authenticatorId: second } = await cdp.send('WebAuthn.addVirtualAuthenticator', { options: SECOND })
  await hold(first, false)
  await page.route('**/passkeys/add/touch', async route => {
    await hold(second, false)
    await hold(first, true)
    await route.continue()
  })
  await open(hands, '/sessions')
  await go(page, 'Your passkeys')
  await go(page, 'Add a passkey…')
  await decide(page, 'Add a passkey')
  await page.unroute('**/passkeys/add/touch')
  await go(page, 'Your passkeys')
}

export const WALKS = {
  'batch.pause': hands => onBatch(hands, { batchId: 'keys-pause' }, 'Pause…', /^Pause 1,000 rows/),
  'batch.resume': hands =>
    onBatch(hands, { batchId: 'keys-resume', more: 'paused_at = now()' }, 'Resume…', /^Resume 1,000 rows/),
  'batch.cancel': hands => onBatch(hands, { batchId: 'keys-cancel' }, 'Cancel…', /^Cancel 1,000 rows/),
  'batch.note': hands => onBatch(hands, { batchId: 'keys-note' }, 'Write a note…', /^Write this note/),

  async 'failed.retry'(hands) {
    const { page } = hands.ada
    await toFailed(hands)
    await go(page, KIND)
    await go(page, 'Retry…')
    await decideFailed(page, 'Retry 1 job')
    await go(page, 'Retry all of these…')
    await decideFailed(page, 'Retry 1 job')
  },
  async 'failed.discard'(hands) {
    const { page } = hands.ada
    await toFailed(hands)
    await tabTo(page, /^The report that failed at/)
    await page.keyboard.press('Space')
    await go(page, 'Discard the ticked…')
    await decideFailed(page, 'Discard 1 job')
  },

  'schedule.pause': hands => onSchedule(hands, undefined, 'Pause…', /^Pause this schedule/),
  'schedule.resume': hands => onSchedule(hands, 'now()', 'Resume…', /^Resume this schedule/),
  'schedule.run': hands => onSchedule(hands, undefined, 'Run a day now…', /^Run \d{4}-\d\d-\d\d now/),

  async 'person.enrol'({ bundle, takeSeat }) {
    const { page, context } = await takeSeat()
    await page.goto(await invite(bundle, 'bea', ['VIEWER']))
    await press(page, 'Continue')
    await page.getByText('Your passkey is enrolled').waitFor()
    await go(page, 'Sign in with a passkey')
    expect(new URL(page.url()).pathname).toBe('/now')
    await context.close()
  },
  'passkey.add': addPasskey,
  async 'passkey.remove'(hands) {
    const { page } = hands.ada
    // The oldest stands first, which the person touches; the new one goes.
    await open(hands, '/passkeys')
    await tabTo(page, 'Remove…')
    await go(page, 'Remove…')
    await decide(page, 'Remove this passkey')
    await go(page, 'Your passkeys')
  },

  async 'list.exported'(hands) {
    const { page } = hands.ada
    const no = await hands.bundle.addBatch({ batchId: 'keys-refused', counts: { REJECTED: 1 }, rowsDone: 1 })
    await toFailed(hands)
    await takeCsv(page, 'These jobs as CSV')
    for (const [path, button] of [
      ['/batches', 'These batches as CSV'],
      [`/batches/${no}/refused`, 'Refused rows as CSV'],
      ['/audit?act=list.exported', 'These rows as CSV'],
    ] as const) {
      await open(hands, path)
      await takeCsv(page, button)
    }
  },

  async 'identity.connect'(hands) {
    const { page } = hands.ada
    await open(hands, '/passkeys')
    await press(page, /^Connect Keycloak/)
    await page.waitForURL('**/identities/connect')
    await decide(page, 'Connect this account')
    await go(page, 'Your passkeys')
  },
  async 'identity.disconnect'(hands) {
    const { page } = hands.ada
    await open(hands, '/passkeys')
    await go(page, 'Disconnect…')
    await decide(page, 'Disconnect this account')
    await go(page, 'Your passkeys')
  },

  async 'person.invite'(hands) {
    const { page } = hands.ada
    await open(hands, '/people')
    await go(page, 'Invite a person…')
    await write(page, /^Name\./, 'nora')
    await tabTo(page, /^OPERATOR/)
    await page.keyboard.press('Space')
    // Arrows go from one choice to the next.
    await tabTo(page, /^All entities/)
    await page.keyboard.press('ArrowDown')
    await write(page, /^Entities, one/, OURS)
    await write(page, /^Account at Keycloak/, 'nora-at-keycloak')
    await write(page, /^Why\?/, 'works from today')
    await hasKey(page)
    await decide(page, 'Invite this person')
    expect(await page.textContent('main')).toContain('nora-at-keycloak at ')
    await copyLink(page)
    await go(page, 'People')
  },
  async 'person.change'(hands) {
    const { page } = hands.ada
    await toPerson(hands, 'bea')
    await go(page, 'Change roles and entities…')
    await tabTo(page, /^OPERATOR/)
    await page.keyboard.press('Space')
    await decide(page, 'Change roles and entities')
    await go(page, 'bea')
  },
  async 'person.link'(hands) {
    const { page } = hands.ada
    await toPerson(hands, 'bea')
    await go(page, 'Make a new link…')
    await hasKey(page)
    await decide(page, 'Make a new link for bea')
    await copyLink(page)
    await go(page, 'bea')
  },
  async 'person.revoke'(hands) {
    const { page } = hands.ada
    await toPerson(hands, 'bea')
    await go(page, 'Revoke…')
    await decide(page, 'Revoke bea')
    await go(page, 'People')
  },
  async 'invite.revoke'(hands) {
    const { page } = hands.ada
    await open(hands, '/people')
    await go(page, 'Revoke…')
    await decide(page, 'Revoke the invite of nora')
    await go(page, 'People')
  },
} satisfies Record<ActName, Walk> as Readonly<Record<string, Walk | undefined>>
