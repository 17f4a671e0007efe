// The page of one batch stays live: each figure is that of `batch show` of the same revision, it is told to whom the batch is to see
// and to nobody else, and the stream ends with the batch. In a browser, the open page follows. Any violation of the content
// security policy fails the test. Each of these waits for news of a turn of two seconds, so they wait together.
import { randomUUID } from 'node:crypto'
import type { Browser, Locator, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openFacts, viewOf } from '../../../../producers/console/batches/facts.ts'
import { openLog } from '../../../../src/log.ts'
import { sightOf } from '../../../../src/store/sight.ts'
import { describeChromium, openBrowser } from '../../../examples/chromium.ts'
import { runCommand } from '../../../support/command.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'
import { heard, type Message, openListener, type Reading } from '../live/listen.ts'

const HOSTILE = `"><img src=x onerror=alert(1)>@value`
/** A batch at work, of which an hour is done. It was active just now for as long as the test lasts: no worker is heard here. */
const AT_WORK = `created_at = now() - interval '1 hour', active_at = now() + interval '10 minutes', extent_chunks = 10, chunks_done = 4`

let bundle: ConsoleBundle
let ada: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
})
afterAll(() => {
  stop()
  return bundle?.close()
})
const { listen, stop } = openListener(() => bundle.origin)

/** A session has four streams at most, so each is opened by another person. */
const watch = async (no: number, person?: Person) =>
  listen((person ?? (await bundle.addPerson(randomUUID()))).cookie, { path: `/batches/${no}/live` })
const pageOf = async (no: number, { cookie }: Person = ada) =>
  (await bundle.call('GET', `/batches/${no}`, { cookie })).text
const set = (no: number, text: string) => bundle.rows(`update tokenmill.batch set ${text} where batch_no = $1`, [no])
const isShaped = async (no: number, person: Person, { shape }: Message) =>
  (await pageOf(no, person)).includes(`data-shape="${shape}"`)
/** All that the browser knows after these messages. */
const textsOf = ({ messages }: Reading) =>
  Object.assign({}, ...messages.map(({ texts }) => texts)) as Record<string, string>
const next = (reading: Reading, holds: (message: Message) => boolean) =>
  until(() => reading.messages.find(holds), { what: 'the news' })
const command = async (...words: string[]) => (await runCommand(words, { env: bundle.installation.env })).stdout

async function addReceipt(batchNo: number, counts: Record<string, number>): Promise<void> {
  await bundle.rows(
    `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, revision, attempt, accepted_at, completed_at)
values (gen_random_uuid(), current_date, 'c', 'c', 'token-batch', $1, '', '', 'SUCCEEDED', 200, $2, 3, $3, 1, 1, now(), now())`,
    [randomUUID(), batchNo, JSON.stringify(counts)],
  )
}

const addSamples = (no: number) =>
  bundle.rows(
    `insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
values ($1, now() - interval '1 hour', 0, 0, 'RUNNING'), ($1, now() - interval '9 minutes', 400, 0, 'RUNNING')`,
    [no],
  )

describe.concurrent('the page of a batch, live', () => {
  describe('the stream of a batch', () => {
    it('has the figures of batch show --json, of each revision', async () => {
      const batchId = 'same-live-figures'
      const no = await bundle.addBatch({
        batchId,
        extentRows: 90_000,
        rowsDone: 40_000,
        counts: { CREATED: 39_000, REJECTED: 1_000 },
        more: `${AT_WORK}, reasons = '{"REJECTED": {"pan_luhn": 600, "card_expired": 400}}'`,
      })
      await addReceipt(no, { CREATED: 5_000, REJECTED: 1_000 })
      const reading = await watch(no)
      const same = async () => {
        const shown = JSON.parse(await command('batch', 'show', batchId, '--json'))
        const texts = textsOf(reading)
        const count = (n: number) => n.toLocaleString('en-US')
        expect(texts).toMatchObject({
          'batch-state@data-state': shown.state,
          [`batch-${no}-rows`]: count(shown.records_done),
          [`batch-${no}-all`]: `${count(shown.records)} rows`,
          [`batch-${no}-bar@value`]: String(shown.records_done),
          [`batch-${no}-bar@max`]: String(shown.records),
          [`batch-${no}-created`]: count(shown.counts.CREATED),
          [`batch-${no}-rejected`]: count(shown.counts.REJECTED),
          [`batch-${no}-refused`]: count(shown.counts.REJECTED + shown.counts.FAILED),
          'reason-rejected-pan_5f_luhn': count(shown.reasons.REJECTED.pan_luhn),
          'reason-rejected-card_5f_expired': count(shown.reasons.REJECTED.card_expired),
          'batch-chunks': `${shown.chunks_done} of ${shown.chunks}`,
          'batch-active': `${shown.active_at.slice(0, 19).replace('T', ' ')} UTC`,
          'batch-rate': `${count(shown.rows_per_second)} rows/s over the last minute`,
          'batch-eta': `about ${Math.round(shown.eta_seconds / 60)} min, at this rate`,
        })
      }
      const first = await heard(reading, 1)
      await same()
      expect(await isShaped(no, ada, first)).toBe(true)
      await set(
        no,
        `rows_done = 66000, chunks_done = 7, active_at = now(), counts = '{"CREATED": 64000, "REJECTED": 2000}',
  reasons = '{"REJECTED": {"pan_luhn": 700, "card_expired": 1300}}'`,
      )
      const news = await next(reading, ({ texts }) => texts[`batch-${no}-rows`] === '66,000')
      await same()
      // Which reason is the more frequent one doesn't alter the page, and what is as before isn't sent again.
      expect(news.shape).toBe(first.shape)
      expect(news.texts).not.toHaveProperty(`batch-${no}-all`)
      expect(news.texts).not.toHaveProperty(`batch-${no}-bar@max`)
    })

    it('has every text of its page, and goes on with the chart', async () => {
      const no = await bundle.addBatch({ rowsDone: 400, counts: { CREATED: 400 }, more: AT_WORK })
      await addSamples(no)
      const reading = await watch(no)
      const first = await heard(reading, 1)
      const page = await pageOf(no)
      const ids = Object.keys(first.texts).map(key => key.split('@')[0])
      expect(ids.filter(one => !page.includes(`id="${one}"`))).toEqual([])
      const before = first.texts['chart-edge@points'] ?? ''
      expect(page).toContain(`data-live="/batches/${no}/live"`)
      await set(no, 'rows_done = 700')
      const news = await next(reading, ({ texts }) => texts['chart-told']?.startsWith('700 rows done') === true)
      expect(news.texts['chart-edge@points']).not.toBe(before)
      expect(news.texts['chart-done@points']).toMatch(/^0\.0,240 /)
      expect(news.texts['chart-desc']).toBe(news.texts['chart-told'])
    })

    it('has another shape where there is something else to show, and the same for everybody who sees it', async () => {
      const no = await bundle.addBatch({
        batchId: 'noted-live',
        rowsDone: 3,
        counts: { REJECTED: 3 },
        more: `${AT_WORK}, reasons = '${JSON.stringify({ REJECTED: { [HOSTILE]: 3 } })}'`,
      })
      const viewer = await bundle.addPerson('vic', { roles: ['VIEWER'], entities: [OURS] })
      const reading = await watch(no, viewer)
      const first = await heard(reading, 1)
      for (const person of [ada, viewer]) expect(await isShaped(no, person, first)).toBe(true)
      for (const key of Object.keys(first.texts)) expect(key).toMatch(/^[\w-]+(@[\w-]+)?$/)
      expect(JSON.stringify(first.texts)).not.toContain('<img')
      expect((await runCommand(['batch', 'note', 'noted-live', '--reason', 'x'], bundle.installation)).code).toBe(0)
      const noted = await next(reading, ({ shape }) => shape !== first.shape)
      expect(noted.texts).not.toHaveProperty('batch-state@data-state')
      for (const person of [ada, viewer]) expect(await isShaped(no, person, noted)).toBe(true)
      await set(no, 'paused_at = now()')
      expect(
        (await next(reading, ({ texts }) => 'batch-state@data-state' in texts && texts !== first.texts)).texts,
      ).toMatchObject({
        'batch-state@data-state': 'PAUSED',
      })
    })

    it('says why it is stalled as it was last found, and looks for that again after a while only', async () => {
      const no = await bundle.addBatch({
        more: `extent_chunks = 2, chunks_done = 1, active_at = now() - interval '5 minutes'`,
      })
      // Time goes on by itself, too: a look that did not find the cause in time is repeated after a while.
      let ahead = 0
      const { vault, queues } = bundle.installation
      const deps = { store: vault.store, queues, clock: () => Date.now() + ahead, log: openLog('silent') }
      const { read, readAgain } = openFacts(deps)
      const viewer = { personId: ada.personId, entities: null }
      const again = async () => (await readAgain(viewer, String(no)))?.stall
      expect(await again()).toBeUndefined()
      const nobodys = await until(again, { what: 'the cause' })
      expect(nobodys).toMatch(/^nobody works/)
      await bundle.rows(`insert into tokenmill.process (process_id, role, host, version, connections, kinds)
values (gen_random_uuid(), 'bulk', 'h', '0', 1, '{token-batch}')`)
      ahead += 20_000
      expect(await again()).toBe(nobodys)
      ahead += 20_000
      await until(async () => /^nobody sends/.test((await again()) ?? ''), { what: 'the other cause' })
      // A page finds it anew, for its streams, too; and after a while without a look nothing is known of it.
      await bundle.rows('delete from tokenmill.process')
      await until(async () => (await read(viewer, String(no)))?.stall === nobodys, { what: 'the cause, on a page' })
      expect(await again()).toBe(nobodys)
      ahead += 100_000
      expect(await again()).toBeUndefined()
      const { texts } = await heard(await watch(no), 1)
      expect(texts['stall']).toContain(`this says it: tokenmill batch show `)
    })

    it('is one for all who have the same sight', () => {
      const view = (entities: string[] | null) => viewOf(42, sightOf(entities))
      expect(view([OURS, THEIRS])).toBe(view([THEIRS, OURS]))
      expect(new Set([view(null), view([OURS]), view([THEIRS]), view([OURS, THEIRS])]).size).toBe(4)
    })
  })

  describe('the end of the stream of a batch', () => {
    it('comes with the last change, and the page of a batch that has ended opens none', async () => {
      const no = await bundle.addBatch({ rowsDone: 10, counts: { CREATED: 10 }, more: AT_WORK })
      const reading = await watch(no)
      const { shape, isLast } = await heard(reading, 1)
      expect(isLast).toBeUndefined()
      await set(no, 'rows_done = 1000, chunks_done = 10, finished_at = now(), revision = 1')
      await until(() => reading.isOver, { what: 'the end of the stream' })
      const last = reading.messages.at(-1)
      expect(last).toMatchObject({
        isLast: true,
        texts: { 'batch-state@data-state': 'FINISHED', [`batch-${no}-rows`]: '1,000' },
      })
      expect(last?.shape).not.toBe(shape)
      const page = await pageOf(no)
      expect(page).not.toContain('data-live')
      expect(page).not.toContain('http-equiv="refresh"')
      const late = await watch(no)
      await until(() => late.isOver)
      expect(late.messages.map(message => message.isLast)).toEqual([true])
    })

    it('comes a minute after it was cancelled: a chunk that was under way is counted', async () => {
      const no = await bundle.addBatch({ more: `${AT_WORK}, cancelled_at = now()` })
      expect(await pageOf(no)).toContain('data-live')
      await set(no, `cancelled_at = now() - interval '2 minutes'`)
      expect(await pageOf(no)).toContain('data-live')
      await set(no, `active_at = now() - interval '2 minutes'`)
      expect(await pageOf(no)).not.toContain('data-live')
    })

    it('comes when the batch is removed, or is somebody else’s, and what is then told is what is told of no batch', async () => {
      const [gone, taken] = [await bundle.addBatch({ more: AT_WORK }), await bundle.addBatch({ more: AT_WORK })]
      const limited = await bundle.addPerson('lim', { entities: [OURS] })
      const readings = await Promise.all([watch(gone), watch(taken, limited), watch(taken)])
      await Promise.all(readings.map(reading => heard(reading, 1)))
      await bundle.rows('delete from tokenmill.batch where batch_no = $1', [gone])
      await set(taken, `entity_id = '${THEIRS}'`)
      await until(() => readings[0]?.isOver && readings[1]?.isOver, { what: 'the end of both streams' })
      expect(readings[2]?.isOver).toBe(false)
      const { status, text } = await bundle.call('GET', `/batches/${taken}/live`, { cookie: limited.cookie })
      expect(status).toBe(404)
      expect(text).toBe((await bundle.call('GET', '/batches/999999999/live', { cookie: limited.cookie })).text)
    })

    it('comes with its session', async () => {
      const no = await bundle.addBatch({ more: AT_WORK })
      const dan = await bundle.addPerson('dan')
      const reading = await watch(no, dan)
      await heard(reading, 1)
      await bundle.rows('update tokenmill.session set revoked_at = now() where session_hash = $1', [dan.sessionHash])
      await until(() => reading.isOver, { what: 'the end of the stream' })
    })
  })

  describeChromium('the open page of a batch', () => {
    let browser: Browser
    const complaints: string[] = []
    beforeAll(async () => {
      browser = await openBrowser()
    })
    afterAll(async () => {
      await browser?.close()
      expect(complaints).toEqual([])
    })

    async function open(
      path: string,
      prepare?: (page: Page) => Promise<unknown>,
    ): Promise<{ page: Page; streams: () => number }> {
      const context = await browser.newContext({ viewport: { width: 1_440, height: 900 } })
      const [name = '', value = ''] = ada.cookie.split('=')
      await context.addCookies([{ name, value, url: bundle.origin }])
      const page = await context.newPage()
      page.on('console', message => {
        if (message.type() === 'error' && !/net::ERR_FAILED/.test(message.text())) complaints.push(message.text())
      })
      page.on('pageerror', error => complaints.push(error.message))
      let streams = 0
      const isStream = (request: { url(): string }) => Number(request.url().endsWith('/live'))
      page.on('request', request => {
        streams += isStream(request)
      })
      for (const over of ['requestfinished', 'requestfailed'] as const)
        page.on(over as 'requestfinished', request => {
          streams -= isStream(request)
        })
      await page.clock.install()
      await prepare?.(page)
      await page.goto(`${bundle.origin}${path}`)
      return { page, streams: () => streams }
    }
    const shows = (place: Locator, text: RegExp) =>
      until(async () => text.test((await place.textContent()) ?? ''), { what: `${text}` })

    it('follows the batch, and shows its end', async () => {
      const batchId = 'seen-live'
      const no = await bundle.addBatch({ batchId, rowsDone: 400, counts: { CREATED: 400 }, more: AT_WORK })
      await addSamples(no)
      const { page, streams } = await open(`/batches/${no}`)
      const rows = page.locator(`#batch-${no}-rows`)
      const edge = page.locator('#chart-edge')
      const line = await edge.getAttribute('points')
      await page.evaluate('window.mark = 1; scrollTo(0, 300)')
      await set(no, `rows_done = 567, active_at = now(), counts = '{"CREATED": 567}'`)
      await shows(rows, /^567$/)
      expect(await page.locator(`#batch-${no}-created`).textContent()).toBe('567')
      expect(await page.locator(`#batch-${no}-bar`).getAttribute('value')).toBe('567')
      expect(await edge.getAttribute('points')).not.toBe(line)
      expect(await page.evaluate('[window.mark, scrollY]')).toEqual([1, 300])

      // The page is asked for anew, and the person is where he or she was; not while a text is chosen to be copied.
      await page.evaluate(`getSelection().selectAllChildren(document.querySelector('h1'))`)
      await command('batch', 'pause', batchId, '--reason', 'the bank asked')
      await page.getByText('The page has changed').waitFor()
      await page.clock.fastForward(6_000)
      await shows(page.locator('#batch-state'), /^PAUSED$/)
      expect(await page.evaluate('window.mark')).toBe(1)
      await page.evaluate('getSelection().removeAllRanges()')
      await page.locator('.notes', { hasText: 'the bank asked' }).waitFor()
      // Its script puts the address and the place right after it is drawn.
      await page.waitForURL(`**/batches/${no}`)
      await page.waitForFunction('scrollY === 300')
      expect(await page.evaluate('window.mark ?? 0')).toBe(0)

      await page.clock.fastForward(6_000)
      await set(no, 'paused_at = null, rows_done = 1000, chunks_done = 10, finished_at = now(), revision = 1')
      await page.locator('.state', { hasText: 'FINISHED' }).waitFor()
      await until(() => streams() === 0, { what: 'the end of the stream' })
      await page.clock.fastForward(20_000)
      expect(await page.textContent('main')).not.toMatch(/unknown since/i)
      expect([await rows.textContent(), new URL(page.url()).pathname, streams()]).toEqual([
        '1,000',
        `/batches/${no}`,
        0,
      ])
      await page.context().close()
    })

    it('says unknown after a silence, and all as before when news comes', async () => {
      const no = await bundle.addBatch({ rowsDone: 567, counts: { CREATED: 567 }, more: AT_WORK })
      await addSamples(no)
      const { page } = await open(`/batches/${no}`, page => page.route('**/live', route => route.abort()))
      const rows = page.locator(`#batch-${no}-rows`)
      await page.clock.fastForward(11_000)
      await shows(rows, /^unknown since \d\d:\d\d:\d\d$/)
      expect(await page.locator('#batch-state .state.unknown').textContent()).toBe('?\uFE0EUNKNOWN')
      expect(await page.locator('[data-figure]').allTextContents()).toEqual(
        expect.not.arrayContaining([expect.stringMatching(/^(?!unknown since|\?$)/)]),
      )
      await page.unroute('**/live')
      await shows(rows, /^567$/)
      expect(await page.locator('.state').textContent()).toContain('RUNNING')
      await page.context().close()
    })

    it('says of a batch that ended in a person’s hands how it ended, and has no stream', async () => {
      const no = await bundle.addBatch({ rowsDone: 400, counts: { CREATED: 400 }, more: AT_WORK })
      const { page, streams } = await open(`/batches/${no}`)
      await page.locator('input[name=what]').fill('half a na')
      await set(no, 'rows_done = 1000, chunks_done = 10, finished_at = now(), revision = 1')
      await shows(page.locator('#batch-state'), /^✓\uFE0EFINISHED$/)
      await until(() => streams() === 0, { what: 'the end of the stream' })
      await page.clock.fastForward(20_000)
      expect(await page.locator(`#batch-${no}-rows`).textContent()).toBe('1,000')
      expect(await page.inputValue('input[name=what]')).toBe('half a na')
      await Promise.all([page.waitForEvent('load'), page.evaluate('document.activeElement.blur()')])
      expect(await page.locator('[data-live]').count()).toBe(0)
      await page.context().close()
    })

    it('takes no stream while nobody sees it', async () => {
      const no = await bundle.addBatch({ rowsDone: 1, more: AT_WORK })
      const { page, streams } = await open(`/batches/${no}`)
      await until(() => streams() === 1)
      const see = (hidden: boolean) =>
        page.evaluate(`Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${hidden} });
document.dispatchEvent(new Event('visibilitychange'))`)
      await see(true)
      await until(() => streams() === 0, { what: 'the end of the stream' })
      await set(no, 'rows_done = 2')
      await see(false)
      await shows(page.locator(`#batch-${no}-rows`), /^2$/)
      await page.context().close()
    })
  })
})
