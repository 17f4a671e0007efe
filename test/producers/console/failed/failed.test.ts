// The pages of failed jobs: what they list and in which order, whose they are, and the acts on them up to the passkey. What a worker
// does with an act is in test/workers/act/failed.test.ts.
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { digestOf } from '../../../../src/queue/failed/selection.ts'
import { failedDiscard, failedList } from '../../../../src/queue/failed.ts'
import { ENTITY } from '../../../support/installation.ts'
import { type Failing, failCopy, KIND } from '../../../workers/act/failed-copies.ts'
import { type Answer, type ConsoleBundle, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'

/** An id that no copy has. */
const NONE = `f_${'A'.repeat(43)}`
const CARD = '4111111111111111'
const HOSTILE = `"><img src=x onerror=alert(1)>{{7*7}}`

let bundle: ConsoleBundle
let other: Awaited<ReturnType<ConsoleBundle['installation']['addClient']>>
let ada: Person
let limited: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  other = await bundle.installation.addClient('canary-client', { entity: THEIRS })
  ada = await bundle.addPerson('ada')
  limited = await bundle.addPerson('limited', { entities: [ENTITY] })
})
afterAll(() => bundle?.close())
beforeEach(async () => {
  for (const { id } of await failedList(queues(), KIND)) await failedDiscard(queues(), KIND, id)
})

const queues = () => bundle.installation.queues
const fail = (failing: Partial<Failing> = {}) =>
  failCopy(queues(), { credentials: bundle.installation.credentials, ...failing })
const get = async (path: string, { cookie } = ada) => bundle.call('GET', path, { cookie })
const pathOf = ({ id }: { id: string }) => `/failed/${KIND}/${id}`
const listed = ({ text }: Answer) => [...text.matchAll(/href="\/failed\/report\/(f_[\w-]{43})"/g)].map(([, id]) => id)
const hrefOf = (text: string, label: string) =>
  new RegExp(`href="([^"]*)">${label}`).exec(text)?.[1]?.replaceAll('&#38;', '&') ?? expect.fail(label)
/** The hidden fields of a form. */
const fieldsOf = (text: string) =>
  Object.fromEntries(
    [...text.matchAll(/<input type="hidden" name="(\w+)" value="([^"]*)"/g)].map(([, name, value]) => [name, value]),
  )
const seenBy = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text })
}

describe('the list', () => {
  it('says why it is empty, and that nothing needs anybody', async () => {
    const { text } = await get('/failed')
    expect(text).toContain('nothing needs you')
    expect(listed({ text } as Answer)).toEqual([])
    expect((await get('/failed?kind=report')).text).toContain('show all')
  })

  it('has the newest first, and filters by kind, fault, client and time', async () => {
    const now = Date.now()
    const old = await fail({ failedAt: now - 7_200_000 })
    // Stamped by a worker whose clock is ahead.
    const late = await fail({ failedAt: now - 59_000, code: 'defect' })
    const next = await fail({ failedAt: now - 60_000, isEmptied: true })
    const others = await fail({ failedAt: now - 30_000, credentials: other.credentials })
    const ids = async (query: string) => listed(await get(`/failed?${query}`))
    expect(await ids('')).toEqual([others.id, late.id, next.id, old.id])
    expect(await ids('kind=report')).toHaveLength(4)
    expect(await ids('kind=token-create')).toEqual([])
    expect(await ids('code=defect')).toEqual([late.id])
    expect(await ids(`client=${other.credentials.signingKey.clientId}`)).toEqual([others.id])
    expect(await ids('since=1h')).toEqual([others.id, late.id, next.id])
    expect(await ids('kind=nothing&code=nothing&client=%22&since=x&before=x')).toHaveLength(4)
    const { text } = await get('/failed')
    for (const words of ['canary-client', 'no, card data removed', 'The folder of report files', 'failed list'])
      expect(text).toContain(words)
  })

  it('pages without leaving one out', async () => {
    const now = Date.now()
    const made: string[] = []
    // Several fail at the same moment.
    for (let n = 0; n < 120; n += 1) made.push((await fail({ failedAt: now - 600_000 + Math.floor(n / 3) * 1_000 })).id)
    const pages: (string | undefined)[][] = []
    let page = await get('/failed?kind=report')
    for (;;) {
      pages.push(listed(page))
      // On a busy host a page may end before it has 50, because it looks for 150 ms, and then has all that it found.
      const next = ['Older', 'Look further'].find(text => page.text.includes(`>${text}<`))
      expect(pages.at(-1)?.length).toBeLessThanOrEqual(next === 'Look further' ? 200 : 50)
      if (next === undefined) break
      page = await get(hrefOf(page.text, next))
    }
    expect(pages.flat().sort()).toEqual(made.sort())
  })

  it('holds hostile texts as texts, and no card number', async () => {
    const copy = await fail({ reference: HOSTILE, copy: { jti: HOSTILE } })
    const numbered = await fail({ reference: `card ${CARD}`, copy: { jti: CARD } })
    const pages = await Promise.all(['/failed', pathOf(copy), pathOf(numbered)].map(path => get(path)))
    const text = pages.map(page => page.text).join('')
    expect(text).not.toContain('<img')
    expect(text).not.toContain('4111')
    expect(text).toContain('not shown')
    expect(text).toContain('{{7*7}}')
  })

  it('shows a reference to people who may act, and an envelope to nobody', async () => {
    const copy = await fail({ reference: 'shopper 7' })
    const vera = await bundle.addPerson('vera', { roles: ['VIEWER'] })
    expect((await get(pathOf(copy))).text).toContain('shopper 7')
    const { text } = await get(pathOf(copy), vera)
    expect(text).not.toContain('shopper 7')
    expect(text).not.toContain('Retry')
    const [job] = await failedList(queues(), KIND)
    expect((await get(pathOf(copy))).text).not.toContain(job?.jws.split('.')[1])
  })
})

describe('a person of one entity', () => {
  const routes = async ({ cookie }: Person, id: string) => {
    const form = { seen: digestOf([{ id }]), reason: 'why', nonce: 'n', proof: '' }
    const calls = [
      get(pathOf({ id }), { cookie } as Person),
      ...['retry', 'discard'].flatMap(act => [
        bundle.call('GET', `${pathOf({ id })}/${act}`, { cookie }),
        bundle.call('POST', `${pathOf({ id })}/${act}`, { cookie, form }),
        bundle.call('POST', `${pathOf({ id })}/${act}/begin`, { cookie, json: form }),
      ]),
    ]
    return (await Promise.all(calls)).map(seenBy)
  }

  it('meets jobs of clients of this entity only; others answer as what isn’t there', async () => {
    const lists = ['/failed', '/failed?kind=report', '/failed/all/retry?kind=report', '/failed/all/discard?kind=report']
    const ours = await fail({ failedAt: Date.now() - 60_000 })
    const noTimes = (text: string) => text.replace(/<time.*?<\/time>|value="[0-9a-z]{8,9}"|--until [^<]*/g, '')
    const shown = async () =>
      (await Promise.all(lists.map(path => get(path, limited)))).map(({ text }) => noTimes(text))
    const before = await shown()
    const { clientId } = bundle.installation.credentials.signingKey
    const foreign = [
      await fail({ credentials: other.credentials, code: 'defect', copy: { reference: 'canary' } }),
      await fail({ credentials: other.credentials, copy: { clientId, reference: 'canary' } }),
      await fail({ copy: { clientId: 'scheduler', reference: 'canary' } }),
      await fail({ copy: { clientId: 'cgone', reference: 'canary' } }),
    ]
    expect(await shown()).toEqual(before)
    expect(before.join()).toContain(ours.id)
    expect(before.join()).toContain('Retry 1 job')
    const missing = await routes(limited, NONE)
    expect(missing.every(answer => answer.includes('"status":404'))).toBe(true)
    for (const { id } of foreign) expect((await routes(limited, id)).join() === missing.join()).toBe(true)
    const theirs = `client=${other.credentials.signingKey.clientId}`
    expect(listed(await get(`/failed?${theirs}`, limited))).toEqual([])
    const json = { kind: KIND, client: other.credentials.signingKey.clientId, count: '1', up_to: 'mc000000', seen: 'x' }
    const begun = await bundle.call('POST', '/failed/all/retry/begin', { cookie: limited.cookie, json })
    expect(begun.status).toBe(404)
    expect(listed(await get('/failed'))).toHaveLength(5)
  })
})

describe('an act', () => {
  it('is permitted by roles, on one job and on many', async () => {
    const copy = await fail()
    const may: [string, string[]][] = [
      ['VIEWER', []],
      ['OPERATOR', ['retry']],
      ['ADMIN', ['retry', 'discard']],
    ]
    for (const [role, acts] of may) {
      const person = await bundle.addPerson(`one ${role}`, { roles: [role] })
      for (const act of ['retry', 'discard'])
        for (const path of [`${pathOf(copy)}/${act}`, `/failed/all/${act}`]) {
          const page = await get(`${path}?kind=report`, person)
          const json = { ...fieldsOf((await get(`${path}?kind=report`)).text), reason: '' }
          const { status } = await bundle.call('POST', `${path}/begin`, { cookie: person.cookie, json })
          const right = acts.includes(act) ? 200 : 403
          expect({ path, role, status, page: page.status }).toEqual({ path, role, status: right, page: right })
        }
    }
  })

  it('on many signs exactly what the page showed', async () => {
    const copies = [await fail(), await fail({ isEmptied: true }), await fail({ code: 'defect' })]
    // It failed just now, and is not counted yet.
    await fail({ failedAt: Date.now() })
    const list = await get('/failed?kind=report&code=files_away&since=1h')
    const page = await get(hrefOf(list.text, 'Retry all of these'))
    for (const words of ['Retry 1 job', '1 job, because the card data were removed', '--fault files_away', '--until'])
      expect(page.text).toContain(words)
    const json = { ...fieldsOf(page.text), reason: 'the folder is back' }
    const begun = await bundle.call('POST', '/failed/all/retry/begin', { cookie: ada.cookie, json })
    const { nonce } = JSON.parse(begun.text) as { nonce: string }
    const [row] = await bundle.rows<{ request: Record<string, unknown> }>(
      'select request from tokenmill.pending_act where nonce = $1',
      [nonce],
    )
    expect(row?.request).toMatchObject({
      act: 'failed.retry',
      subject: 'failed-report',
      seen: digestOf(copies.slice(0, 2)),
      parameters: {
        kind: KIND,
        count: 2,
        up_to: expect.any(Number),
        filter: { code: 'files_away', since: expect.any(Number) },
      },
    })
    for (const wrong of [{ count: '0' }, { count: '1001' }, { up_to: 'x' }, { kind: 'x' }, { since: '1h' }]) {
      const answer = await bundle.call('POST', '/failed/all/retry/begin', {
        cookie: ada.cookie,
        json: { ...json, ...wrong },
      })
      expect(answer.status, JSON.stringify(wrong)).toBe(404)
    }
    expect((await get('/failed/all/retry')).status).toBe(404)
    expect((await get('/failed/all/nothing?kind=report')).status).toBe(404)
    expect((await get('/failed/all/retry?kind=token-create')).text).toContain('No such job failed')
    expect((await get('/failed/all/retry?kind=report&code=defect')).text).toContain('Retry 1 job')
  })

  it('on ticked jobs is for exactly these, without scripts, too', async () => {
    const copies = [await fail(), await fail({ isEmptied: true }), await fail({ code: 'defect' })]
    const theirs = await fail({ credentials: other.credentials })
    expect((await get('/failed')).text).not.toContain('type="checkbox"')
    const list = (await get('/failed?kind=report')).text
    expect([...list.matchAll(/type="checkbox" name="id" value="(f_[\w-]{43})"/g)]).toHaveLength(4)
    expect(list).toContain('formaction="/failed/ticked/discard"')
    const vera = await bundle.addPerson('ticking vera', { roles: ['VIEWER'] })
    expect((await get('/failed?kind=report', vera)).text).not.toContain('type="checkbox"')
    // As a browser sends the form.
    const query = (...ids: { id: string }[]) => `kind=report&${ids.map(({ id }) => `id=${id}`).join('&')}`
    const page = await get(`/failed/ticked/retry?${query(...copies.slice(0, 2), { id: NONE })}`)
    for (const words of ['Retry 1 job', '1 job, because the card data were removed', 'Gone meanwhile: 1 job'])
      expect(page.text).toContain(words)
    const json = { ...fieldsOf(page.text), reason: 'the folder is back' }
    const begun = await bundle.call('POST', '/failed/ticked/retry/begin', { cookie: ada.cookie, json })
    const [row] = await bundle.rows<{ request: Record<string, unknown> }>(
      'select request from tokenmill.pending_act where nonce = $1',
      [(JSON.parse(begun.text) as { nonce: string }).nonce],
    )
    expect(row?.request).toMatchObject({
      act: 'failed.retry',
      subject: 'failed-report',
      seen: digestOf(copies.slice(0, 2)),
      parameters: { kind: KIND, ids: copies.slice(0, 2).map(({ id }) => id) },
    })
    // A single one; none; too many; those of others as those that don't exist.
    expect((await get(`/failed/ticked/discard?${query(theirs)}`)).text).toContain('Discard 1 job')
    expect((await get('/failed/ticked/retry?kind=report')).text).toContain('No job is ticked')
    const many = Array.from({ length: 51 }, (_none, n) => ({ id: `f_${String(n).padStart(43, '0')}` }))
    expect((await get(`/failed/ticked/retry?${query(...many)}`)).text).toContain('50 at most')
    const [foreign, missing] = await Promise.all(
      [theirs, { id: NONE }].map(one => get(`/failed/ticked/retry?${query(one)}`, limited)),
    )
    expect(foreign && seenBy(foreign)).toBe(missing && seenBy(missing))
    expect(foreign?.status).toBe(404)
    expect((await get(`/failed/ticked/retry?${query(...copies)}`, vera)).status).toBe(403)
    expect((await get(`/failed/ticked/nothing?${query(...copies)}`)).status).toBe(404)
  })

  it('on a job that can not be sent again says so', async () => {
    const copy = await fail({ isEmptied: true })
    expect((await get(pathOf(copy))).text).not.toContain('Retry…')
    const page = await get(`${pathOf(copy)}/retry`)
    expect(page.text).toContain('It can not be sent again: its card data were removed')
    expect(page.text).not.toContain('<form class="act"')
  })

  it('has a page that says how far workers are, and leads back', async () => {
    const nonce = 'AAAAAAAAAAAAAAAAAAAAAA'
    const parameters = { kind: KIND, filter: {}, count: 4, up_to: Date.now() }
    const request = { act: 'failed.retry', subject: 'failed-report', parameters, person_id: ada.personId, reason: null }
    await bundle.rows(
      `insert into tokenmill.pending_act (nonce, session_hash, request, expires_at, sent_at, verdict) values ($1, $2, $3, now() + interval '1 minute', now(), $4)`,
      [nonce, ada.sessionHash, JSON.stringify(request), JSON.stringify({ done: true, auditId: null })],
    )
    const add = (outcome: string | null) =>
      bundle.rows(
        `insert into tokenmill.failed_act (nonce, action, kind, copy_id, audit_id, outcome) values ($1, 'failed.retry', 'report', gen_random_uuid(), 1, $2)`,
        [nonce, outcome],
      )
    for (const outcome of ['done', 'done', 'card_data_removed', null]) await add(outcome)
    const going = await get(`/acts/${nonce}`)
    for (const words of [
      'Under way.',
      '2 of 4 sent again',
      'Not done: 1 job, because the card data',
      'http-equiv="refresh"',
      'max="4" value="3"',
    ])
      expect(going.text).toContain(words)
    await bundle.rows(`update tokenmill.failed_act set outcome = 'done' where nonce = $1 and outcome is null`, [nonce])
    const ended = await get(`/acts/${nonce}`)
    for (const words of ['Done.', '3 jobs sent again', 'Failed jobs of this kind', 'Retry failed jobs'])
      expect(ended.text).toContain(words)
    expect(ended.text).not.toContain('http-equiv="refresh"')
    expect((await get(`/acts/${nonce}`, limited)).status).toBe(404)
  })
})
