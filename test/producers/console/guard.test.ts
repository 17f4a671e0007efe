// What every request of the console meets, whatever its route: host, origin, session, and the headers of the answer.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type ConsoleBundle, openConsoleBundle, type Person } from './bundle.ts'

let bundle: ConsoleBundle
let ada: Person
let batchNo: number
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
  batchNo = await bundle.addBatch({ batchId: 'nightly' })
})
afterAll(() => bundle?.close())

describe('a request', () => {
  it('for another host is answered 421, whatever a proxy adds', async () => {
    for (const host of ['evil.example', 'localhost', '127.0.0.1']) {
      const answer = await bundle.call('GET', '/sign-in', {
        headers: { host, 'x-forwarded-host': new URL(bundle.origin).host },
      })
      expect(answer.status).toBe(421)
    }
  })

  it('that may change something is taken from the console’s own pages only', async () => {
    const { cookie } = ada
    const { host } = new URL(bundle.origin)
    const foreign: Record<string, string>[] = [
      {},
      { origin: bundle.origin },
      { 'sec-fetch-site': 'same-origin' },
      { origin: 'null', 'sec-fetch-site': 'same-origin' },
      { origin: `http://evil.${host}`, 'sec-fetch-site': 'same-origin' },
      { origin: bundle.origin.replace('http:', 'https:'), 'sec-fetch-site': 'same-origin' },
      { origin: bundle.origin, 'sec-fetch-site': 'same-site' },
      { origin: bundle.origin, 'sec-fetch-site': 'cross-site' },
    ]
    for (const headers of foreign) {
      const answer = await bundle.call('POST', '/sessions/end-all', { cookie, headers, form: {}, isOwn: false })
      expect(answer.status, JSON.stringify(headers)).toBe(403)
    }
    expect((await bundle.call('GET', '/batches', { cookie })).status).toBe(200)
  })

  it('without a session leads to the sign-in, and from there to the page that was asked for', async () => {
    const page = await bundle.call('GET', `/batches/${batchNo}`)
    expect(page).toMatchObject({ status: 303, headers: { location: `/sign-in?to=%2Fbatches%2F${batchNo}` } })
    const failed = `/failed/report/f_${'A'.repeat(43)}/retry`
    const reports = [
      `/reports/schedules/${randomUUID()}/run`,
      `/reports/runs/${randomUUID()}/2026-11-22/${randomUUID()}`,
    ]
    for (const path of ['/failed', failed, '/audit', '/audit/12', ...reports, '/reports?state=FAILED'])
      expect((await bundle.call('GET', path)).headers['location']).toBe(`/sign-in?to=${encodeURIComponent(path)}`)
    const job = `/explain/jobs/${randomUUID()}?job=j_${'a'.repeat(43)}`
    const asked = await bundle.call('GET', job)
    expect(asked.headers['location']).toBe(`/sign-in?to=${encodeURIComponent(job)}`)
    const client = `/installation/clients/c${'0'.repeat(25)}`
    for (const path of ['/installation', '/installation/scopes', client])
      expect((await bundle.call('GET', path)).headers['location']).toBe(`/sign-in?to=${encodeURIComponent(path)}`)
    // A live page that asked for itself leads to itself; a stream is no page.
    for (const path of ['/now', `/batches/${batchNo}`])
      expect((await bundle.call('GET', `${path}/again`)).headers['location']).toBe(
        `/sign-in?to=${encodeURIComponent(path)}`,
      )
    for (const to of [
      `/batches/${batchNo}/live`,
      '//evil.example',
      'https://evil.example',
      '/\\evil.example',
      '/batches/1?x=javascript:',
      '/reports?state=%22',
    ])
      expect((await bundle.call('GET', `/sign-in?to=${encodeURIComponent(to)}`)).text).toContain('name="to" value="/"')
    expect((await bundle.call('POST', `/batches/${batchNo}/pause`, { form: { seen: 'RUNNING' } })).status).toBe(401)
  })
})

describe('every answer', () => {
  it('keeps scripts, frames and caches out', async () => {
    const { cookie } = ada
    for (const path of ['/batches', '/sign-in', '/console.css', '/nowhere']) {
      const { headers } = await bundle.call('GET', path, { cookie })
      expect(headers['content-security-policy']).toBe(
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
      )
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' })
    }
  })
})

describe('a session', () => {
  it('is found by the whole cookie alone', async () => {
    const { cookie } = ada
    for (const wrong of [cookie.slice(0, -1), `${cookie}x`, cookie.replace(/=.*/, '='), `${cookie}; ${cookie}`])
      expect((await bundle.call('GET', '/batches', { cookie: wrong })).status, wrong).toBe(303)
    const [row] = await bundle.rows<{ n: number }>(
      `select count(*) as n from tokenmill.session where session_hash = $1`,
      [Buffer.from(cookie.split('=')[1] ?? '', 'base64url')],
    )
    expect(row?.n).toBe(0)
  })

  it.each([
    ['was idle for 15 minutes', `seen_at = now() - interval '15 minutes'`],
    ['began 8 hours ago', `created_at = now() - interval '8 hours', expires_at = now()`],
    ['was revoked', `revoked_at = now()`],
  ])('is over once it %s', async (name, change) => {
    const { cookie, sessionHash } = await bundle.addPerson(name)
    expect((await bundle.call('GET', '/batches', { cookie })).status).toBe(200)
    await bundle.rows(`update tokenmill.session set ${change} where session_hash = $1`, [sessionHash])
    expect((await bundle.call('GET', '/batches', { cookie })).status).toBe(303)
    expect((await bundle.call('POST', `/batches/${batchNo}/pause/begin`, { cookie, json: { seen: 'x' } })).status).toBe(
      401,
    )
  })

  it('that is over is told to the module of passkeys as a text', async () => {
    const answer = await bundle.call('POST', `/batches/${batchNo}/pause/begin`, { json: { seen: 'x' } })
    expect(answer.status).toBe(401)
    expect(JSON.parse(answer.text)).toEqual({ text: 'Your session is over. Sign in again.' })
  })

  it('is over at once when its person is revoked, or where it came by a link of another engine', async () => {
    const eve = await bundle.addPerson('eve')
    await bundle.rows('update tokenmill.person set revoked_at = now() where person_id = $1', [eve.personId])
    expect((await bundle.call('GET', '/batches', { cookie: eve.cookie })).status).toBe(303)
    const local = await bundle.addPerson('local', { isLocal: true })
    expect((await bundle.call('GET', '/batches', { cookie: local.cookie })).status).toBe(303)
  })

  it('lasts on with each request, and no longer than 8 hours', async () => {
    const { cookie, sessionHash } = await bundle.addPerson('bea')
    await bundle.rows(`update tokenmill.session set seen_at = now() - interval '14 minutes' where session_hash = $1`, [
      sessionHash,
    ])
    await bundle.call('GET', '/batches', { cookie })
    const [row] = await bundle.rows<{ fresh: boolean; ms: number }>(
      `select seen_at > now() - interval '1 minute' as fresh, (extract(epoch from expires_at - created_at) * 1000)::bigint as ms
from tokenmill.session where session_hash = $1`,
      [sessionHash],
    )
    expect(row).toEqual({ fresh: true, ms: 8 * 3_600_000 })
  })

  it('is ended by its person: one, or all', async () => {
    const { cookie, sessionHash } = await bundle.addPerson('cid')
    const other = await bundle.addPerson('dan')
    const form = { session: other.sessionHash.toString('hex') }
    await bundle.call('POST', '/sessions/end', { cookie, form })
    expect((await bundle.call('GET', '/batches', { cookie: other.cookie })).status).toBe(200)
    await bundle.call('POST', '/sessions/end', { cookie, form: { session: sessionHash.toString('hex') } })
    expect((await bundle.call('GET', '/batches', { cookie })).status).toBe(303)
    const ended = await bundle.call('POST', '/sessions/end-all', { cookie: other.cookie, form: {} })
    expect(ended.headers['set-cookie']).toEqual(['tokenmill-console=; Path=/; HttpOnly; SameSite=Lax; Max-Age=0'])
    expect((await bundle.call('GET', '/batches', { cookie: other.cookie })).status).toBe(303)
  })
})
