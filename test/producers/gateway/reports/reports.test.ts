// The reporting service: INTERFACE 1, 4 and 5, CONTRACT 9. Every answer is also held against the OpenAPI document.

import { createHash, createPrivateKey, type JsonWebKey, randomBytes, randomUUID } from 'node:crypto'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { SignJWT } from 'jose'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { registerClient } from '../../../../cli/open/register-client.ts'
import type { Role } from '../../../../src/job/catalogue.ts'
import type { ReportStatus } from '../../../../src/job/choices.ts'
import type { MimeType, ReportType } from '../../../../src/job/report.ts'
import { requestKey } from '../../../../src/report/request-key.ts'
import { patternTable } from '../../../../src/rsql/guide.ts'
import { REPORT_FIELDS } from '../../../../src/store/report/report-search.ts'
import { DAY, fillLedger } from '../../../report/ledger.ts'
import { describeOnRedis } from '../../../support/engines.ts'
import { grantAll } from '../../../support/grant-all.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'
import { until } from '../../../support/until.ts'
import { type Answer, type Caller, openGatewayFor } from '../bundle.ts'

const REPORTS = '/oidc/report-engine/api/v1/reports'
const SISTER = '11111111-2222-4333-8444-555555555555'
const STRANGER = '99999999-2222-4333-8444-555555555555'
const TITLES: Record<number, string> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'Not Found',
  500: 'Internal Server Error',
}
const TYPES: Record<number, string> = {
  400: 'INVALID_REQUEST_ERROR',
  401: 'AUTHENTICATION_ERROR',
  403: 'AUTHENTICATION_ERROR',
  404: 'INVALID_REQUEST_ERROR',
  500: 'API_ERROR',
}

/** Expects exactly the fields of CONTRACT 9. */
function expectError(answer: Answer, status: number, param?: string, message?: RegExp): void {
  expect([answer.status, answer.text]).toEqual([status, expect.anything()])
  const { timestamp, message: said, ...rest } = answer.body
  expect(rest).toEqual({
    code: `${status}`,
    title: TITLES[status],
    type: TYPES[status],
    ...(param === undefined ? {} : { param }),
  })
  expect(said).toMatch(message ?? /\.$/)
  expect(String(timestamp)).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  expect(Math.abs(Date.parse(String(timestamp)) - Date.now())).toBeLessThan(60_000)
  expect(answer.headers.get('content-type')).toBe('application/json; charset=utf-8')
}

const sha256Of = (content: Buffer | string) => createHash('sha256').update(Buffer.from(content)).digest('hex')

interface Planted {
  reportUid: string
  reportType: ReportType
  mimeType: MimeType
  entity: string
  status: ReportStatus
  createdOn: string
  fileName: string | null
  storageKey: string
  /** The file's content; null: no file. */
  content: Buffer | null
  /** The content from which size and digest are recorded. */
  recorded: Buffer
}

describeOnRedis('reports', engine => {
  let installation: Installation
  let caller: Caller
  const clients = new Map<string, Promise<string>>()

  beforeAll(async () => {
    installation = await openInstallation(engine)
    // Silent, because files that the test damages are logged as errors.
    caller = await openGatewayFor(installation, { TOKENMILL_LOG_LEVEL: process.env['TEST_LOG'] ?? 'silent' })
    await mkdir(join(installation.dataDir, 'reports'), { recursive: true })
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  /** Registers a client for these entities, with its files in a folder of its name. */
  const register = async (name: string, entities: [string, ...string[]], roles: Role[]) => {
    const outDir = join(installation.dataDir, 'clients', name)
    await mkdir(outDir, { recursive: true })
    const { audience } = installation.session.config
    const registration = { name, entities, roles, publicJwk: undefined, outDir, audience, baseUrl: 'http://x' }
    const file = await registerClient(installation.vault, registration)
    await installation.signRights()
    return file
  }
  const BOTH: Role[] = ['REPORT_READ', 'REPORT_REQUEST']
  const as = (name: string, entities: [string, ...string[]], roles: Role[] = BOTH): Promise<string> => {
    const known = clients.get(name)
    const made =
      known ??
      register(name, entities, roles).then(
        ({ user_id, api_key }) => `Basic ${Buffer.from(`${user_id}:${api_key}`).toString('base64')}`,
      )
    clients.set(name, made)
    return made
  }
  const query = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const list = (criteria: Record<string, string> = {}, authorization = caller.authorization) =>
    caller.call('GET', `${REPORTS}?${new URLSearchParams(criteria)}`, { authorization })
  const uidsOf = (answer: Answer) =>
    (answer.body['reports'] as { reportUid: string }[]).map(({ reportUid }) => reportUid)
  const get = (uid: string, headers: Record<string, string> = {}, authorization = caller.authorization) =>
    caller.call('GET', `${REPORTS}/${uid}`, { headers, authorization })
  const ask = (body: object, options: { authorization?: string; headers?: Record<string, string> } = {}) =>
    caller.call('POST', REPORTS, { body, ...options })
  const settlement = (more: Record<string, unknown> = {}) => ({
    reportType: 'MERCHANT_SETTLEMENT_REPORT',
    reportEntityUid: ENTITY,
    reportParameter: { clearingDate: DAY },
    mimeType: 'text/csv',
    ...more,
  })

  /** Inserts a report into the store, and writes a file into the folder. */
  async function plant(given: Partial<Planted> = {}): Promise<Planted> {
    const content = given.content === undefined ? Buffer.from('a,b\r\n1,2\r\n') : given.content
    const reportUid = given.reportUid ?? randomUUID()
    const planted: Planted = {
      reportUid,
      reportType: 'INVOICE',
      mimeType: 'text/csv',
      entity: ENTITY,
      status: 'SUCCESSFUL',
      createdOn: '2026-01-02T03:04:05.678Z',
      fileName: `INVOICE_${reportUid}.csv`,
      storageKey: `INVOICE_${reportUid}.abc.csv`,
      recorded: content ?? Buffer.from('gone'),
      ...given,
      content,
    }
    const made = planted.status === 'SUCCESSFUL'
    const failed = planted.status === 'FAILED' || planted.status === 'INVALID_INPUT_PARAMETERS'
    await query(
      `insert into tokenmill.report (report_uid, report_type, report_parameter, mime_type, report_entity_uid, file_name, created_on,
  modified_on, status, client_id, request_key, sha256, bytes, storage_key, period_closed, as_of, lines, failure_reason)
values ($1, $2, '{"clearingDate":"2026-01-01"}', $3, $4, $5, $6, $6, $7, 'c', $8, $9, $10, $11, $12, $13, $14, $15)`,
      [
        reportUid,
        planted.reportType,
        planted.mimeType,
        planted.entity,
        made ? planted.fileName : null,
        planted.createdOn,
        planted.status,
        randomBytes(32),
        made ? createHash('sha256').update(planted.recorded).digest() : null,
        made ? planted.recorded.length : null,
        made ? planted.storageKey : null,
        made || null,
        made ? planted.createdOn : null,
        made ? 1 : null,
        failed ? 'net is not its parts' : null,
      ],
    )
    if (made && content && /^\w[\w.-]+$/.test(planted.storageKey))
      await writeFile(join(installation.dataDir, 'reports', planted.storageKey), content)
    return planted
  }

  describe('errors', () => {
    it('401, 403, 404 and 400 have the body of this service, in that order of checks', async () => {
      for (const path of [REPORTS, `${REPORTS}/x`, `${REPORTS}?pageSize=0`])
        expectError(await caller.call('GET', path, { authorization: null }), 401)
      const reader = await as('reader', [ENTITY], ['REPORT_READ'])
      const asker = await as('asker', [ENTITY], ['REPORT_REQUEST'])
      expectError(await list({}, asker), 403)
      expectError(await get(randomUUID(), {}, asker), 403)
      expectError(await ask(settlement(), { authorization: reader }), 403)
      expectError(await ask({}, { authorization: reader }), 400, 'reportType', /reportType: .*mimeType: .*required\.$/)
      expectError(await get(randomUUID(), {}, reader), 404, 'reportUid')
      for (const [method, path] of [
        ['PUT', REPORTS],
        ['DELETE', `${REPORTS}/${randomUUID()}`],
        ['GET', '/oidc/report-engine/api/v1/'],
        ['GET', '/oidc/report-engine/api/v2/reports'],
      ] as const)
        expectError(await caller.call(method, path), 404)
    })

    it('name a parameter that is unknown or out of range', async () => {
      const wrong: [Record<string, string>, string][] = [
        [{ page: '1' }, 'page'],
        [{ pageSize: '0' }, 'pageSize'],
        [{ pageSize: '1001' }, 'pageSize'],
        [{ pageSize: '-1' }, 'pageSize'],
        [{ pageSize: '1e2' }, 'pageSize'],
        [{ pageSize: '' }, 'pageSize'],
        [{ pageNumber: '0' }, 'pageNumber'],
        [{ pageNumber: '1.5' }, 'pageNumber'],
        [{ pageNumber: '2147483648' }, 'pageNumber'],
        [{ pageNumber: '9'.repeat(400) }, 'pageNumber'],
        [{ orderBy: 'asc' }, 'orderBy'],
        [{ orderCriteria: 'storage_key' }, 'orderCriteria'],
        [{ orderCriteria: 'createdOn; drop table report' }, 'orderCriteria'],
        [{ __proto__x: '1' }, '__proto__x'],
      ]
      for (const [criteria, param] of wrong) expectError(await list(criteria), 400, param)
      expectError(await caller.call('GET', `${REPORTS}?pageSize=1&pageSize=2`), 400, 'pageSize')
      expectError(await caller.call('GET', `${REPORTS}?search=a==b&search=c==d`), 400, 'search')
    })

    it('of a search say where it is wrong, and repeat nothing of it', async () => {
      const wrong: [string, RegExp][] = [
        ['status', /^search, character 7: an operator is missing\.$/],
        ['status==', /character 9/],
        ['status==SUCCESSFUL;', /character 20/],
        ['(status==SUCCESSFUL', /character 20/],
        [
          'secret==1',
          /^search, character 1: this field is not known; known are createdOn, modifiedOn, .*, fileName\.$/,
        ],
        ['status==FAILED&secret==1', /^search, character 16: /],
        ['clientId==1', /character 1/],
        ['status=gt=FAILED', /character 7/],
        ['status==MADE', /character 9/],
        ['status==SUCCESSFUL;sha256==1', /character 20/],
        ["reportUid==' or 1=1 --'", /character 12/],
        ['createdOn>yesterday', /character 11/],
        [`${'('.repeat(17)}status==FAILED${')'.repeat(17)}`, /character 17/],
        [Array(65).fill('status==FAILED').join(','), /more than 64/],
        ['x'.repeat(2_049), /more than 2048/],
        ['status==\u0000', /character 9/],
      ]
      for (const [search, message] of wrong) {
        const answer = await list({ search })
        expectError(answer, 400, 'search', message)
        expect(answer.text).not.toMatch(/secret|yesterday|drop|or 1=1/)
      }
    })

    it('refuse patterns that would take for ever, at once', async () => {
      for (const pattern of ['(a+)+$', '(a|a)*b', '((a*)*)*', '(a{100}){100}', '(?=a)', '(.)\\\\1', 'a'.repeat(129)]) {
        const begun = performance.now()
        const answer = await list({ search: `fileName=regex='${pattern}'` })
        expect(performance.now() - begun, pattern).toBeLessThan(100_000)
        if (answer.status !== 200) expectError(answer, 400, 'search')
        if (/\(\?|\\1|a{100}|a{129}/.test(pattern)) expect([pattern, answer.status]).toEqual([pattern, 400])
      }
    })
  })

  describe('a search', () => {
    let own: Planted[]
    let sister: Planted
    let stranger: Planted
    beforeAll(async () => {
      own = []
      for (const [n, status] of (['SUCCESSFUL', 'FAILED', 'INITIATED'] as const).entries())
        own.push(await plant({ status, createdOn: `2026-01-0${n + 1}T00:00:00Z`, mimeType: 'text/plain' }))
      sister = await plant({ entity: SISTER })
      stranger = await plant({ entity: STRANGER })
    })
    const uids = (of: Planted[]) => of.map(({ reportUid }) => reportUid)

    it('without a criterion answers the own entity’s, newest first, with their number', async () => {
      const answer = await list()
      expect(answer.status).toBe(200)
      expect(answer.body['totals']).toBe(3)
      expect(uidsOf(answer)).toEqual(uids(own).toReversed())
      expect(answer.body['reports']).toContainEqual({
        reportUid: own[0]?.reportUid,
        reportType: 'INVOICE',
        reportParameter: { clearingDate: '2026-01-01' },
        mimeType: 'text/plain',
        reportEntityUid: ENTITY,
        fileName: own[0]?.fileName,
        createdOn: '2026-01-01T00:00:00.000Z',
        modifiedOn: '2026-01-01T00:00:00.000Z',
        status: 'SUCCESSFUL',
        lines: 1,
        bytes: own[0]?.recorded.length,
        sha256: sha256Of(own[0]?.recorded ?? Buffer.of()),
      })
    })

    it('is read page by page in an order, and a page far beyond the end is empty', async () => {
      const ascending = { orderBy: 'ASC', pageSize: '2' }
      expect(uidsOf(await list({ ...ascending, pageNumber: '1' }))).toEqual(uids(own).slice(0, 2))
      expect(uidsOf(await list({ ...ascending, pageNumber: '2' }))).toEqual(uids(own).slice(2))
      for (const orderCriteria of ['createdOn', 'modifiedOn', 'status', 'mimeType', 'reportType', 'reportUid'])
        expect((await list({ orderCriteria })).body['totals']).toBe(3)
      expect((await list({ pageNumber: '2147483647', pageSize: '1000' })).body).toEqual({ totals: 3, reports: [] })
    })

    it('takes RSQL', async () => {
      expect(uidsOf(await list({ search: 'status==FAILED' }))).toEqual(uids(own).slice(1, 2))
      expect(uidsOf(await list({ search: 'status=in=(FAILED,SUCCESSFUL);createdOn>=2026-01-02' }))).toEqual(
        uids(own).slice(1, 2),
      )
      expect((await list({ search: '' })).body['totals']).toBe(3)
      expect((await list({ search: "fileName=regex='^INVOICE_'" })).body['totals']).toBe(1)
    })

    it('takes & as and, percent-encoded or not', async () => {
      const failed = uids(own).slice(1, 2)
      expect(uidsOf(await list({ search: 'status=in=(FAILED,SUCCESSFUL)&createdOn>=2026-01-02' }))).toEqual(failed)
      for (const query of [
        'search=status=in=(FAILED,SUCCESSFUL)&createdOn>=2026-01-02',
        'search=status%3Din%3D(FAILED,SUCCESSFUL)&createdOn%3E=2026-01-02',
        'pageSize=10&search=createdOn!=2026-01-01&status==FAILED&orderBy=ASC',
        'search=(status==FAILED&createdOn=ge=2026-01-02)&pageNumber=1&(mimeType==text/plain,mimeType==text/csv)',
        'search=createdOn>2026-01-01&+createdOn<2026-01-03',
      ])
        expect(uidsOf(await caller.call('GET', `${REPORTS}?${query}`)), query).toEqual(failed)
      expectError(await caller.call('GET', `${REPORTS}?search=status==FAILED&secret==1`), 400, 'search', /character 16/)
      expectError(await caller.call('GET', `${REPORTS}?search=status==FAILED&secret=1`), 400, 'secret')
      expectError(await caller.call('GET', `${REPORTS}?search=status==FAILED&pageSize==5`), 400, 'pageSize')
      expectError(await caller.call('GET', `${REPORTS}?status==FAILED`), 400, 'status')
    })

    it('takes the criteria that clients of this interface send, whatever parameters reports have', async () => {
      const none = { totals: 0, reports: [] }
      for (const search of [
        'reportParameter.batchUUID==6a5fa9fe-eafe-4bea-8f95-c8f83dc8db48',
        'reportParameter.batchUUID=in=(6a5fa9fe-eafe-4bea-8f95-c8f83dc8db48)',
        'reportParameter.clearingReference==CLR-1',
        "reportParameter.clearingReference=regex='^CLR'",
        'reportParameter.invoicePeriodFrom>=2030-01-01&reportParameter.invoicePeriodTo<=2030-01-31',
        'reportParameter.reportableDay==2030-01-31',
      ])
        expect((await list({ search })).body, search).toEqual(none)
      expectError(await list({ search: 'reportParameter.batchUUID==1' }), 400, 'search', /not a UUID/)

      const entity = randomUUID()
      const searcher = await as('batches', [entity])
      const uid = '6A5FA9FE-eafe-4bea-8f95-c8f83dc8db48'
      const right = await plant({ entity })
      const wrong = await plant({ entity })
      const set = 'update tokenmill.report set report_parameter = $2 where report_uid = $1'
      await query(set, [right.reportUid, JSON.stringify({ batchUUID: uid })])
      await query(set, [wrong.reportUid, JSON.stringify({ batchUUID: 'no UUID' })])
      const search = `reportParameter.batchUUID==${uid.toLowerCase()}`
      expect(uidsOf(await list({ search }, searcher))).toEqual([right.reportUid])
    })

    it('with reportEntityUid finds those of entities that the user may see, and never another’s', async () => {
      const holding = await as('holding', [ENTITY, SISTER])
      expect((await list({}, holding)).body['totals']).toBe(3)
      expect(uidsOf(await list({ search: `reportEntityUid==${SISTER}` }, holding))).toEqual([sister.reportUid])
      expect((await list({ search: `reportEntityUid=in=(${SISTER},${ENTITY})` }, holding)).body['totals']).toBe(4)
      for (const search of [
        `reportEntityUid==${STRANGER}`,
        `reportUid==${stranger.reportUid}`,
        `reportEntityUid==${STRANGER},reportUid==${stranger.reportUid}`,
        `reportEntityUid=in=(${STRANGER});status==SUCCESSFUL,reportUid==${stranger.reportUid}`,
      ])
        for (const authorization of [caller.authorization, holding])
          expect((await list({ search }, authorization)).body).toEqual({ totals: 0, reports: [] })
      expect((await list({ search: `reportEntityUid==${SISTER}` })).body['totals']).toBe(0)
    })

    it('by Bearer is of the entity and the roles that the token names', async () => {
      const file = await register('bearer', [ENTITY, SISTER], BOTH)
      const jwk = JSON.parse(await readFile(file.signing_key_file ?? '', 'utf8')) as JsonWebKey & {
        kid: string
        alg: string
      }
      const bearer = async (entity_id: string, roles: string[]) =>
        `Bearer ${await new SignJWT({ sub: file.user_id, entity_id, roles, exp: Math.floor(Date.now() / 1000) + 60 })
          .setProtectedHeader({ alg: jwk.alg, kid: jwk.kid })
          .sign(createPrivateKey({ key: jwk, format: 'jwk' }))}`
      expect(uidsOf(await list({}, await bearer(SISTER, ['REPORT_READ'])))).toEqual([sister.reportUid])
      expectError(await list({}, await bearer(SISTER, ['TOKEN_READ'])), 403)
      expectError(await list({}, await bearer(STRANGER, ['REPORT_READ'])), 403, 'entity_id')
    })

    it('finds nothing of another by its uid, and says no more than of one that isn’t', async () => {
      const said = async (uid: string) => {
        const answer = await get(uid)
        expectError(answer, 404, 'reportUid')
        const { timestamp: _, ...body } = answer.body
        return body
      }
      expect(await said(stranger.reportUid)).toEqual(await said(randomUUID()))
      expect(await said(sister.reportUid)).toEqual(await said(randomUUID()))
    })
  })

  describe('a download', () => {
    it('of a uid that is none is 400, whatever it looks like', async () => {
      for (const uid of [
        'x',
        '..%2f..%2fkek',
        '..%5c..%5ckek',

        `${randomUUID()}.csv`,
        '%00',
        'a'.repeat(300),
      ])
        expectError(await get(uid), 400, 'reportUid')
    })

    it('of a report that isn’t SUCCESSFUL is 404 with its status', async () => {
      for (const status of ['INITIATED', 'PROCESSING_STARTED', 'FAILED', 'INVALID_INPUT_PARAMETERS'] as const) {
        const { reportUid } = await plant({ status })
        expectError(await get(reportUid), 404, 'reportUid', new RegExp(`^This report is ${status} and has no file`))
      }
    })

    it('is never of a file that is missing, spoilt, or of another name than a report’s', async () => {
      const lost = await plant({ content: null })
      const other = await plant({ content: Buffer.from('a,b\r\n1,3\r\n'), recorded: Buffer.from('a,b\r\n1,2\r\n') })
      const short = await plant({ content: Buffer.from('a,b\r\n'), recorded: Buffer.from('a,b\r\n1,2\r\n') })
      const long = await plant({ content: Buffer.from('a,b\r\n1,2\r\n3'), recorded: Buffer.from('a,b\r\n1,2\r\n') })
      await writeFile(join(installation.dataDir, 'secret.csv'), 'secret')
      const paths = ['../secret.csv', '/etc/passwd', '..', 'reports/../../secret.csv'].map(storageKey =>
        plant({ storageKey, recorded: Buffer.from('secret') }),
      )
      for (const { reportUid } of [lost, other, short, long, ...(await Promise.all(paths))])
        for (const headers of [{}, { range: 'bytes=0-3' }]) {
          const answer = await get(reportUid, headers)
          expectError(answer, 500)
          expect(answer.headers.get('content-disposition')).toBeNull()
        }
    })

    it('of a large file that is spoilt breaks off before its end', async () => {
      const recorded = randomBytes(900_000)
      const content = Buffer.from(recorded)
      content[899_999] = (content[899_999] ?? 0) ^ 1
      const { reportUid } = await plant({ content, recorded, mimeType: 'application/pdf' })
      await expect(get(reportUid)).rejects.toThrow()
      expectError(await get(reportUid, { range: 'bytes=0-99' }), 500)
    })

    it('has type, name, length and digest; a strange name is not taken over', async () => {
      const text = 'a,b\r\n"ü",2\r\n'
      const whole = await plant({ content: Buffer.from(text) })
      const answer = await get(whole.reportUid.toUpperCase())
      expect([answer.status, answer.text]).toEqual([200, text])
      expect(Object.fromEntries(answer.headers)).toMatchObject({
        'content-type': 'text/csv; charset=utf-8',
        'content-disposition': `attachment; filename="${whole.fileName}"`,
        'content-length': String(Buffer.byteLength(text)),
        etag: `"${sha256Of(text)}"`,
        'accept-ranges': 'bytes',
        'x-content-type-options': 'nosniff',
      })
      const strange = await plant({ fileName: '../"x"\r\nset-cookie: a=b;.pdf', mimeType: 'application/pdf' })
      const pdf = await get(strange.reportUid)
      expect(pdf.headers.get('content-type')).toBe('application/pdf')
      expect(pdf.headers.get('content-disposition')).toBe(`attachment; filename="${strange.reportUid}.pdf"`)
      expect(pdf.headers.get('set-cookie')).toBeNull()
    })

    it('is not repeated for who has it (RFC 9110, 13.1.2)', async () => {
      const { reportUid, recorded } = await plant()
      const etag = `"${sha256Of(recorded)}"`
      for (const header of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
        const answer = await get(reportUid, { 'if-none-match': header })
        expect([answer.status, answer.text, answer.headers.get('etag')]).toEqual([304, '', etag])
      }
      for (const header of ['"other"', etag.slice(1, -1)])
        expect((await get(reportUid, { 'if-none-match': header })).status).toBe(200)
    })

    it('of one range answers that range; of ranges that can’t be satisfied, or of several, the whole (RFC 9110, 14.2)', async () => {
      const { reportUid, recorded } = await plant({ content: Buffer.from('0123456789') })
      const etag = `"${sha256Of(recorded)}"`
      for (const [range, from, to] of [
        ['bytes=0-0', 0, 0],
        ['bytes=2-4', 2, 4],
        ['bytes=7-', 7, 9],
        ['bytes=7-99999999999999999999', 7, 9],
        ['bytes=-3', 7, 9],
        ['bytes=-99', 0, 9],
        ['BYTES=0-9', 0, 9],
      ] as const) {
        const answer = await get(reportUid, { range, 'if-range': etag })
        expect([range, answer.status, answer.text]).toEqual([range, 206, '0123456789'.slice(from, to + 1)])
        expect(answer.headers.get('content-range')).toBe(`bytes ${from}-${to}/10`)
        expect(answer.headers.get('content-length')).toBe(String(to - from + 1))
        expect(answer.headers.get('etag')).toBe(etag)
      }
      for (const range of [
        'bytes=10-',
        'bytes=10-12',
        'bytes=-0',
        'bytes=4-2',
        'bytes=-',
        'bytes=0-1,4-5',
        'lines=0-1',
        'x',
      ]) {
        const answer = await get(reportUid, { range })
        expect([range, answer.status, answer.text]).toEqual([range, 200, '0123456789'])
        expect(answer.headers.get('content-range')).toBeNull()
      }
      const changed = await get(reportUid, { range: 'bytes=0-1', 'if-range': '"other"' })
      expect([changed.status, changed.text]).toEqual([200, '0123456789'])
    })
  })

  describe('a request', () => {
    const operations = () =>
      query<{ receipt_id: string }>(
        `select receipt_id from tokenmill.operation where kind = 'report' order by receipt_id`,
      )
    /** Inserts a report for a request. `given`: how it ended. */
    const known = async (clearingDate: string, given: Partial<Planted>, periodClosed = true) => {
      const { reportUid } = await plant(given)
      const requested = { reportType: 'MERCHANT_SETTLEMENT_REPORT', mimeType: 'text/csv', entityId: ENTITY } as const
      await query(
        `update tokenmill.report set request_key = $2, period_closed = case when status = 'SUCCESSFUL' then $3::boolean end
where report_uid = $1`,
        [reportUid, requestKey({ ...requested, parameters: { clearingDate } }), periodClosed],
      )
      return { reportUid, body: settlement({ reportParameter: { clearingDate } }) }
    }

    it('that is wrong queues nothing', async () => {
      const wrong: [object, number, string][] = [
        [settlement({ more: 1 }), 400, 'more'],
        [settlement({ reportType: 'EVERYTHING' }), 400, 'reportType'],
        [settlement({ mimeType: 'text/html' }), 400, 'mimeType'],
        [settlement({ refresh: 'yes' }), 400, 'refresh'],
        [settlement({ reportEntityUid: 'x' }), 400, 'reportEntityUid'],
        [settlement({ reportEntityUid: STRANGER }), 403, 'reportEntityUid'],
        [settlement({ reportParameter: { clearingDate: '2026-02-30' } }), 400, 'reportParameter.clearingDate'],
        [settlement({ reportParameter: {} }), 400, 'reportParameter.clearingDate'],
        [settlement({ reportParameter: { clearingDate: DAY, more: 1 } }), 400, 'reportParameter.more'],
        [settlement({ reportParameter: [] }), 400, 'reportParameter'],
      ]
      for (const [body, status, param] of wrong) {
        const answer = await ask(body)
        expectError(answer, status, param)
      }
      expectError(await caller.call('POST', REPORTS, { body: '[]' }), 400)
      expectError(await ask(settlement(), { headers: { 'idempotency-key': 'a b' } }), 400, 'idempotency-key')
      expect(await operations()).toEqual([])
    })

    it('that was made, or is being made, is answered with that report', async () => {
      const made = await known('2026-01-01', {})
      const stored = await ask(made.body)
      expect([stored.status, stored.body['reportUid'], stored.body['status']]).toEqual([
        200,
        made.reportUid,
        'SUCCESSFUL',
      ])
      const making = await known('2026-01-02', { status: 'PROCESSING_STARTED', createdOn: new Date().toISOString() })
      for (const refresh of [false, true]) {
        const { status, body } = await ask({ ...making.body, refresh })
        expect([status, body['reportUid'], body['status']]).toEqual([202, making.reportUid, 'PROCESSING_STARTED'])
      }
      expect(await operations()).toEqual([])
    })

    it('whose report failed, was of a period that hadn’t ended, or is not heard of any more, is made anew', async () => {
      const cases = [
        await known('2026-01-03', { status: 'FAILED' }),
        await known('2026-01-04', {}, false),
        await known('2026-01-05', { status: 'INITIATED' }),
        await known('2026-01-06', { status: 'PROCESSING_STARTED' }),
      ]
      for (const { reportUid, body } of cases) {
        const one = await ask(body)
        expect([one.status, one.body['status']]).toEqual([202, 'INITIATED'])
        expect(one.body['reportUid']).not.toBe(reportUid)
        expect((await ask(body)).body['reportUid']).toBe(one.body['reportUid'])
      }
      expect(await operations()).toHaveLength(cases.length)
    })

    it('whose reports and jobs ended long ago, and were removed, is made anew however many there were', async () => {
      const body = settlement({ reportParameter: { clearingDate: '2026-01-07' } })
      const uids = new Set<unknown>()
      for (let n = 0; n < 10; n += 1) {
        const answer = await ask(body)
        expect([answer.status, answer.body['status']]).toEqual([202, 'INITIATED'])
        uids.add(answer.body['reportUid'])
        await query(`update tokenmill.operation set state = 'ANSWERED', jws = null where receipt_id = $1`, [
          answer.body['reportUid'],
        ])
      }
      expect(uids.size).toBe(10)
      await query(`delete from tokenmill.operation where state = 'ANSWERED'`)
    })

    it('under a key that was used for another one is refused', async () => {
      const headers = { 'idempotency-key': 'mine' }
      const body = settlement({ mimeType: 'text/plain' })
      const one = await ask(body, { headers })
      const two = await ask(body, { headers })
      expect(two.body['reportUid']).toBe(one.body['reportUid'])
      expectError(await ask(settlement({ mimeType: 'application/pdf' }), { headers }), 400, undefined, /used/)
    })

    let first: Answer
    it('is answered 202 with a record that is INITIATED, and its uid is known before any worker runs', async () => {
      await installation.queues.obliterate('report')
      await query(`delete from tokenmill.operation`)
      first = await ask(settlement())
      expect(first.status).toBe(202)
      expect(first.body).toMatchObject({ ...settlement(), status: 'INITIATED', reportUid: expect.any(String) })
      const uid = String(first.body['reportUid'])
      expect(first.headers.get('location')).toBe(`${REPORTS}/${uid}`)
      expectError(await get(uid), 404, 'reportUid', /INITIATED/)
      expect(await operations()).toEqual([{ receipt_id: uid }])
      expect((await caller.call('GET', `/oidc/api/v2/operations/${uid}`)).status).toBe(404)
    })

    it('that comes again, many times at once, in another order or spelling, is the same report', async () => {
      const again = await Promise.all([
        ...Array.from({ length: 5 }, () => ask(settlement())),
        ask(Object.fromEntries(Object.entries(settlement()).toReversed())),
        ask(settlement({ reportEntityUid: ENTITY.toUpperCase(), refresh: false })),
        ask(settlement({ refresh: true })),
      ])
      for (const { status, body } of again)
        expect([status, body['reportUid'], body['status']]).toEqual([202, first.body['reportUid'], 'INITIATED'])
      expect(await operations()).toHaveLength(1)
    })

    it('is signed by the gateway on its client’s behalf', async () => {
      const [row] = await query<{ jws: string }>('select jws from tokenmill.operation where receipt_id = $1', [
        first.body['reportUid'],
      ])
      const claims = JSON.parse(Buffer.from(row?.jws.split('.')[1] ?? '', 'base64url').toString('utf8'))
      expect(claims).toMatchObject({
        iss: 'gateway',
        client_id: installation.credentials.signingKey.clientId,
        entity_id: ENTITY,
        kind: 'report',
        request: { report_type: 'MERCHANT_SETTLEMENT_REPORT', entity_id: ENTITY, parameters: { clearingDate: DAY } },
      })
    })

    it('is nobody else’s to see', async () => {
      const uid = String(first.body['reportUid'])
      const foreign = await as('foreign', [STRANGER])
      expectError(await get(uid, {}, foreign), 404, 'reportUid', /No such report/)
    })

    let cousins: [string, string]
    it('of two clients of one entity at once has a uid each', async () => {
      const cousin = await as('cousin', [ENTITY])
      const body = settlement({ reportType: 'DAILY_TRANSACTION_REPORT', reportParameter: { reportableDay: DAY } })
      const [one, two] = await Promise.all([ask(body), ask(body, { authorization: cousin })])
      cousins = [String(one.body['reportUid']), String(two.body['reportUid'])]
      expect([one.status, two.status]).toEqual([202, 202])
    })

    describe('with workers', () => {
      beforeAll(async () => {
        await fillLedger(installation.vault.store, ENTITY, 200)
        await installation.openWorkers({ roles: ['bulk'] })
      })
      const downloaded = (uid: string, authorization = caller.authorization) =>
        until(
          async () => {
            const answer = await get(uid, {}, authorization)
            if (answer.status === 404) expect(answer.body['message']).toMatch(/INITIATED|PROCESSING_STARTED/)
            return answer.status !== 404 && answer
          },
          { what: `report ${uid}` },
        )

      it('becomes SUCCESSFUL under the uid that it was given, and can be downloaded', async () => {
        const uid = String(first.body['reportUid'])
        const file = await downloaded(uid)
        expect([file.status, file.text]).toEqual([200, expect.stringMatching(/^record,.*\r\nLINE,/)])
        expect(file.headers.get('etag')).toBe(`"${sha256Of(file.text)}"`)
        expect(file.headers.get('content-disposition')).toBe(
          `attachment; filename="MERCHANT_SETTLEMENT_REPORT_${DAY}_${uid}.csv"`,
        )
        const found = await list({ search: `reportUid==${uid}` })
        expect(found.body).toMatchObject({
          totals: 1,
          reports: [{ ...settlement(), status: 'SUCCESSFUL', lines: 200, bytes: Buffer.byteLength(file.text) }],
        })
      })

      it('that comes again is answered with the stored report, and nothing is queued', async () => {
        const before = await operations()
        const again = await ask(settlement())
        expect([again.status, again.body['reportUid']]).toEqual([200, first.body['reportUid']])
        expect(again.body).toMatchObject({ status: 'SUCCESSFUL', fileName: expect.stringContaining(DAY) })
        const cousin = await ask(settlement(), { authorization: await as('cousin', [ENTITY]) })
        expect(cousin.body).toEqual(again.body)
        expect(await operations()).toEqual(before)
      })

      it('with refresh is made anew, once however often it is asked while it is made', async () => {
        const [one, two] = await Promise.all([ask(settlement({ refresh: true })), ask(settlement({ refresh: true }))])
        const uid = String(one.body['reportUid'])
        expect([one.status, two.body['reportUid']]).toEqual([202, uid])
        expect(uid).not.toBe(first.body['reportUid'])
        await downloaded(uid)
        expect((await ask(settlement())).body['reportUid']).toBe(uid)
      })

      it('with refresh under a key is made once, and answered again under it', async () => {
        const anew = () => ask(settlement({ refresh: true }), { headers: { 'idempotency-key': 'anew' } })
        const one = await anew()
        const uid = String(one.body['reportUid'])
        expect([one.status, (await anew()).body['reportUid']]).toEqual([202, uid])
        await downloaded(uid)
        const again = await anew()
        expect([again.status, again.body['reportUid'], again.body['status']]).toEqual([200, uid, 'SUCCESSFUL'])
      })

      it('of two clients of one entity is made once, and both uids stand for it', async () => {
        const [one, two] = cousins
        const mine = await downloaded(one)
        const theirs = await downloaded(two, await as('cousin', [ENTITY]))
        expect(theirs.text).toBe(mine.text)
        const found = await list({ search: 'reportType==DAILY_TRANSACTION_REPORT' })
        expect(found.body).toMatchObject({ totals: 1, reports: [{ status: 'SUCCESSFUL' }] })
      })

      it('of a client that lost the entity before a worker came is FAILED, and asked again when it has it back is made', async () => {
        const lost = randomUUID()
        const authorization = await as('lost', [ENTITY, lost])
        const body = settlement({ reportEntityUid: lost, mimeType: 'text/plain' })
        const entities = async (list: string[]) => {
          await query(`update tokenmill.client set entities = $1 where name = 'lost'`, [list])
          const { store, ring } = installation.vault
          await grantAll(store, ring)
        }
        expect((await list({}, authorization)).status).toBe(200)
        await entities([ENTITY])
        const one = await ask(body, { authorization })
        expect(one.status).toBe(202)
        const uid = String(one.body['reportUid'])
        await until(async () => /FAILED/.test(String((await get(uid, {}, authorization)).body['message'])))
        await entities([ENTITY, lost])
        // The report has the same uid if the envelope was refused, and another one if the job was.
        await until(async () => (await ask(body, { authorization })).body['status'] === 'SUCCESSFUL', {
          what: 'the report, once everybody knows that the client has its entity back',
        })
      })
    })
  })

  it('stand in the document with their types', async () => {
    interface Operation {
      parameters: { name: string; description?: string }[]
      responses: Record<string, { content: object }>
    }
    const document = (await (await fetch(`${caller.url}/openapi.json`)).json()) as {
      paths: Record<string, Record<string, Operation>>
    }
    const { get: searched, post } = document.paths[REPORTS] ?? {}
    const described = searched?.parameters.find(({ name }) => name === 'search')?.description ?? ''
    for (const field of Object.keys(REPORT_FIELDS)) expect(described).toContain(`| \`${field}\``)
    expect(described).toContain(patternTable())
    expect(Object.keys(searched?.responses ?? {})).toEqual(['200', '400', '401', '403', '404', '429', '500'])
    expect(Object.keys(post?.responses ?? {})).toEqual(['200', '202', '400', '401', '403', '404', '429', '500', '503'])
    const { get: download } = document.paths[`${REPORTS}/{reportUid}`] ?? {}
    expect(Object.keys(download?.responses['200']?.content ?? {})).toEqual([
      'application/pdf',
      'text/csv',
      'text/plain',
    ])
  })
})
