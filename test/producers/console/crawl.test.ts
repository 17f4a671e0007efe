// A person of one entity walks over every route: nothing of another entity is ever shown, and what isn't the person's answers
// exactly as what doesn't exist.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Answer, type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from './bundle.ts'
import { heard, openListener } from './live/listen.ts'

const CANARIES = {
  id: 'canary-batch-id',
  file: 'canary-file.csv',
  digest: 'c'.repeat(64),
  rows: 91_827_364,
  reason: 'canary_reason',
  client: `c${'0'.repeat(24)}7`,
  note: 'canary note',
}
const ACTS = ['pause', 'resume', 'cancel', 'note'] as const
/** A number that no batch has. */
const NONE = 999_999_999

let bundle: ConsoleBundle
let limited: Person
let all: Person
let ours: number
let theirs: number
let nobodys: number
let theirSchedule: string
/** Rows of the audit: of others, and of the installation. */
let auditRows: number[]
beforeAll(async () => {
  bundle = await openConsoleBundle()
  limited = await bundle.addPerson('limited', { entities: [OURS] })
  all = await bundle.addPerson('all')
  await bundle.addPerson('canary-person', { entities: [OURS] })
  const { id, file, digest, rows, reason } = CANARIES
  const more = `source_name = '${file}', source_sha256 = '${digest}', reasons = '{"REJECTED": {"${reason}": 3}}'`
  const canary = { extentRows: rows, rowsDone: rows - 1, counts: { REJECTED: 3 }, more }
  // Of the page Installation, which is for people who see everything: a client and a scope of the others, and a display.
  await bundle.rows(
    `insert into tokenmill.client (client_id, name, user_id, entities, roles) values ($1, 'canary-client', gen_random_uuid(), $2, '{}')`,
    [CANARIES.client, [THEIRS]],
  )
  await bundle.rows('insert into tokenmill.scope (token_scope, entity_id) values (gen_random_uuid(), $1)', [THEIRS])
  await bundle.rows(`insert into tokenmill.display (display_id, name, link_hash, made_by, expires_at)
values (gen_random_uuid(), 'canary-display', sha256('x'), 'canary-maker', now() + interval '1 day')`)
  ours = await bundle.addBatch({ batchId: 'our-batch' })
  theirs = await bundle.addBatch({ ...canary, batchId: id, entityId: THEIRS })
  const { clientId } = bundle.installation.credentials.signingKey
  theirSchedule = THEIRS.replace(/^./, 'a')
  await bundle.rows(
    `insert into tokenmill.schedule (schedule_id, kind, client_id, report_type, entity_id, mime_type, parameters, time, zone)
values ($1, 'report', $2, 'INVOICE', $3, 'text/csv', '{"taxPercent": "canary"}', '02:00', 'UTC')`,
    [theirSchedule, clientId, THEIRS],
  )
  await bundle.rows(
    `insert into tokenmill.schedule_run (schedule_id, business_date, entity_id, state, due_at, reason, ended_at)
values ($1, '2026-01-01', $2, 'FAILED', now(), $3, now())`,
    [theirSchedule, THEIRS, reason],
  )
  await bundle.rows(
    `insert into tokenmill.audit (actor, action, subject, detail, host) values ('machine:canary', 'batch.note', $1, $2, 'h')`,
    [id, JSON.stringify({ client_id: clientId, reason: CANARIES.note })],
  )
  nobodys = await bundle.addBatch({ ...canary, batchId: `${id}-2`, entityId: null })
  const made = await bundle.rows<{ id: number }>(
    `insert into tokenmill.audit (actor, action, subject, host, detail, entity_id)
select 'cli:theirs', 'their.act', $1, 'canary-host', jsonb_build_object('reason', 'canary', 'entity_id', e), e
from unnest(array[$2::uuid, null]) as e returning audit_id as id`,
    [id, THEIRS],
  )
  auditRows = made.map(row => row.id)
})
afterAll(() => bundle?.close())
const { listen, stop } = openListener(() => bundle.origin)

/** What a person sees of an answer: not its request's id. */
const seen = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text })
}

/** Every route that names a batch. */
async function answers(cookie: string, no: number): Promise<string[]> {
  const form = { seen: 'RUNNING', reason: 'why', nonce: 'n', proof: '' }
  const calls = [
    bundle.call('GET', `/batches/${no}`, { cookie }),
    bundle.call('GET', `/batches/${no}/again`, { cookie }),
    bundle.call('GET', `/batches/${no}/live`, { cookie }),
    bundle.call('GET', `/batches/${no}/refused`, { cookie }),
    bundle.call('GET', `/batches/${no}/refused?after=0-1`, { cookie }),
    bundle.call('POST', `/batches/${no}/refused/csv`, { cookie }),
    bundle.call('GET', `/explain/batches/${no}`, { cookie }),
    ...ACTS.flatMap(act => [
      bundle.call('GET', `/batches/${no}/${act}`, { cookie }),
      bundle.call('POST', `/batches/${no}/${act}`, { cookie, form }),
      bundle.call('POST', `/batches/${no}/${act}/begin`, { cookie, json: form }),
    ]),
  ]
  return (await Promise.all(calls)).map(seen)
}

/** Every route that names a row of the audit. */
async function auditAnswers(cookie: string, row: number): Promise<string[]> {
  const calls = [
    bundle.call('GET', `/audit/${row}`, { cookie }),
    bundle.call('GET', `/audit?like=${row}`, { cookie }),
    bundle.call('POST', '/audit/csv', { cookie, form: { like: String(row) } }),
  ]
  return (await Promise.all(calls)).map(seen)
}

describe('a person of one entity', () => {
  it('meets nothing of another entity on any route', async () => {
    const { cookie } = limited
    const paths = [
      '/',
      '/now',
      '/now/again',
      '/batches',
      '/sessions',
      '/passkeys',
      '/passkeys/add',
      ...['/identities/connect', `/identities/${OURS}/disconnect`, '/openid/callback?code=x&state=y'],
      '/sign-in',
      '/welcome',
      '/acts/nonce',
      '/explain',
      '/explain/jobs/nothing',
      '/explain/tokens/nothing',
      ...['', '/invite', '?revoked=yes', `/${all.personId}`, `/${limited.personId}`].map(rest => `/people${rest}`),
      '/nowhere',
      '/batches?order=newest',
      '/batches?state=open',
      `/batches?after=4-${theirs}`,
      `/batches?order=newest&after=0-${NONE}`,
      ...[
        '/reports',
        '/reports?state=FAILED',
        `/reports/schedules/${theirSchedule}`,
        `/reports/schedules/${theirSchedule}/run`,
      ],
      ...[`/reports/runs/${theirSchedule}/2026-01-01/${THEIRS}`, '/reports/nowhere'],
      ...[
        '/audit',
        '/audit?act=their.act',
        '/audit?who=cli:theirs',
        `/audit?after=${auditRows[0]}`,
        `/audit?after=${NONE}`,
      ],
      ...['/failed', '/failed?kind=report', '/failed/all/retry?kind=report', `/failed/report/f_${'A'.repeat(43)}`],
      ...['/installation', '/installation/clients', '/installation/scopes', '/installation/capture-keys'],
      ...[`/installation/clients/${CANARIES.client}`, '/display', '/display/again', '/display/live', '/display/open'],
    ]
    const own = [
      `/batches/${ours}`,
      `/batches/${ours}/again`,
      `/batches/${ours}/refused`,
      ...ACTS.map(act => `/batches/${ours}/${act}`),
    ]
    const pages = await Promise.all([...paths, ...own].map(path => bundle.call('GET', path, { cookie })))
    const foreign = [...(await answers(cookie, theirs)), ...(await answers(cookie, nobodys))]
    const stream = await heard(await listen(cookie, { path: `/batches/${ours}/live` }), 1)
    stop()
    const shown = [...pages.map(({ text }) => text), ...foreign, JSON.stringify(stream)].join('\n')
    for (const canary of [
      CANARIES.id,
      CANARIES.file,
      'cccccccc',
      '91,827,364',
      '91827364',
      CANARIES.reason,
      THEIRS,
      'canary',
    ])
      expect(shown).not.toContain(canary)
    expect(shown).toContain('our-batch')
  })

  it('gets for a batch of others, or of nobody, the answer for one that doesn’t exist', async () => {
    const { cookie } = limited
    const missing = await answers(cookie, NONE)
    for (const no of [theirs, nobodys]) expect((await answers(cookie, no)).join() === missing.join()).toBe(true)
    expect(missing.every(answer => answer.includes('"status":404'))).toBe(true)
    const [begun] = await bundle.rows<{ n: number }>('select count(*) as n from tokenmill.pending_act')
    expect(begun?.n).toBe(0)
  })

  it('gets for a row of the audit of others, or of the installation, the answer for one that doesn’t exist', async () => {
    const { cookie } = limited
    const missing = await auditAnswers(cookie, NONE)
    for (const row of auditRows) expect((await auditAnswers(cookie, row)).join() === missing.join()).toBe(true)
    expect(missing.every(answer => answer.includes('"status":404'))).toBe(true)
    const find = async (what: string) => seen(await bundle.call('POST', '/audit/find', { cookie, form: { what } }))
    expect(await find(CANARIES.id)).toBe(await find('nothing'))
  })

  it('differs in this from a person of all entities', async () => {
    const { cookie } = all
    const list = await bundle.call('GET', '/batches', { cookie })
    expect(list.text).toContain(CANARIES.id)
    expect((await bundle.call('GET', '/reports', { cookie })).text).toContain(CANARIES.reason)
    for (const row of auditRows)
      expect((await bundle.call('GET', `/audit/${row}`, { cookie })).text).toContain('canary-host')
    const installation = await bundle.call('GET', '/installation', { cookie })
    for (const canary of ['canary-client', 'canary-display', THEIRS.slice(-8)])
      expect(installation.text).toContain(canary)
    for (const no of [theirs, nobodys]) {
      const page = await bundle.call('GET', `/batches/${no}`, { cookie })
      expect(page.status).toBe(200)
      expect(page.text).toContain(CANARIES.reason)
    }
  })
})

describe('a role', () => {
  it.each([
    ['VIEWER', []],
    ['OPERATOR', ['pause', 'resume', 'note']],
    ['ADMIN', ['pause', 'resume', 'cancel', 'note']],
  ])('%s begins %j', async (role, may) => {
    const { cookie } = await bundle.addPerson(`one ${role}`, { roles: [role] })
    for (const act of ACTS) {
      const json = { seen: 'RUNNING', reason: 'why' }
      const { status } = await bundle.call('POST', `/batches/${ours}/${act}/begin`, { cookie, json })
      expect({ act, status }).toEqual({ act, status: may.includes(act) ? 200 : 403 })
      const page = await bundle.call('GET', `/batches/${ours}/${act}`, { cookie })
      expect(page.status).toBe(may.includes(act) ? 200 : 403)
    }
  })

  it('of none begins nothing that holds a card number', async () => {
    const json = { seen: 'RUNNING', reason: 'the card 4111 1111 1111 1111 came twice' }
    const answer = await bundle.call('POST', `/batches/${ours}/pause/begin`, { cookie: all.cookie, json })
    expect(answer.status).toBe(400)
    expect(answer.text).toContain('card number')
    expect(answer.text).not.toContain('4111')
  })
})
