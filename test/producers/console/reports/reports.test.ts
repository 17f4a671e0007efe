// The pages of schedules and their runs: what needs somebody first, why a run failed, whose they are, and the acts up to the passkey.
// What a worker does with an act is in test/workers/act/schedules.test.ts.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'
import { dateOf, dayAfter, nextDues } from '../../../../src/job/schedule/business-dates.ts'
import { type Answer, type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'

const CARD = '4111111111111111'
const HOSTILE = `"><img src=x onerror=alert(1)>{{7*7}}`
const EXPIRY = '7e1f0c2a-5b3d-4c6e-8f90-a1b2c3d4e5f6'
const NO_ENTITY = '00000000-0000-0000-0000-000000000000'
const ACTS = ['pause', 'resume', 'run'] as const

let bundle: ConsoleBundle
let ada: Person
let limited: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
  limited = await bundle.addPerson('limited', { entities: [OURS] })
})
afterAll(() => bundle?.close())
beforeEach(async () => {
  for (const table of ['schedule_run', 'report', 'pending_act']) await bundle.rows(`delete from tokenmill.${table}`)
  await bundle.rows(`delete from tokenmill.schedule where kind = 'report'`)
  await bundle.rows(`update tokenmill.schedule set created_at = now()`)
  await bundle.rows(`delete from tokenmill.watch_check`)
  await bundle.rows(
    `insert into tokenmill.watch_check (name, state, says, since, seen_at) values ('store', 'well', 'x', now(), now())`,
  )
})

const today = () => dateOf(Date.now())
const day = (ago: number) => dayAfter(today(), -ago)
interface Adding {
  entityId?: string | null
  type?: string
  more?: string
}
/** Added a minute ago, so that nothing is missed. `more`: assignments of SQL. */
const add = async ({ entityId = OURS, type = 'INVOICE', more }: Adding = {}) => {
  const id = randomUUID()
  const { clientId } = bundle.installation.credentials.signingKey
  await bundle.rows(
    `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, time, zone, created_at)
values ($1, 'report', $2, $3, $4, 'text/csv', '02:00', 'Europe/Berlin', now() - interval '1 minute')`,
    [id, clientId, type, entityId],
  )
  if (more !== undefined) await bundle.rows(`update tokenmill.schedule set ${more} where schedule_id = $1`, [id])
  return id
}
interface Running {
  date?: string
  entityId?: string
  state?: string
  reason?: string | null
  dueAgo?: string
  receiptId?: string | null
}
const run = async (id: string, running: Running = {}) => {
  const { date = day(1), entityId = OURS, state = 'SUCCEEDED', reason = null, dueAgo = '1 minute' } = running
  const isOver = state === 'SUCCEEDED' || state === 'FAILED'
  await bundle.rows(
    `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, state, due_at, next_at, reason, ended_at, receipt_id)
values ($1, $2, $3, $4, now() - $5::interval, $6, $7, $8, $9)`,
    [
      id,
      date,
      entityId,
      state,
      dueAgo,
      isOver ? null : new Date(),
      reason,
      isOver ? new Date() : null,
      running.receiptId ?? null,
    ],
  )
  return `/reports/runs/${id}/${date}/${entityId}`
}
const get = async (path: string, { cookie }: Pick<Person, 'cookie'> = ada) => bundle.call('GET', path, { cookie })
const pathOf = (id: string) => `/reports/schedules/${id}`
const listed = ({ text }: Answer) =>
  [...text.matchAll(/href="\/reports\/schedules\/([0-9a-f-]{36})"/g)].map(([, id]) => id)
const words = ({ text }: Pick<Answer, 'text'>) =>
  (text.split('<main')[1] ?? '')
    .replace(/<[^>]*>/g, ' ')
    .replaceAll('&#39;', "'")
    .replace(/\s+/g, ' ')
const seenBy = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text })
}

describe('the list', () => {
  it('says what a schedule is where there is none, and the command that adds one', async () => {
    const { text } = await get('/reports', limited)
    for (const one of ['makes a report every night', 'schedule add', 'None that is yours to see'])
      expect(text).toContain(one)
  })

  it('has first what was missed or is late, then what failed, then what is paused, with since when', async () => {
    const well = await add()
    await run(well)
    const paused = await add({ more: `paused_at = now() - interval '2 days'` })
    const failed = await add({ type: 'TOKEN_ACTIVITY_REPORT' })
    await run(failed, { state: 'FAILED', reason: 'role_missing' })
    const late = await add()
    await run(late, { state: 'QUEUED', dueAgo: '5 hours' })
    const missed = await add({ more: `created_at = now() - interval '9 days'` })
    const page = await get('/reports')
    expect(listed(page).slice(0, 4)).toEqual([missed, late, failed, paused])
    expect(listed(page).slice(4).sort()).toEqual([well, EXPIRY].sort())
    const text = words(page)
    for (const one of ['LATE for 5 h', 'FAILED for', 'PAUSED for 2 d', 'ON TIME', 'every day at 02:00, Europe/Berlin'])
      expect(text).toContain(one)
    expect(text).toMatch(/MISSED for [67] d/)
    expect(text).toContain('when it is resumed')
    // A run that is late shows how long, in the list of runs, too.
    expect(text).toMatch(/LATE\S* for 5 h .*LATE\S* for 5 h/)
  })

  it('never calls on time what no scheduler looks after', async () => {
    await add()
    expect(words(await get('/reports'))).toContain('ON TIME')
    await bundle.rows(`update tokenmill.watch_check set seen_at = now() - interval '11 seconds'`)
    const text = words(await get('/reports'))
    expect(text).not.toContain('ON TIME')
    expect(text).toContain('No scheduler was heard just now')
    expect(text).toContain('UNKNOWN')
  })

  it('shows a schedule in a zone that nobody knows: only the owner of the database can write one', async () => {
    const id = await add({ more: `zone = 'Mars/Olympus'` })
    const well = await add()
    const list = await get('/reports')
    expect([list.status, listed(list)[0]]).toEqual([200, id])
    expect(listed(list)).toContain(well)
    expect(words(list)).toMatch(/UNKNOWN 02:00, Mars\/Olympus none yet not known/)
    const page = await get(pathOf(id))
    expect(page.status).toBe(200)
    expect(words(page)).toContain('UNKNOWN')
    expect(words(page)).toContain('Nobody here knows the time zone Mars/Olympus, so nothing of it begins.')
    expect(words(page)).not.toContain('ON TIME')
    await bundle.rows('update tokenmill.schedule set paused_at = now() where schedule_id = $1', [id])
    const resume = await get(`${pathOf(id)}/resume`)
    expect(resume.status).toBe(200)
    expect(words(resume)).toContain('Nobody here knows the time zone Mars/Olympus')
    expect(words(await get('/reports'))).toContain('PAUSED')
  })

  it('filters runs by schedule and state, and pages without leaving one out', async () => {
    const [one, other] = [await add(), await add({ type: 'TOKEN_ACTIVITY_REPORT' })]
    for (let ago = 1; ago <= 60; ago += 1)
      await run(one, { date: day(ago), state: ago === 3 ? 'FAILED' : 'SUCCEEDED', reason: ago === 3 ? 'fault' : null })
    await run(other)
    const runsOf = ({ text }: Answer) => [...text.matchAll(/href="\/reports\/runs\/([^"]*)"/g)].map(([, key]) => key)
    const first = await get('/reports')
    expect(runsOf(first)).toHaveLength(50)
    const older = /href="([^"]*)">Older/.exec(first.text)?.[1]?.replaceAll('&#38;', '&') ?? expect.fail('no next page')
    const second = await get(older)
    expect(new Set([...runsOf(first), ...runsOf(second)]).size).toBe(61)
    expect(runsOf(await get(`/reports?schedule=${other}`))).toEqual([`${other}/${day(1)}/${OURS}`])
    expect(runsOf(await get('/reports?state=FAILED'))).toEqual([`${one}/${day(3)}/${OURS}`])
    expect(words(await get(`/reports?schedule=${other}&state=FAILED`))).toContain('show all')
    expect(words(await get(`/reports?schedule=${one}&state=FAILED`))).toContain(`schedule runs ${one} --state FAILED`)
    expect(runsOf(await get(`/reports?schedule=x'&state=%22&after=2026-02-31.a.b`))).toHaveLength(50)
  })
})

describe('the page of a schedule', () => {
  it('tells its next three moments, its runs, and what may be done', async () => {
    const id = await add({ more: `parameters = '{"taxPercent": "19"}'` })
    await run(id)
    const text = words(await get(pathOf(id)))
    for (const { dueAt, businessDate } of nextDues({ time: '02:00', zone: 'Europe/Berlin' }, Date.now(), 3))
      expect(text).toContain(
        `${new Date(dueAt).toISOString().slice(0, 19).replace('T', ' ')} UTC about ${businessDate}`,
      )
    for (const one of [
      'Invoice',
      'SUCCEEDED',
      'Run a day now…',
      'Pause…',
      'taxPercent=19',
      OURS.slice(0, 8),
      `schedule runs ${id}`,
    ])
      expect(text).toContain(one)
    expect(text).not.toContain('Resume…')
    const vera = await bundle.addPerson('vera', { roles: ['VIEWER'] })
    expect(words(await get(pathOf(id), vera))).not.toContain('Pause…')
    const sweep = words(await get(pathOf(EXPIRY)))
    expect(sweep).toContain('Suspension of expired tokens')
    expect(sweep).not.toContain('Pause…')
  })

  it('says why it needs somebody, and what to do', async () => {
    const failed = await add()
    await run(failed, { state: 'FAILED', reason: 'role_missing' })
    expect(words(await get(pathOf(failed)))).toContain(
      "role_missing the schedule's client lacks the role REPORT_REQUEST. Give the client the role",
    )
    const paused = await add({ more: `paused_at = now()` })
    expect(words(await get(pathOf(paused)))).toContain('no run begins until somebody resumes it')
    // A run that has not begun waits, so it isn't late.
    const waiting = await run(paused, { state: 'DUE', dueAgo: '5 hours' })
    for (const path of [pathOf(paused), waiting, '/reports']) {
      const said = words(await get(path))
      expect(said, path).not.toContain('LATE')
      expect(said, path).toContain('PAUSED')
    }
    expect(words(await get(waiting))).toContain('it begins when somebody resumes it')
    const removed = await add({ more: `removed_at = now()` })
    expect(words(await get(pathOf(removed)))).toContain('REMOVED')
  })
})

describe('the page of a run', () => {
  it('tells rows, place and SHA-256 of its report, and the command that takes the file', async () => {
    const id = await add()
    const receiptId = randomUUID()
    const path = await run(id, { receiptId })
    await bundle.rows(
      `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, status, client_id, request_key,
  file_name, storage_key, bytes, sha256, lines, totals, period_closed, as_of, created_on, modified_on)
values ($1, 'INVOICE', '{}', 'text/csv', $2, 'SUCCESSFUL', 'c', 'k', 'invoice.csv', 'a/b/invoice.csv', 12345, sha256('x'), 41200, '[]', true,
  now(), now() - interval '12 s', now())`,
      [receiptId, OURS],
    )
    const text = words(await get(path))
    const digest = '2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881'
    for (const one of [
      '41,200',
      'a/b/invoice.csv',
      '12,345 bytes',
      digest,
      `report download ${receiptId} --out invoice.csv`,
      '12 s',
    ])
      expect(text).toContain(one)
    // In the list, too.
    expect(words(await get('/reports'))).toContain('41,200 12 s')
  })

  it('tells why it failed and what to do, and leads to the act that runs it again', async () => {
    const id = await add()
    const path = await run(id, { state: 'FAILED', reason: 'files_away' })
    const page = await get(path)
    expect(words(page)).toContain('Make the folder or bucket of REPORTS_URL reachable')
    expect(page.text).toContain(`href="/reports/schedules/${id}/run?date=${day(1)}"`)
    const again = words(await get(`${pathOf(id)}/run?date=${day(1)}`))
    expect(again).toContain(`1 run of ${day(1)} that failed is made again`)
    expect(again).toContain(`Run ${day(1)} now`)
    for (const [state, said] of [
      ['FAULTED', 'tried again by itself'],
      ['DUE', 'A scheduler sends it'],
      ['QUEUED', 'no worker has answered'],
    ] as const) {
      const other = await run(id, { date: day(5), state, reason: state === 'FAULTED' ? 'files_away' : null })
      expect(words(await get(other))).toContain(said)
      await bundle.rows(`delete from tokenmill.schedule_run where business_date = $1`, [day(5)])
    }
  })

  it('holds hostile texts as texts, and no card number', async () => {
    const id = await add({
      more: `parameters = '${JSON.stringify({ taxPercent: HOSTILE, names: Number(CARD), note: CARD })}'`,
    })
    const receiptId = randomUUID()
    const path = await run(id, { state: 'FAILED', reason: HOSTILE, receiptId })
    await bundle.rows(
      `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, status, client_id, request_key, failure_reason)
values ($1, 'INVOICE', $3, 'text/csv', $2, 'FAILED', 'c', 'k', $4)`,
      [receiptId, OURS, JSON.stringify({ invoicePeriodFrom: CARD }), `wrong: ${CARD}`],
    )
    await bundle.rows('update tokenmill.client set name = $1 where not system', [HOSTILE])
    const pages = await Promise.all(
      ['/reports', path, pathOf(id), ...ACTS.map(act => `${pathOf(id)}/${act}`)].map(one => get(one)),
    )
    const text = pages.map(page => page.text).join('')
    expect(text).not.toContain('<img')
    expect(text).not.toContain('4111')
    expect(text).toContain('{{7*7}}')
  })
})

describe('an act', () => {
  const json = { seen: 'GOING', reason: 'why', date: day(1) }

  it.each([
    ['VIEWER', []],
    ['OPERATOR', ACTS],
    ['ADMIN', ACTS],
  ] as const)('of the role %s begins %j', async (role, may) => {
    const id = await add()
    const { cookie } = await bundle.addPerson(`reports ${role}`, { roles: [role] })
    for (const act of ACTS) {
      const isMine = (may as readonly string[]).includes(act)
      const begun = await bundle.call('POST', `${pathOf(id)}/${act}/begin`, { cookie, json })
      expect([act, begun.status]).toEqual([act, isMine ? 200 : 403])
      expect((await get(`${pathOf(id)}/${act}`, { cookie })).status).toBe(isMine ? 200 : 403)
    }
    const [pending] = await bundle.rows<{ request: Record<string, unknown> }>(
      `select request from tokenmill.pending_act where request->>'act' = 'schedule.run'`,
    )
    if (may.length > 0)
      expect(pending?.request).toMatchObject({ subject: id, parameters: { date: day(1) }, seen: 'GOING' })
  })

  it('says what will happen, or in words why nothing would', async () => {
    const id = await add({ more: `created_at = now() - interval '3 days'` })
    const said = async (path: string) => words(await get(`${pathOf(id)}/${path}`))
    expect(await said('pause')).toContain('No further run of this schedule begins')
    expect(await said('pause')).toContain('Pause this schedule')
    expect(await said('resume')).toContain('It is not paused')
    expect(await said('run')).toContain(`1 run of ${day(1)} is made`)
    expect(await said(`run?date=${today()}`)).toContain('has not ended yet')
    await run(id, { state: 'QUEUED' })
    expect(await said('run')).toContain(`A run of ${day(1)} is under way already. Wait until it ends.`)
    await bundle.rows(`update tokenmill.schedule_run set state = 'SUCCEEDED', next_at = null, ended_at = now()`)
    expect(await said('run')).toContain('it ended well')
    await bundle.rows(`delete from tokenmill.schedule_run`)
    await bundle.rows(`update tokenmill.schedule set paused_at = now() where schedule_id = $1`, [id])
    expect(await said('run')).toContain('It is paused, so nothing runs')
    expect(await said('resume')).toMatch(/[23] dates that it missed are made/)
    expect(words(await get(`${pathOf(EXPIRY)}/pause`))).toContain('Tokens past their date are always suspended')
  })

  it('is followed by the same state of the schedule on each page, whichever of its many runs needs somebody', async () => {
    const id = await add({ entityId: null })
    const entity = (n: number) => `0b5a4f6e-6f0c-4a53-8d43-${String(n).padStart(12, '0')}`
    for (let n = 1; n <= 30; n += 1)
      await run(id, { entityId: entity(n), ...(n === 1 ? { state: 'FAILED', reason: 'role_missing' } : {}) })
    const nonce = 'BAAAAAAAAAAAAAAAAAAAAA'
    const request = { act: 'schedule.pause', subject: id, parameters: {}, person_id: ada.personId, reason: null }
    await bundle.rows(
      `insert into tokenmill.pending_act (nonce, session_hash, request, expires_at, sent_at, verdict) values ($1, $2, $3, now() + interval '1 minute', now(), $4)`,
      [nonce, ada.sessionHash, JSON.stringify(request), JSON.stringify({ done: true, auditId: null })],
    )
    const head = async () => (words(await get(pathOf(id))).split('Next ')[0] ?? '').trim()
    expect(await head()).toMatch(/FAILED.*lacks the role REPORT_REQUEST/)
    expect(words(await get(`/acts/${nonce}`))).toMatch(/FAILED\S* now/)
    await bundle.rows(
      `update tokenmill.schedule_run set state = 'QUEUED', due_at = now() - interval '5 hours', next_at = now(), ended_at = null, reason = null
where schedule_id = $1 and entity_id = $2`,
      [id, entity(1)],
    )
    expect(await head()).toMatch(/LATE.*A run was due 5 h ago/)
    expect(words(await get(`/acts/${nonce}`))).toMatch(/LATE\S* now/)
  })

  it('has a page of its verdict that leads back to the schedule', async () => {
    const id = await add()
    const nonce = 'AAAAAAAAAAAAAAAAAAAAAA'
    const request = {
      act: 'schedule.run',
      subject: id,
      parameters: { date: day(1) },
      person_id: ada.personId,
      reason: null,
    }
    await bundle.rows(
      `insert into tokenmill.pending_act (nonce, session_hash, request, expires_at, sent_at, verdict) values ($1, $2, $3, now() + interval '1 minute', now(), $4)`,
      [nonce, ada.sessionHash, JSON.stringify(request), JSON.stringify({ done: true, auditId: null })],
    )
    const page = await get(`/acts/${nonce}`)
    for (const one of ['Run a schedule', 'Done.', 'within a minute', day(1), `--action schedule.run --subject ${id}`])
      expect(words(page)).toContain(one)
    expect(page.text).toContain(`href="${pathOf(id)}"`)
  })
})

describe('a person of one entity', () => {
  const routes = async ({ cookie }: Person, id: string, entityId: string) => {
    const form = { seen: 'GOING', reason: 'why', nonce: 'n', proof: '', date: day(1) }
    const calls = [
      get(pathOf(id), { cookie }),
      get(`/reports/runs/${id}/${day(1)}/${entityId}`, { cookie }),
      ...ACTS.flatMap(act => [
        bundle.call('GET', `${pathOf(id)}/${act}`, { cookie }),
        bundle.call('POST', `${pathOf(id)}/${act}`, { cookie, form }),
        bundle.call('POST', `${pathOf(id)}/${act}/begin`, { cookie, json: form }),
      ]),
    ]
    return (await Promise.all(calls)).map(seenBy)
  }

  it('meets schedules and runs of this entity only; others answer as what isn’t there', async () => {
    const { clientId } = bundle.installation.credentials.signingKey
    await bundle.rows('update tokenmill.client set name = $2, entities = $3 where client_id = $1', [
      clientId,
      'canary-client',
      `{${OURS},${THEIRS}}`,
    ])
    const ours = await add()
    await run(ours)
    const paths = ['/reports', '/reports?state=FAILED', `/reports?schedule=${EXPIRY}`]
    const shown = async () =>
      (await Promise.all(paths.map(path => get(path, limited)))).map(({ text }) =>
        text.replace(/<time.*?<\/time>/g, ''),
      )
    const before = await shown()
    expect(before.join()).toContain(ours)
    const theirs = await add({
      entityId: THEIRS,
      type: 'TOKEN_ACTIVITY_REPORT',
      more: `parameters = '{"x": "canary"}'`,
    })
    const all = await add({ entityId: null, type: 'TOKEN_ACTIVITY_REPORT', more: `parameters = '{"x": "canary"}'` })
    for (const [id, entityId] of [
      [theirs, THEIRS],
      [all, THEIRS],
      [EXPIRY, NO_ENTITY],
    ] as const)
      await run(id, { entityId, state: 'FAILED', reason: 'canary' })
    expect(await shown()).toEqual(before)
    const missing = await routes(limited, randomUUID(), THEIRS)
    expect(missing.every(answer => answer.includes('"status":404'))).toBe(true)
    for (const [id, entityId] of [
      [theirs, THEIRS],
      [all, THEIRS],
      [EXPIRY, NO_ENTITY],
    ] as const)
      expect(await routes(limited, id, entityId), id).toEqual(missing)
    expect((await routes(ada, theirs, THEIRS)).join()).toContain('canary')
  })

  it('sees of a schedule for all entities the runs of its own, and the schedule if the client acts for no other', async () => {
    const { clientId } = bundle.installation.credentials.signingKey
    const set = (entities: string) =>
      bundle.rows('update tokenmill.client set entities = $2 where client_id = $1', [clientId, entities])
    await set(`{${OURS},${THEIRS}}`)
    const all = await add({ entityId: null })
    const own = await run(all)
    const other = await run(all, { entityId: THEIRS, state: 'FAILED', reason: 'fault' })
    const page = await get(own, limited)
    expect([page.status, page.text.includes(`href="${pathOf(all)}"`)]).toEqual([200, false])
    expect((await get(other, limited)).status).toBe(404)
    expect((await get(pathOf(all), limited)).status).toBe(404)
    await set(`{${OURS}}`)
    expect((await get(pathOf(all), limited)).status).toBe(200)
    expect(words(await get(pathOf(all), limited))).not.toContain('FAILED')
    await set(`{${OURS},${THEIRS}}`)
  })
})
