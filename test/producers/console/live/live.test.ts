// The streams of live pages: only what has changed is sent, to whom it is for, as long as the session lives.
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'
import { heard, openListener } from './listen.ts'

let bundle: ConsoleBundle
let ada: Person
const HOSTILE = `<img src=x onerror=alert(1)>"'`
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
})
afterAll(() => bundle?.close())
const { listen, stop } = openListener(() => bundle.origin)
afterEach(stop)

describe('a stream', () => {
  it('begins with every text of its page, and goes on with what has changed', async () => {
    const no = await bundle.addBatch({ batchId: 'live-batch', rowsDone: 10 })
    const page = await bundle.call('GET', '/now', { cookie: ada.cookie })
    const reading = await listen(ada.cookie)
    const first = await heard(reading, 1)
    expect(reading.headers).toMatchObject({
      'content-type': 'text/event-stream; charset=utf-8',
      'cache-control': 'no-store',
      'x-accel-buffering': 'no',
    })
    expect(page.text).toContain(`data-shape="${first.shape}"`)
    const ids = Object.keys(first.texts).map(key => key.split('@')[0])
    expect(ids.filter(one => !page.text.includes(`id="${one}"`))).toEqual([])
    expect(first.texts).toMatchObject({ [`batch-${no}-rows`]: '10', [`batch-${no}-bar@value`]: '10' })
    await bundle.rows('update tokenmill.batch set rows_done = 250 where batch_no = $1', [no])
    const next = await until(() => reading.messages.slice(1).find(({ texts }) => texts[`batch-${no}-rows`]))
    expect(next.texts).toMatchObject({ [`batch-${no}-rows`]: '250', [`batch-${no}-bar@value`]: '250' })
    expect(next.texts).not.toHaveProperty(`batch-${no}-all`)
    expect(next.shape).toBe(first.shape)
  })

  it('tells another shape when there is something new to list, and holds texts only, whatever a sender chose', async () => {
    const reading = await listen(ada.cookie)
    const { shape } = await heard(reading, 1)
    const no = await bundle.addBatch({ batchId: HOSTILE })
    const next = await until(() => reading.messages.find(message => message.shape !== shape))
    expect(next.texts).toHaveProperty(`batch-${no}-rows`)
    const page = await bundle.call('GET', '/now', { cookie: ada.cookie })
    expect(page.text).toContain('&#60;img src=x onerror')
    expect(page.text).not.toContain('<img')
  })

  it('of a person of some entities holds their batches, and nothing of the installation', async () => {
    const theirs = await bundle.addBatch({ batchId: 'canary', entityId: THEIRS })
    const ours = await bundle.addBatch({ batchId: 'mine', entityId: OURS })
    const { cookie } = await bundle.addPerson('bea', { entities: [OURS] })
    const { texts } = await heard(await listen(cookie), 1)
    const keys = Object.keys(texts).join(' ')
    expect(keys).toContain(`batch-${ours}-rows`)
    expect(keys).not.toContain(`batch-${theirs}-`)
    expect(keys).not.toMatch(/kind-|host-|rows-now|failed-now/)
    const page = await bundle.call('GET', '/now', { cookie })
    expect(page.text).not.toMatch(/canary|Hosts|Kinds of job|token-create/)
  })

  it('is one of four at most in a session', async () => {
    const { cookie } = await bundle.addPerson('cid')
    const readings = await Promise.all(Array.from({ length: 5 }, () => listen(cookie)))
    expect(readings.map(({ status }) => status).sort()).toEqual([200, 200, 200, 200, 429])
    readings.find(({ status }) => status === 200)?.stop()
    await until(async () => (await listen(cookie)).status === 200, { what: 'a free place' })
  })

  it('ends with its session, and when its person sees something else', async () => {
    const [dan, eve] = [await bundle.addPerson('dan'), await bundle.addPerson('eve')]
    const [ofDan, ofEve, ofAda] = await Promise.all([dan, eve, ada].map(({ cookie }) => listen(cookie)))
    await bundle.rows('update tokenmill.session set revoked_at = now() where session_hash = $1', [dan.sessionHash])
    await bundle.rows('update tokenmill.person set entities = $2 where person_id = $1', [eve.personId, [OURS]])
    await until(() => ofDan?.isOver && ofEve?.isOver, { what: 'the end of both streams' })
    expect(ofAda?.isOver).toBe(false)
    expect((await listen(dan.cookie)).status).toBe(303)
  })

  it('doesn’t make the session last longer', async () => {
    const { cookie, sessionHash } = await bundle.addPerson('fay')
    const aged = `update tokenmill.session set seen_at = now() - interval '14 minutes' where session_hash = $1`
    await bundle.rows(aged, [sessionHash])
    await heard(await listen(cookie), 1)
    await bundle.call('GET', '/now/again', { cookie })
    const [row] = await bundle.rows<{ old: boolean }>(
      `select seen_at < now() - interval '13 minutes' as old from tokenmill.session where session_hash = $1`,
      [sessionHash],
    )
    expect(row?.old).toBe(true)
  })
})

it('a console that ends ends its streams at once', async () => {
  const other = await openConsoleBundle()
  const { cookie } = await other.addPerson('ada')
  const before = bundle
  bundle = other
  const reading = await listen(cookie)
  await heard(reading, 1)
  bundle = before
  const began = performance.now()
  await other.close()
  expect(performance.now() - began).toBeLessThan(60_000)
  expect(reading.isOver).toBe(true)
})
