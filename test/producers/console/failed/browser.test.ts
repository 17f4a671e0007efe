// Failed jobs that are ticked in the list, in a real browser: by keys, by a pointer and without scripts, the page of the act counts
// those that are ticked, and one touch does these and no others. Any violation of the content security policy fails the test.
import type { Browser, Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest'
import { failedDiscard, failedList } from '../../../../src/queue/failed.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { failCopy, KIND } from '../../../workers/act/failed-copies.ts'
import { type ConsoleBundle, openConsoleBundle } from '../bundle.ts'
import { focused, follow, press, tabTo } from '../looks/keys.ts'
import { enrolled, listenTo, type Seat } from '../seats.ts'

/** Three jobs, and what the list calls their boxes. */
interface Failed {
  ids: string[]
  boxes: string[]
}

describeChromium('ticked failed jobs', () => {
  let bundle: ConsoleBundle
  let browser: Browser
  let ada: Seat
  const complaints: string[] = []
  beforeAll(async () => {
    ;[bundle, browser] = await Promise.all([openConsoleBundle(), openBrowser()])
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    ada = await enrolled({ bundle, browser, complaints }, 'ada', ['ADMIN'])
  })
  afterAll(async () => {
    await browser?.close()
    await bundle?.close()
  })
  beforeEach(async () => {
    for (const { id } of await failedList(queues(), KIND)) await failedDiscard(queues(), KIND, id)
  })
  afterEach(() => expect(complaints.splice(0)).toEqual([]))

  const queues = () => bundle.installation.queues
  const fail = (failedAt: number) => failCopy(queues(), { credentials: bundle.installation.credentials, failedAt })
  const boxOf = (failedAt: number) => `The ${KIND} that failed at ${new Date(failedAt).toISOString().slice(11, 19)}`
  async function failThree(): Promise<Failed> {
    const now = Date.now()
    const times = [3, 2, 1].map(minutes => now - minutes * 60_000)
    const copies = await Promise.all(times.map(fail))
    return { ids: copies.map(({ id }) => id), boxes: times.map(boxOf) }
  }
  const left = async () => (await failedList(queues(), KIND)).map(({ id }) => id).sort()
  const open = (page: Page) => page.goto(`${bundle.origin}/failed?kind=${KIND}`)
  /** What the audit says was done to one of these jobs. */
  const done = (ids: string[]) =>
    bundle.rows<{ action: string; subject: string }>(
      `select action, subject from tokenmill.audit where subject = any ($1) and outcome = 'done' order by subject`,
      [ids],
    )
  const rowsOf = (action: string, ids: string[]) => ids.toSorted().map(subject => ({ action, subject }))

  it('are sent again by keys alone, exactly these, and the focus is led on', async () => {
    const { ids, boxes } = await failThree()
    const [first = '', second = '', third = ''] = ids
    const { page, cdp, authenticatorId } = ada
    const waiting = (await queues().depth(KIND)).waiting
    await open(page)
    // The newest stands first. One is ticked and unticked.
    for (const box of [boxes[2], boxes[1], boxes[0]]) {
      await tabTo(page, box ?? '')
      await page.keyboard.press('Space')
      expect(await focused(page)).toBe(box)
      if (box === boxes[1]) await page.keyboard.press('Space')
    }
    await follow(page, 'Retry the ticked…')
    expect(await page.textContent('h1')).toBe('Retry failed jobs')
    expect(await page.textContent('dl.facts')).toContain('Ticked2 jobs')
    await page.waitForLoadState()
    // Another job fails after the page was made, and the passkey is refused once.
    const late = (await fail(Date.now() - 1_000)).id
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: false })
    await press(page, 'Retry 2 jobs')
    await page.getByText('The passkey was not used').waitFor()
    expect(await focused(page)).toBe('Retry 2 jobs')
    expect(await left()).toEqual([...ids, late].sort())
    await cdp.send('WebAuthn.setUserVerified', { authenticatorId, isUserVerified: true })
    await page.keyboard.press('Enter')
    await page.locator('.verdict.done').waitFor()
    expect(await focused(page)).toMatch(/^Done\. 2 jobs sent again/)
    expect(await page.textContent('main')).toContain('2 jobs that were ticked')
    expect(await left()).toEqual([second, late].sort())
    expect((await queues().depth(KIND)).waiting).toBe(waiting + 2)
    expect(await done([...ids, late])).toEqual(rowsOf('failed.retry', [first, third]))
    await follow(page, 'Failed jobs of this kind')
    expect(page.url()).toContain(`/failed?kind=${KIND}&`)
  })

  it('are discarded with a pointer, on a desk and on a phone, exactly these', async () => {
    const { page } = ada
    for (const width of [1_440, 375]) {
      await page.setViewportSize({ width, height: 900 })
      const { ids, boxes } = await failThree()
      const before = await left()
      await open(page)
      for (const box of boxes) await page.getByRole('checkbox', { name: box }).click()
      await page.getByRole('checkbox', { name: boxes[1] ?? '' }).click()
      await page.getByRole('button', { name: 'Discard the ticked…' }).click()
      expect(await page.textContent('dl.facts')).toContain('Ticked2 jobs')
      await page.getByLabel(/^Why\?/).fill('not needed')
      await page.getByRole('button', { name: 'Discard 2 jobs' }).click()
      await page.locator('.verdict.done').waitFor()
      expect(await focused(page)).toMatch(/^Done\. 2 jobs discarded/)
      const gone = [ids[0] ?? '', ids[2] ?? '']
      expect(await left()).toEqual(before.filter(id => !gone.includes(id)))
      expect(await done(ids)).toEqual(rowsOf('failed.discard', gone))
    }
    await page.setViewportSize({ width: 1_440, height: 900 })
  })

  it('are counted without scripts, which say what is missing for the touch', async () => {
    const { ids, boxes } = await failThree()
    const context = await browser.newContext({ javaScriptEnabled: false })
    const cookies = await ada.context.cookies()
    await context.addCookies(cookies.map(({ name, value }) => ({ name, value, url: bundle.origin })))
    const page = await context.newPage()
    listenTo(page, complaints)
    await open(page)
    for (const box of boxes.slice(1)) await page.getByRole('checkbox', { name: box }).check()
    await page.getByRole('button', { name: 'Retry the ticked…' }).click()
    await page.waitForURL('**/failed/ticked/retry?*')
    expect(await page.textContent('dl.facts')).toContain('Ticked2 jobs')
    expect(await page.textContent('button.main')).toBe('Retry 2 jobs')
    expect(await page.textContent('main')).toContain('This needs scripts')
    for (const id of ids.slice(1)) expect(await page.textContent('p.same code')).toContain(id)
    // Whoever presses it nevertheless is told why nothing was done, and of the same jobs.
    await page.getByRole('button', { name: 'Retry 2 jobs' }).click()
    await page.getByText('This needs your passkey, and so scripts.').waitFor()
    expect(await page.textContent('button.main')).toBe('Retry 2 jobs')
    expect(await left()).toEqual(ids.toSorted())
    await context.close()
  })
})
