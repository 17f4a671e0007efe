// What a page that can't be shown says while the store is away: what is known, since when, what still works, and which request it was.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { awayText } from '../../../producers/console/server/away.ts'
import { addDisplay } from '../../../src/acts/display.ts'
import { until } from '../../support/until.ts'
import { type Answer, type ConsoleBundle, openConsoleBundle } from './bundle.ts'
import { withoutStore } from './without-store.ts'

const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const

let bundle: ConsoleBundle
let cookie: string
let display: string
let no: number
beforeAll(async () => {
  bundle = await openConsoleBundle({ TOKENMILL_LOG_LEVEL: 'silent' })
  cookie = (await bundle.addPerson('ada')).cookie
  no = await bundle.addBatch()
  const added = await addDisplay(bundle.installation.vault.store, { name: 'room 1', entities: null }, BY)
  if ('refused' in added) throw new Error(added.refused)
  display = `tokenmill-display=${added.done.value}`
})
afterAll(() => bundle?.close())

/** The moments on a page, in ms since the epoch. */
const moments = ({ text }: Answer) =>
  [...text.matchAll(/<time datetime="([^"]+)">/g)].map(([, time]) => Date.parse(time ?? ''))

it('says since when the store does not answer, what waits and what goes on, and its request', async () => {
  const before = Date.now()
  expect((await bundle.call('GET', '/batches', { cookie })).status).toBe(200)
  const read = Date.now()
  await withoutStore(bundle, async () => {
    for (const path of ['/batches', `/batches/${no}/pause`, '/now']) {
      const page = await bundle.call('GET', path, { cookie })
      expect(page.status).toBe(503)
      expect(page.text).toContain('The store does not answer')
      const [since = 0] = moments(page)
      expect(moments(page)).toHaveLength(1)
      expect(since).toBeGreaterThanOrEqual(before)
      // A heartbeat of the console may have been answered after the page.
      expect(since).toBeLessThan(Date.now())
      expect(page.text).toContain(`<code>${page.headers['x-request-id']}</code>`)
      expect(page.text).toContain('Nothing is lost')
      expect(page.text).toContain('tokenmill status')
    }
    const wall = await bundle.call('GET', '/display', { cookie: display })
    expect(wall.status).toBe(503)
    expect(moments(wall)).toHaveLength(1)
    // The module that asks for passkeys shows the same as a text.
    const begun = await bundle.call('POST', `/batches/${no}/pause/begin`, { cookie, json: {} })
    expect(begun.status).toBe(503)
    const { text } = JSON.parse(begun.text) as { text: string }
    expect(text).toMatch(
      /^The store does not answer the console\. It last answered at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC\./,
    )
    expect(text).toContain(String(begun.headers['x-request-id']))
    expect(text).not.toContain('<')
  })
  const isBack = async () => (await bundle.call('GET', '/batches', { cookie })).status === 200
  await until(isBack, { what: 'the list of batches' })
  const late = Date.now()
  await withoutStore(bundle, async () => {
    const [since = 0] = moments(await bundle.call('GET', '/batches', { cookie }))
    expect(since).toBeGreaterThan(read)
    expect(since).toBeGreaterThan(late - 5_000)
  })
})

it('says of a page that takes too long when the store last answered, and of the queues that pages of the store go on', async () => {
  const locked = bundle.installation.vault.store.transaction(async db => {
    await db.query({ text: 'lock table tokenmill.batch in access exclusive mode' })
    return bundle.call('GET', '/batches', { cookie })
  })
  const page = await locked
  expect(page.status).toBe(503)
  expect(page.text).toContain('did not read this page in time')
  expect(moments(page)).toHaveLength(1)
  const about = { answeredAt: () => Date.parse('2026-11-24T12:03:11Z') }
  expect(awayText(about, { code: 'queue_away', requestId: 'r' })).toMatch(
    /^The queues do not answer the console\. Pages that need the store alone are shown.* \(Request r\.\)$/,
  )
  expect(awayText(about, { code: 'store_busy', requestId: 'r' })).toContain(
    'It last answered the console at 2026-11-24 12:03:11 UTC.',
  )
})
