// Wall displays: the link's value becomes a cookie, which shows figures without names until the display is revoked, and opens
// nothing else.

import { readFileSync } from 'node:fs'
import { request } from 'node:http'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ROUTES } from '../../../../producers/console/routes.ts'
import { addDisplay, revokeDisplay } from '../../../../src/acts/display.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'
import { until } from '../../../support/until.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, THEIRS } from '../bundle.ts'
import { beat } from '../heard.ts'

const BY = { actor: { kind: 'machine', id: 'test' }, reason: undefined } as const
const CANARY = 'canary <img src=x onerror=alert(1)>'
let bundle: ConsoleBundle
let batchNo: number
beforeAll(async () => {
  bundle = await openConsoleBundle()
  batchNo = await bundle.addBatch({ batchId: CANARY, more: `active_at = now() - interval '2 minutes'` })
  await bundle.addBatch({ batchId: `${CANARY} 2`, entityId: THEIRS })
})
afterAll(() => bundle?.close())

async function add(
  name: string,
  entities: string[] | null = null,
): Promise<{ cookie: string; value: string; displayId: string }> {
  const ended = await addDisplay(bundle.installation.vault.store, { name, entities }, BY)
  if ('refused' in ended) throw new Error(ended.refused)
  const { value, displayId } = ended.done
  return { value, displayId, cookie: `tokenmill-display=${value}` }
}

/** As a scheduler and a worker would say, with names in every text. */
const say = () =>
  beat(bundle.installation.vault.store, {
    host: `host-${CANARY}`,
    checks: [{ name: 'keys', state: 'warning', says: `key of ${CANARY}`, next: `mend ${CANARY}` }],
    queue: { waiting: 3 },
  })

describe('the link of a display', () => {
  it('becomes a cookie that lasts as long as the display, 400 days at most', async () => {
    const { value } = await add('room 1')
    const opened = await bundle.call('POST', '/display/open', { form: { link: value } })
    expect(opened).toMatchObject({ status: 303, headers: { location: '/display' } })
    const [set = ''] = [opened.headers['set-cookie']].flat()
    const [, seconds] =
      /^tokenmill-display=[\w-]{43}; Path=\/; HttpOnly; SameSite=Lax; Max-Age=(\d+)$/.exec(set ?? '') ?? []
    expect(Number(seconds)).toBeGreaterThan(400 * 86_400 - 60)
    expect(Number(seconds)).toBeLessThanOrEqual(400 * 86_400)
  })

  it('stands in no store: there is only its hash', async () => {
    const { value } = await add('room 2')
    const rows = await bundle.rows<{ text: string }>(
      `select string_agg(d::text, ' ') || (select string_agg(a::text, ' ') from tokenmill.audit as a) as text from tokenmill.display as d`,
    )
    expect(rows[0]?.text).toContain('room 2')
    expect(rows[0]?.text).not.toContain(value)
    expect(rows[0]?.text).not.toContain(Buffer.from(value, 'base64url').toString('hex'))
  })

  it('is taken by POST from the console’s own page alone, and a wrong one shows nothing', async () => {
    const { value } = await add('room 3')
    const foreign = await bundle.call('POST', '/display/open', { form: { link: value }, isOwn: false })
    expect(foreign.status).toBe(403)
    expect(foreign.headers['set-cookie']).toBeUndefined()
    for (const link of ['A'.repeat(43), 'short', `${value}x`]) {
      const wrong = await bundle.call('POST', '/display/open', { form: { link } })
      expect([wrong.status, wrong.headers['set-cookie']]).toEqual([403, undefined])
    }
    expect((await bundle.call('GET', `/display/open?link=${value}`)).headers['set-cookie']).toBeUndefined()
  })
})

describe('a display', () => {
  it('shows figures, what needs somebody in a word and the kinds, and no name', async () => {
    await say()
    const { cookie } = await add(`${CANARY} room`)
    const page = await bundle.call('GET', '/display', { cookie })
    expect(page.status).toBe(200)
    for (const shown of ['1 thing needs you', 'keys', 'Failed set', 'token-create', '3 processes on 2 hosts heard'])
      expect(page.text).toContain(shown)
    expect(page.text).not.toMatch(/canary/)
    // Nothing to follow but the page itself.
    expect(
      [...page.text.matchAll(/href="([^"]+)"/g)].map(([, to]) => to).filter(to => !/\.(css|svg)$/.test(to ?? '')),
    ).toEqual(['/display/again'])
    expect(page.text).not.toContain('<form')
  })

  it('for some entities tells of their batches alone, by number', async () => {
    await say()
    const { cookie } = await add('ours', [OURS])
    const { text } = await bundle.call('GET', '/display', { cookie })
    expect(text).toMatch(/id="open-now"[^>]*>1</)
    expect(text).toMatch(/id="stalled-now"[^>]*>1</)
    expect(text).not.toMatch(/canary|Rows\/s|token-create|host/)
    expect(text).not.toContain(`batch-${batchNo}`)
    const { cookie: theirs } = await add('theirs', [THEIRS])
    expect((await bundle.call('GET', '/display', { cookie: theirs })).text).toMatch(/id="stalled-now"[^>]*>0</)
  })

  it('says unknown where Now says it', async () => {
    await bundle.rows('delete from tokenmill.watch_check')
    await bundle.rows('delete from tokenmill.watch_queue')
    const { cookie } = await add('blind')
    const ada = await bundle.addPerson('ada')
    const sentence = (text: string) => /id="sentence-text"[^>]*>([^<]*)/.exec(text)?.[1]
    const [wall, now] = await Promise.all([
      bundle.call('GET', '/display', { cookie }),
      bundle.call('GET', '/now', { cookie: ada.cookie }),
    ])
    expect(sentence(wall.text)).toBe(sentence(now.text))
    expect(wall.text).toMatch(/id="failed-now"[^>]*>unknown/)
    expect(wall.text).toContain('data-tone="unknown"')
  })

  it('opens its own page and stream, and no other route of the console', async () => {
    const { cookie, value } = await add('thief')
    const own = ['/display', '/display/again', '/display/live']
    const open = ['/display/open', '/sign-in', '/welcome']
    const found: { method: string; url: string }[] = []
    const noted = Object.fromEntries(
      ['get', 'post'].map(method => [method, (url: string) => found.push({ method: method.toUpperCase(), url })]),
    )
    for (const add of ROUTES)
      add({ ...noted, createRateLimit: () => async () => ({}) } as never, { catalogue: CATALOGUE } as never)
    const others = found.filter(({ url }) => !own.includes(url) && !/\.(css|js|svg)$/.test(url))
    expect(others.length).toBeGreaterThan(25)
    // Neither as it is, nor under the name of a session's cookie.
    for (const theft of [cookie, `tokenmill-console=${value}`])
      for (const { method, url } of others) {
        const at = url.replace(/:\w+/g, String(batchNo))
        const form = method === 'POST' ? { form: { link: 'A'.repeat(43), name: 'x' } } : {}
        const [mine, nobodys] = await Promise.all([
          bundle.call(method, at, { cookie: theft, ...form }),
          bundle.call(method, at, form),
        ])
        const told = ({ status, text, headers }: typeof mine) => ({
          status,
          text: text.replace(/[0-9a-f-]{36}|"challenge":"[^"]+"/g, ''),
          to: headers['location'],
        })
        expect(told(mine), `${method} ${url}`).toEqual(told(nobodys))
        if (!open.includes(url.replace('/begin', ''))) expect(mine.status, `${method} ${url}`).toBeGreaterThan(300)
      }
    const sessions = await bundle.rows('select from tokenmill.session where person_id is null')
    expect(sessions).toEqual([])
  })

  it('is not opened by a person’s session', async () => {
    const { cookie } = await bundle.addPerson('bea')
    for (const path of ['/display', '/display/again', '/display/live'])
      expect((await bundle.call('GET', path, { cookie })).status).toBe(403)
  })

  it.each([
    ['was revoked', `revoked_at = now()`],
    ['has ended', `created_at = now() - interval '2 days', expires_at = now() - interval '1 day'`],
  ])('that %s answers as one that never was', async (name, change) => {
    const { cookie, displayId, value } = await add(name)
    expect((await bundle.call('GET', '/display', { cookie })).status).toBe(200)
    await bundle.rows(`update tokenmill.display set ${change} where display_id = $1`, [displayId])
    const never = await bundle.call('GET', '/display', { cookie: `tokenmill-display=${'A'.repeat(43)}` })
    const over = await bundle.call('GET', '/display', { cookie })
    expect([over.status, over.text]).toEqual([403, never.text])
    expect((await bundle.call('POST', '/display/open', { form: { link: value } })).status).toBe(403)
  })

  it('is told at once that it is revoked', async () => {
    const { cookie, displayId } = await add('watched')
    const heard = await listen(cookie)
    await until(() => heard.text.includes('data: {'), { what: 'news' })
    expect(heard.text).not.toContain('canary')
    await revokeDisplay(bundle.installation.vault.store, { displayId, name: 'watched' }, BY)
    await until(() => heard.isOver, { what: 'the end of the stream' })
    expect(heard.text).toContain('event: over')
    expect((await bundle.call('GET', '/display/live', { cookie })).status).toBe(403)
  })

  it('that can’t be read says so, and asks again by itself', async () => {
    const { cookie } = await add('away')
    for (const table of ['display', 'watch_check']) {
      await bundle.rows(`revoke select on tokenmill.${table} from tokenmill_console`)
      try {
        const { status, text } = await bundle.call('GET', '/display', { cookie })
        expect([table, status >= 500]).toEqual([table, true])
        expect(text).toContain('Unknown')
        expect(text).toContain('http-equiv="refresh"')
        expect(text).not.toContain('/sign-in')
      } finally {
        await bundle.rows(`grant select on tokenmill.${table} to tokenmill_console`)
      }
    }
  })

  it('keeps the person’s limits of 15 minutes and 8 hours out: it has no session', async () => {
    const { cookie, displayId } = await add('old')
    await bundle.rows(
      `update tokenmill.display set created_at = now() - interval '399 days', expires_at = now() + interval '1 day'
where display_id = $1`,
      [displayId],
    )
    expect((await bundle.call('GET', '/display', { cookie })).status).toBe(200)
  })
})

it('the style of displays is for displays alone', () => {
  const css = readFileSync(new URL('../../../../producers/console/browser/styles/display.css', import.meta.url), 'utf8')
  const selectors = [...css.replace(/\/\*[\s\S]*?\*\//g, '').matchAll(/([^{}]+)\{/g)].flatMap(([, list = '']) =>
    list.split(','),
  )
  const ofElements = selectors.map(selector => selector.trim()).filter(selector => !selector.startsWith('@media'))
  for (const selector of ofElements) expect(selector).toMatch(/^\.(wall|figures|figure-card|few)\b/)
})

function listen(cookie: string): Promise<{ text: string; isOver: boolean }> {
  const { port, host } = new URL(bundle.origin)
  return new Promise((resolve, reject) => {
    const asked = request({ host: 'localhost', port, path: '/display/live', headers: { host, cookie } })
    asked.on('error', reject)
    asked.on('response', response => {
      const heard = { text: '', isOver: false }
      response.on('data', chunk => {
        heard.text += String(chunk)
      })
      response.on('close', () => {
        heard.isOver = true
      })
      resolve(heard)
    })
    asked.end()
  })
}
