// Reports in an installation without a common place for their files: requests are refused at once instead of waiting.
import { randomUUID } from 'node:crypto'
import { readdirSync } from 'node:fs'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ownReportsUrl } from '../../src/config.ts'
import { REASONS } from '../../src/errors.ts'
import { basicOf, openCalls, openGatewayFor } from '../producers/gateway/bundle.ts'
import { runCommand } from '../support/command.ts'
import { describeEngines } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { type Child, startCommand } from '../support/process.ts'
import { until } from '../support/until.ts'
import { DAY, fillLedger } from './ledger.ts'

const REPORTS = '/oidc/report-engine/api/v1/reports'
const REQUEST = {
  report_type: 'MERCHANT_SETTLEMENT_REPORT',
  entity_id: ENTITY,
  parameters: { clearingDate: DAY },
  mime_type: 'text/csv',
}
const ASKED = {
  reportType: REQUEST.report_type,
  reportEntityUid: ENTITY,
  reportParameter: REQUEST.parameters,
  mimeType: REQUEST.mime_type,
}

describeEngines('an installation without REPORTS_URL', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine, { REPORTS_URL: '', TOKENMILL_PROCESSES: '1' })
    await fillLedger(installation.vault.store, ENTITY, 5)
  })
  afterAll(() => installation?.close())

  const command = (args: string[], env: Record<string, string | undefined> = {}): Child =>
    startCommand(args, { env: { ...(installation.env as Record<string, string>), ...env } })
  const end = async (child: Child) => {
    child.signal('SIGTERM')
    expect((await child.exit).code, child.stderr()).toBe(0)
  }
  const ready = { stream: 'stderr' } as const

  // Workers decide what a host refuses, so one engine suffices: the one whose senders have no store.
  it.runIf(engine.name === 'redis')(
    'has workers that start without reports, say so, and refuse at once what asks for one',
    async () => {
      const workers = command(['workers'], { TOKENMILL_LOG_LEVEL: 'info' })
      await workers.line(/"kinds":\["token-batch","transaction-batch","manifest-total"\].*"working"/, ready)
      expect(workers.stderr().match(/no reports are made on this host: REPORTS_URL is not set/g)).toHaveLength(1)
      const client = await installation.connect()
      const jti = randomUUID()
      const refused = await client.call('report', REQUEST, { jti })
      expect(refused.error).toMatchObject({ code: 400, details: { 'body.kind': { code: 'reports_unavailable' } } })
      // Without a store the command learns it only from the answer.
      const asking = ['report', 'request', '--type', 'BATCH_REPORT', '--parameter', 'batchId=b', '--wait']
      const asked = await runCommand([...asking, '--client', installation.clientFile], {
        env: { ...installation.env, DATABASE_URL: undefined },
      })
      expect(asked.code).toBe(78)
      expect(asked.stderr).toBe(`tokenmill: ${REASONS.reports_unavailable.text}\n`)

      // A host that can make reports takes them all from then on, under the same jti too.
      const place = ownReportsUrl(installation.dataDir)
      const maker = command(['workers', '--kinds', 'report'], { REPORTS_URL: place, TOKENMILL_LOG_LEVEL: 'info' })
      await maker.line(/"kinds":\["report"\].*"working"/, ready)
      const made = await client.call('report', REQUEST, { jti })
      expect(made.record).toMatchObject({ status: 'SUCCESSFUL', lines: 5 })
      const others = await Promise.all([1, 2, 3].map(() => client.call('report', { ...REQUEST, refresh: true })))
      expect(others.map(({ status }) => status)).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED'])
      await Promise.all([end(workers), end(maker)])
    },
  )

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('has no workers for reports alone: 78', async () => {
    const workers = command(['workers', '--kinds', 'report'])
    expect(await workers.exit).toMatchObject({ code: 78 })
    expect(workers.stderr()).toMatch(/^tokenmill: REPORTS_URL: must be set, /m)
  })

  it('refuses requests and downloads over HTTP with 503, and goes on to list reports', async () => {
    const caller = await openGatewayFor(installation)
    const answers = [
      await caller.call('POST', REPORTS, { body: ASKED }),
      await caller.call('GET', `${REPORTS}/${randomUUID()}`),
    ]
    for (const { status, body } of answers)
      expect([status, body]).toEqual([
        503,
        {
          code: '503',
          title: 'Service Unavailable',
          type: 'API_ERROR',
          message: REASONS.reports_unavailable.text,
          timestamp: expect.stringMatching(/Z$/),
        },
      ])
    expect(await caller.call('GET', REPORTS)).toMatchObject({ status: 200 })
    await caller.close()
  })

  describe('and without a host that makes reports', () => {
    beforeAll(async () => {
      await installation.vault.store.query({ text: 'update tokenmill.installation set reports_made_at = null' })
    })
    it.each([
      ['request', '--type', 'BATCH_REPORT', '--parameter', 'batchId=b'],
      ['download', randomUUID()],
    ])('ends `report %s` with one line and 78', async (...args) => {
      const { code, stderr } = await runCommand(['report', ...args], { env: installation.env })
      expect(code).toBe(78)
      expect(stderr).toMatch(/^tokenmill: REPORTS_URL: must be set, [^\n]*\n$/)
    })
  })

  it('keeps reports in the data directory where `start` runs every role', async () => {
    const ports = { TOKENMILL_HTTP_PORT: '0', TOKENMILL_THREE_DS_PORT: '0', TOKENMILL_CONSOLE_PORT: '0' }
    const all = command(['start'], { ...ports, TOKENMILL_LOG_LEVEL: 'warn' })
    const [, url = ''] = await all.line(/It serves (http:\/\/[^/]+)\/oidc/, ready)
    const call = await openCalls(url, await basicOf(installation.clientFile))
    const { status, body } = await call('POST', REPORTS, { body: { ...ASKED, refresh: true } })
    expect(status).toBe(202)
    const file = await until(
      async () => {
        const answer = await call('GET', `${REPORTS}/${body['reportUid']}`)
        return answer.status === 200 && answer.text
      },
      { what: 'the report over HTTP' },
    )
    expect(file).toContain('TOTAL')
    expect(readdirSync(join(installation.dataDir, 'reports')).join()).toContain(String(body['reportUid']))
    await end(all)
  })
})
