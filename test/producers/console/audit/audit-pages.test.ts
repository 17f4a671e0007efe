// The page Audit: rows, filters, one row in words, what proves it, and both CSVs. What each filter finds is in
// test/store/console-lists/audit.test.ts.
import { hash, randomBytes } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { auditPages } from '../../../../producers/console/audit/csv.ts'
import { readAsked } from '../../../../producers/console/audit/filter.ts'
import { proofSection, worstOf } from '../../../../producers/console/audit/proof.ts'
import { grantPerson } from '../../../../src/acts/person-grants.ts'
import type { SeenChain, SeenVerdict } from '../../../../src/store/console/audit/proof.ts'
import { sightOf } from '../../../../src/store/sight.ts'
import { runCommand } from '../../../support/command.ts'
import { ENTITY } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { failCopy } from '../../../workers/act/failed-copies.ts'
import { type Answer, type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'

const CARD = '4111111111111111'
const HOSTILE = `=cmd|'/c calc'!A1"><img src=x onerror="window.pwned=1">`
const NONE = 999_999_999

interface RowOptions {
  actor?: string
  action?: string
  subject?: string
  outcome?: string
  detail?: Record<string, unknown>
  entityId?: string | null
  host?: string
}

let bundle: ConsoleBundle
let ada: Person
let limited: Person
let viewer: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('Ada')
  limited = await bundle.addPerson('Lim', { roles: ['OPERATOR'], entities: [OURS] })
  viewer = await bundle.addPerson('Vera', { roles: ['VIEWER'] })
})
afterAll(() => bundle?.close())

const get = (path: string, { cookie } = ada) => bundle.call('GET', path, { cookie })
const plain = (page: string) =>
  page
    .replace(/<[^>]+>/g, ' ')
    .replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)))
    .replace(/\s+/g, ' ')
const listed = ({ text }: Answer) => [...text.matchAll(/href="\/audit\/(\d+)"/g)].map(([, id]) => Number(id))
const hrefOf = (text: string, label: string) =>
  new RegExp(`href="([^"]*)">${label}`).exec(text)?.[1]?.replaceAll('&#38;', '&') ?? expect.fail(label)
const seenBy = ({ status, headers, text }: Answer) => {
  const { 'x-request-id': _, date: __, ...told } = headers
  return JSON.stringify({ status, told, text: text.replace(/<time.*?<\/time>/g, '') })
}

async function add({ entityId = null, detail = {}, ...row }: RowOptions = {}): Promise<number> {
  const whole = entityId === null ? detail : { ...detail, entity_id: entityId }
  const { actor = 'cli:root', action = 'batch.pause', subject = 'a-batch', outcome = 'done', host = 'host-1' } = row
  const [made] = await bundle.rows<{ id: number }>(
    `insert into tokenmill.audit (actor, action, subject, outcome, detail, entity_id, host) values ($1, $2, $3, $4, $5, $6, $7)
returning audit_id as id`,
    [actor, action, subject, outcome, JSON.stringify(whole), entityId, host],
  )
  return made?.id ?? 0
}

describe('the list', () => {
  it('says who did what, newest first, and filters', async () => {
    const older = await add({ actor: `person:${ada.personId}`, detail: { reason: 'the file was wrong' } })
    const newer = await add({ action: 'client.add', outcome: 'refused', detail: { why: 'act_state' } })
    const page = await get('/audit')
    expect(listed(page).slice(0, 2)).toEqual([newer, older])
    for (const words of ['Ada (you)', 'the file was wrong', 'root (account)', 'REFUSED', 'tokenmill audit list'])
      expect(plain(page.text)).toContain(words)
    expect(listed(await get(`/audit?who=person:${ada.personId}`))).toEqual([older])
    expect(listed(await get('/audit?act=client.add&outcome=refused&who=cli:root'))).toEqual([newer])
    expect(plain((await get('/audit?act=client.add&until=2020-01-01')).text)).toContain('show all')
    expect(plain((await get('/audit?act=client.add&since=2020-01-01')).text)).toContain('--since 2020-01-01')
    const odd = await get('/audit?who=%22&act=x&outcome=x&since=x&until=2026-99-99&after=x&like=0')
    expect(listed(odd)).toEqual(listed(page))
    expect((await get(`/audit?like=${NONE}`)).status).toBe(404)
  })

  it('pages without leaving one out', async () => {
    const made: number[] = []
    for (let n = 0; n < 120; n += 1) made.push(await add({ action: 'many.rows' }))
    const found: number[][] = []
    for (let page = await get('/audit?act=many.rows'); ; page = await get(hrefOf(page.text, 'Older'))) {
      found.push(listed(page))
      if (!page.text.includes('>Older<')) break
    }
    expect(found.map(ids => ids.length)).toEqual([50, 50, 20])
    expect(found.flat()).toEqual(made.toReversed())
  })

  it('finds a subject by a form that is posted, and no subject stands in an address', async () => {
    const [one, two] = [await add({ subject: 'sent by a sender' }), await add({ subject: 'sent by a sender' })]
    const found = await bundle.call('POST', '/audit/find', { cookie: ada.cookie, form: { what: ' sent by a sender ' } })
    expect(found).toMatchObject({ status: 303, headers: { location: expect.stringMatching(`like=${two}`) } })
    expect(decodeURIComponent(String(found.headers['location']))).not.toContain('sender')
    const list = await get(String(found.headers['location']))
    expect(listed(list)).toEqual([two, one])
    expect(plain(list.text)).toContain(`Only rows about sent by a sender`)
    const missing = await bundle.call('POST', '/audit/find', { cookie: ada.cookie, form: { what: CARD } })
    expect(missing.status).toBe(404)
    expect(missing.text).not.toContain('4111')
  })

  it('holds hostile texts as texts, and no card number', async () => {
    const detail = { reason: HOSTILE, why: `card ${CARD}`, [HOSTILE]: [HOSTILE, CARD], list: { in: CARD } }
    const row = await add({ actor: `cli:${HOSTILE}`, subject: HOSTILE, detail, host: HOSTILE, outcome: 'failed' })
    const numbered = await add({ subject: CARD, actor: `cli:${CARD}`, detail: { reason: CARD } })
    for (const path of ['/audit', `/audit/${row}`, `/audit?like=${row}`, `/audit/${numbered}`]) {
      const { text, status } = await get(path)
      expect(status).toBe(200)
      expect(text).not.toContain('<img')
      expect(text).not.toContain('4111')
    }
    await bundle.rows('delete from tokenmill.audit where audit_id = any($1)', [[row, numbered]])
  })
})

describe('one row', () => {
  it('says everything in words, and then raw', async () => {
    const batchNo = await bundle.addBatch({ batchId: 'of-the-row' })
    const clientId = bundle.installation.credentials.signingKey.clientId
    const detail = { reason: 'too many refused', client_id: clientId, rows_left: 41_200, filter: { code: 'defect' } }
    const row = await add({ subject: 'of-the-row', detail, entityId: OURS })
    const { text } = await get(`/audit/${row}`)
    for (const words of [
      ...['Reason too many refused', 'Rows left 41,200', 'Filter, code defect', 'On the host host-1'],
      ...['Proved No. It is the name of an account', 'Number none yet', 'All rows about this subject'],
    ])
      expect(plain(text)).toContain(words)
    expect(text).toContain(`href="/batches/${batchNo}"`)
    expect(text.indexOf('<pre')).toBeGreaterThan(text.indexOf('What proves it'))
    expect(plain(text)).toContain('"rows_left": 41200')
    expect(plain((await get(`/batches/${batchNo}`)).text)).toContain('paused it too many refused')
    expect((await get(`/batches/${batchNo}`)).text).toContain(`href="/audit/${row}"`)
    for (const path of [`/audit/${NONE}`, '/audit/0', '/audit/x', '/audit/1x'])
      expect((await get(path)).status).toBe(404)
  })

  it('shows the proof’s digest and its passkey, and never the whole proof', async () => {
    const proof = JSON.stringify({ canary: 'the signed request' })
    const detail = { proof, credential: 'canary-passkey', proof_sha256: hash('sha256', proof) }
    const row = await add({ actor: `person:${ada.personId}`, detail })
    const { text } = await get(`/audit/${row}`)
    for (const words of ['Proved Yes , as the row says', 'canary-passkey', hash('sha256', proof), '31 characters'])
      expect(plain(text)).toContain(words)
    expect(text).not.toContain('the signed request')
    const unproved = await add({ actor: `person:${ada.personId}`, action: 'list.exported', detail: { unproved: true } })
    expect(plain((await get(`/audit/${unproved}`)).text)).toContain('the console’s word is all there is')
  })

  it('shows a reference to people who may act only', async () => {
    const row = await add({ detail: { reference: 'shopper 7' } })
    expect(plain((await get(`/audit/${row}`)).text)).toContain('Reference shopper 7')
    expect((await get(`/audit/${row}`, viewer)).text).not.toContain('shopper 7')
  })
})

describe('the verdict of an act', () => {
  async function verdictOf(person: Person, verdict: object): Promise<string> {
    const nonce = randomBytes(16).toString('base64url')
    const request = { act: 'batch.pause', subject: 'a-batch', person_id: person.personId, reason: null }
    await bundle.rows(
      `insert into tokenmill.pending_act (nonce, session_hash, request, expires_at, sent_at, verdict)
values ($1, $2, $3, now() + interval '1 minute', now(), $4)`,
      [nonce, person.sessionHash, JSON.stringify(request), JSON.stringify(verdict)],
    )
    return (await get(`/acts/${nonce}`, person)).text
  }

  it('leads to its row, if the person may see that, and what is not done to the rows like it', async () => {
    const auditId = String(await add({ actor: `person:${limited.personId}` }))
    expect(await verdictOf(ada, { done: true, auditId })).toContain(`href="/audit/${auditId}">gets its number`)
    const hidden = await verdictOf(limited, { done: true, auditId })
    expect(hidden).not.toContain('href="/audit/')
    expect(hidden).toContain('gets its number within seconds')
    const own = `who=person%3A${ada.personId}&#38;act=batch.pause`
    for (const verdict of [{ done: null }, { done: false, reason: 'changed_meanwhile', text: 'x' }])
      expect(await verdictOf(ada, verdict)).toContain(own)
    expect(await verdictOf(ada, { done: false, reason: 'not_sent', text: 'x' })).not.toContain(own)
  })
})

describe('a person of one entity', () => {
  it('meets the rows of this entity only; others answer as what isn’t there', async () => {
    const before = seenBy(await get('/audit', limited))
    const foreign = [
      await add({ subject: 'canary', entityId: THEIRS, detail: { reason: 'canary' } }),
      await add({ subject: 'canary', detail: { reason: 'canary' }, action: 'canary.act' }),
      await add({ action: 'audit.verify', subject: 'audit', detail: { findings: 0, to: 7 } }),
    ]
    expect(seenBy(await get('/audit', limited)) === before).toBe(true)
    const missing = await get(`/audit/${NONE}`, limited)
    expect(missing.status).toBe(404)
    for (const row of foreign) {
      expect(seenBy(await get(`/audit/${row}`, limited)) === seenBy(missing)).toBe(true)
      expect(seenBy(await get(`/audit?like=${row}`, limited)) === seenBy(missing)).toBe(true)
      const csv = await bundle.call('POST', '/audit/csv', { cookie: limited.cookie, form: { like: String(row) } })
      expect(csv.status).toBe(404)
      const later = await get(`/audit?after=${row}`, limited)
      expect(listed(later)).toEqual([])
    }
    const find = async (what: string) =>
      seenBy(await bundle.call('POST', '/audit/find', { cookie: limited.cookie, form: { what } }))
    expect(await find('canary')).toBe(await find('nothing'))
    expect(plain((await get('/audit', limited)).text)).not.toContain('Can it be believed?')
  })

  it('knows of who acted only people and clients for no other entity', async () => {
    const own = await add({ actor: `person:${limited.personId}`, entityId: OURS })
    const hidden = await add({ actor: `person:${ada.personId}`, entityId: OURS, detail: { credential: 'canary-key' } })
    const detail = { operator: 'canary-file' }
    const account = await add({ actor: 'cli:canary-account', host: 'canary-host', entityId: OURS, detail })
    const page = await get('/audit', limited)
    expect(listed(page).slice(0, 3)).toEqual([account, hidden, own])
    for (const words of ['Lim (you)', 'a person outside your entities', 'an operator at the command line'])
      expect(plain(page.text)).toContain(words)
    const rows = await Promise.all([own, hidden, account].map(id => get(`/audit/${id}`, limited)))
    const text = [page, ...rows].map(one => one.text).join('')
    for (const canary of ['canary-account', 'canary-host', 'canary-key', 'canary-file', 'Ada', ada.personId])
      expect(text).not.toContain(canary)
    expect(listed(await get(`/audit?who=person:${ada.personId}`, limited))).toEqual([])
    expect(listed(await get(`/audit?who=person:${limited.personId}`, limited))).toEqual([own])
  })
})

describe('the proof of the audit', () => {
  const state = async () => plain((await get('/audit')).text)

  it('is not what this page says: it names the command, the last verdict, and where the rows go', async () => {
    await bundle.rows(`delete from tokenmill.audit where action = 'audit.verify'`)
    // The store is a copy of one that was made when the tests began: its newest segment may have left many minutes ago.
    await bundle.rows('update tokenmill.audit_chain set sent_at = now()')
    expect(await state()).toContain('Nobody has verified the audit yet')
    expect(await state()).toContain('whoever owns the database can change a row, and can write a verdict, too')
    expect(await state()).toContain('tokenmill audit verify')
    const { env } = bundle.installation
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    await until(async () => (await bundle.rows('select from tokenmill.audit where seq is null')).length === 0)
    // Here it knows no place, and so compares nothing.
    expect(await runCommand(['audit', 'verify'], { env })).toMatchObject({ code: 0 })
    expect(await state()).toContain('Last verdict Not compared with all segments')
    expect(await state()).toContain('LOOK The last verification did not compare the rows with all segments')
    const verdict = (detail: Record<string, unknown>) => add({ action: 'audit.verify', subject: 'audit', detail })
    await verdict({ findings: 0, to: 9, segments: 2, rows_outside: 9, is_complete: true })
    expect(await state()).toMatch(/Last verdict Sound, up to row [\d,]+ By \S+ on \S+, .* compared with \d+ segments/)
    expect(await state()).not.toContain('LOOK')
    await bundle.rows(`update tokenmill.audit set at = at - interval '3 days' where action = 'audit.verify'`)
    expect(await state()).toContain('Nobody has verified the audit since')
    await bundle.rows(`update tokenmill.audit set actor = 'nobody' where seq = 3`)
    expect(await runCommand(['audit', 'verify'], { env })).toMatchObject({ code: 1 })
    expect(await state()).toMatch(/LOOK A verdict of audit verify : the audit is not sound\./)
    expect(await state()).toMatch(/Last verdict Not sound : [1-9]\d* findings?/)
    // A later one that compares nothing doesn't take it back; a complete one does.
    await verdict({ findings: 0, to: 9, segments: 0, rows_outside: 0, is_complete: false })
    expect(await state()).toContain('not sound, and no complete one has found it sound since')
    expect(await state()).toMatch(/Not settled Not sound : [1-9]/)
    await verdict({ findings: 0, to: 9, segments: 0, rows_outside: 0, is_complete: true })
    expect(await state()).toContain('not sound, and no complete one')
    await verdict({ findings: 0, to: 9, segments: 2, rows_outside: 8, is_complete: true })
    expect(await state()).not.toContain('not sound')
    expect(await state()).toMatch(/Last verdict Sound, up to row 9 .* compared with 2 segments, up to row 8 only/)
  })

  it('says what needs somebody, the worst first', () => {
    const now = Date.parse('2026-11-24T12:00:00Z')
    const MIN = 60_000
    const told = (chain: Partial<SeenChain>, verdict: Partial<SeenVerdict> | undefined, isEmbedded = false) => {
      const calm = { seq: 9, segment: 3, sentTo: 9, sentAt: now - MIN, awaySince: null, place: 'h', isOutside: false }
      const sound = {
        auditId: 1,
        at: now - MIN,
        actor: 'cli:a',
        host: 'h',
        isSound: true,
        isComplete: true,
        detail: {},
      }
      const newest = verdict && { ...sound, ...verdict }
      const [proved, unsound] = newest?.isSound ? [newest, undefined] : [undefined, newest]
      const proof = {
        chain: { ...calm, ...chain },
        verdicts: { newest, proved: proved?.isComplete ? proved : undefined, unsound },
      }
      const section = proofSection(proof, { now, isEmbedded })
      return { needs: plain(String(worstOf(proof, { now, isEmbedded }) ?? '')), section: plain(String(section)) }
    }
    expect(told({}, { isComplete: false }).needs).toContain('did not compare the rows with all segments')
    expect(told({}, {}).needs).toBe('')
    expect(told({}, undefined, true).needs).toBe('')
    expect(told({}, undefined).needs).toContain('Nobody has verified the audit yet')
    expect(told({}, { at: now - 3_000 * MIN }).needs).toContain('Nobody has verified the audit since 2026-11-22')
    expect(told({ sentAt: now - 6 * MIN }, {}).needs).toContain('No segment has left for 6 min')
    expect(told({ awaySince: now - 14 * MIN }, {}).needs).toMatch(/taken nothing for 14 min, since .* UTC\. ?$/)
    expect(told({ awaySince: now - 16 * MIN }, {}).needs).toContain('exports are refused until it does')
    const both = told({ awaySince: now - 16 * MIN, place: 's3://bucket/audit', isOutside: true }, { isSound: false })
    expect(both.needs).toContain('not sound')
    for (const words of ['s3://bucket/audit ( AUDIT_URL )', 'Away since 2026-11-24 11:44', 'rows up to number 9'])
      expect(both.section).toContain(words)
    const { section } = told({ seq: 0, segment: 0, place: null, isOutside: null }, undefined)
    for (const words of ['none was written here', 'no worker has cut a segment', 'not known'])
      expect(section).toContain(words)
    expect(told({ seq: 11 }, {}).section).toContain('a folder of the worker’s host h: AUDIT_URL is not set there')
  })
})

it('takes no day that isn’t there', () => {
  expect(readAsked({ since: '2026-02-31', until: '2026-02-28' })).toMatchObject({
    since: undefined,
    until: '2026-02-28',
  })
})

describe('a CSV', () => {
  let vera: Person
  beforeAll(async () => {
    vera = await bundle.addPerson('Vera 2', { roles: ['VIEWER'], entities: [ENTITY] })
    const { ring, store } = bundle.installation.vault
    const row = {
      personId: vera.personId,
      name: 'Vera 2',
      roles: ['VIEWER' as const],
      entities: [ENTITY],
      isLocal: false,
    }
    await grantPerson(store, ring, row)
    await bundle.rows('update tokenmill.audit_chain set away_since = null')
  })
  const newest = async () =>
    (
      await bundle.rows<{ subject: string; detail: unknown }>(
        `select subject, detail from tokenmill.audit where action = 'list.exported' order by audit_id desc limit 1`,
      )
    )[0]

  it('of the audit has the rows of the page, guards formulas, and is in the audit', async () => {
    await add({ subject: HOSTILE, entityId: ENTITY, action: 'csv.row', detail: { reason: '=1+1' } })
    await add({ subject: CARD, entityId: ENTITY, action: 'csv.row', actor: `person:${ada.personId}` })
    await add({ subject: 'canary-theirs', entityId: THEIRS, action: 'csv.row' })
    const form = { act: 'csv.row', outcome: 'done', after: '1' }
    const answer = await bundle.call('POST', '/audit/csv', { cookie: vera.cookie, form })
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'content-disposition': 'attachment; filename="audit.csv"' },
    })
    const [head, ...lines] = answer.text.split('\r\n')
    expect(head).toBe('seq,audit_id,at,actor,actor_name,host,action,subject,outcome,reason,why,proof_sha256,unproved')
    expect(lines).toHaveLength(2 + 1)
    expect(lines[0]).toContain(',a person outside your entities,,,csv.row,****************,done,,,,false')
    expect(lines[1]).toMatch(/,an operator at the command line,,,csv\.row,"'=cmd\|.*,done,'=1\+1,,,false$/)
    expect(await newest()).toEqual({
      subject: 'audit',
      detail: { list: 'audit', action: 'csv.row', outcome: 'done', unproved: true },
    })
  })

  it('breaks off if the row where it goes on is removed meanwhile', async () => {
    const { store } = bundle.installation.vault
    await bundle.rows(`insert into tokenmill.audit (actor, action, subject)
select 'cli:root', 'csv.long', 'row ' || n from generate_series(1, 1200) as n`)
    const pages = auditPages(sightOf(null), store, { action: 'csv.long' })
    const first = await pages.next()
    expect(first.value).toHaveLength(500)
    expect((await pages.next()).value).toHaveLength(500)
    const [, last] = (first.value as (readonly (string | number | null)[])[]).at(-1) ?? []
    const again = auditPages(sightOf(null), store, { action: 'csv.long' })
    await again.next()
    await bundle.rows('delete from tokenmill.audit where audit_id <= $1', [last])
    await expect(again.next()).rejects.toThrow('removed')
    await bundle.rows(`delete from tokenmill.audit where action = 'csv.long'`)
  })

  it('of failed jobs has those of the page, without what the person may not see', async () => {
    const { queues, credentials } = bundle.installation
    const other = await bundle.installation.addClient('canary-client', { entity: THEIRS })
    const one = await failCopy(queues, { credentials, reference: 'shopper 7', copy: { jti: HOSTILE } })
    await failCopy(queues, { credentials, code: 'defect', isEmptied: true, copy: { jti: CARD } })
    await failCopy(queues, { credentials: other.credentials, reference: 'canary' })
    const form = { kind: 'report', code: 'any' }
    const { text, headers } = await bundle.call('POST', '/failed/csv', { cookie: vera.cookie, form })
    expect(headers['content-disposition']).toBe('attachment; filename="failed.csv"')
    const [head, ...lines] = text.trimEnd().split('\r\n')
    expect(head).toBe(
      'id,kind,code,client_id,client_name,attempt,failed_at,can_be_retried,why_not,job_id,jti,reference',
    )
    expect(lines).toHaveLength(2)
    expect(lines.find(line => line.startsWith(one.id))).toMatch(/,true,,[^,]+,"'=cmd\|.*,$/)
    for (const hidden of ['shopper 7', 'canary', '4111']) expect(text).not.toContain(hidden)
    expect(await newest()).toEqual({ subject: 'failed', detail: { list: 'failed', kind: 'report', unproved: true } })
  })
})
