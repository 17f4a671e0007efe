// Reports from the client library through queue, worker, process and store to the results queue. What the queue decides,
// several requests at once and a job that comes back, is tried on both engines.
import { randomUUID } from 'node:crypto'
import { readdirSync, readFileSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../producers/client.ts'
import type { Result } from '../../src/job/answer/result.ts'
import * as reports from '../../src/store/report/reports.ts'
import { DAY, fillLedger } from '../report/ledger.ts'
import { runCommand } from '../support/command.ts'
import { describeEngines } from '../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { writeBatch } from '../support/write-batch.ts'

describeEngines('the report worker', engine => {
  let installation: Installation
  let client: Client
  beforeAll(async () => {
    installation = await openInstallation(engine, { TOKENMILL_LOG_LEVEL: process.env['TEST_LOG'] ?? 'silent' })
    await fillLedger(installation.vault.store, ENTITY, 300)
    await installation.startWorkers({ roles: ['bulk'] })
    client = await installation.connect()
  })
  afterAll(() => installation?.close())

  const folder = () => join(installation.dataDir, 'reports')
  const settlement = (more: Record<string, unknown> = {}) => ({
    report_type: 'MERCHANT_SETTLEMENT_REPORT',
    entity_id: ENTITY,
    parameters: { clearingDate: DAY },
    mime_type: 'text/csv',
    ...more,
  })
  const ask = (request: object, jti?: string): Promise<Result> =>
    client.call('report', request, jti === undefined ? {} : { jti })
  const uidOf = ({ record }: Result) => String(record?.['reportUid'])

  // Before a kill, which leaves half a file for the hourly sweep.
  it.runIf(engine.name === 'postgres')(
    'makes a report once: the same request is answered with it, `refresh` makes another',
    async () => {
      const first = await ask(settlement())
      expect(first, JSON.stringify(first)).toMatchObject({
        status: 'SUCCEEDED',
        record: {
          reportUid: first.receipt_id,
          reportType: 'MERCHANT_SETTLEMENT_REPORT',
          reportParameter: { clearingDate: DAY },
          mimeType: 'text/csv',
          reportEntityUid: ENTITY,
          fileName: `MERCHANT_SETTLEMENT_REPORT_${DAY}_${first.receipt_id}.csv`,
          status: 'SUCCESSFUL',
          lines: 300,
        },
      })
      const again = await ask(settlement())
      expect(uidOf(again)).toBe(uidOf(first))
      expect(again.receipt_id).not.toBe(first.receipt_id)
      const anew = await ask(settlement({ refresh: true }))
      expect(uidOf(anew)).not.toBe(uidOf(first))
      expect(uidOf(await ask(settlement()))).toBe(uidOf(anew))
      expect(uidOf(await ask(settlement({ mime_type: 'application/pdf' })))).not.toBe(uidOf(anew))
      expect(readdirSync(folder()).filter(name => name.startsWith('part_'))).toEqual([])
    },
  )

  it('makes one of two that are asked for at once', async () => {
    const request = settlement({ report_type: 'DAILY_TRANSACTION_REPORT', parameters: { reportableDay: DAY } })
    const answers = await Promise.all([ask(request), ask(request), ask(request)])
    expect(new Set(answers.map(uidOf)).size).toBe(1)
    expect(answers.map(({ status }) => status)).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED'])
  })

  // On one engine the process that makes the report is killed, on the other the worker that forked it.
  it('makes a report once more after a kill in its midst: one record, no half file', async () => {
    const entity = randomUUID()
    const { credentials } = await installation.addClient('crash', { entity })
    await fillLedger(installation.vault.store, entity, 60_000)
    const caller = await installation.connect({ credentials })
    const before = new Set(readdirSync(folder()))
    const fresh = () => readdirSync(folder()).filter(name => !before.has(name))
    const answer = caller.call('report', settlement({ entity_id: entity }))
    const begun = () => fresh().some(name => name.startsWith('part_')) && makerOf(installation.dataDir)
    const maker = await until(begun, { what: 'half a file' })
    process.kill(engine.name === 'postgres' ? maker.pid : maker.parent, 'SIGKILL')
    const { record, attempt } = await answer
    expect(record).toMatchObject({ status: 'SUCCESSFUL', lines: 60_000 })
    // A worker that vanished costs no attempt.
    expect(attempt).toBe(engine.name === 'postgres' ? 2 : 1)
    const { rows } = await installation.vault.store.query({
      text: 'select status from tokenmill.report where report_entity_uid = $1',
      values: [entity],
    })
    expect(rows).toEqual([{ status: 'SUCCESSFUL' }])
    expect(fresh().filter(name => name.startsWith('MERCHANT'))).toHaveLength(1)
  })

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('answers a jti that comes again from its receipt, whichever report that named', async () => {
    const jti = randomUUID()
    const first = await ask(settlement({ mime_type: 'text/plain' }), jti)
    const repeated = await ask(settlement({ mime_type: 'text/plain' }), jti)
    expect(repeated.record).toEqual(first.record)
    const other = randomUUID()
    const stored = await ask(settlement({ mime_type: 'text/plain' }), other)
    expect((await ask(settlement({ mime_type: 'text/plain' }), other)).record).toEqual(stored.record)
    expect(uidOf(stored)).toBe(uidOf(first))
  })

  it('makes one whose period is open anew', async () => {
    const today = new Date().toISOString().slice(0, 10)
    const request = settlement({ parameters: { clearingDate: today } })
    expect(uidOf(await ask(request))).not.toBe(uidOf(await ask(request)))
  })

  it('names what is wrong with parameters, and keeps a record of it', async () => {
    const bad = await ask(settlement({ parameters: { clearingDate: '2026-02-30', more: 1 } }))
    expect(bad).toMatchObject({ status: 'FAILED', code: 400 })
    expect(Object.keys(bad.error?.details ?? {}).toSorted()).toEqual([
      'body.parameters.clearingDate',
      'body.parameters.more',
    ])
    expect(await reports.find(installation.vault.store, bad.receipt_id)).toMatchObject({
      status: 'INVALID_INPUT_PARAMETERS',
      failureReason: expect.stringContaining('clearingDate'),
    })
    const backwards = { invoicePeriodFrom: '2026-02-02', invoicePeriodTo: '2026-02-01' }
    expect(await ask(settlement({ report_type: 'INVOICE', parameters: backwards }))).toMatchObject({
      error: { details: { 'body.parameters.invoicePeriodTo': { code: 'field_range' } } },
    })
  })

  it('asks whose batch is meant if several clients have one of the id', async () => {
    const clients = [client.clientId, (await installation.addClient('second')).credentials.signingKey.clientId]
    await installation.vault.store.query({
      text: `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at, entity_id)
select c, 'm-same', 'token-update', 500, '{}', now(), $2 from unnest($1::text[]) as c`,
      values: [clients, ENTITY],
    })
    const request = (parameters: object) => ask(settlement({ report_type: 'BATCH_REPORT', parameters }))
    expect(await request({ batchId: 'm-same' })).toMatchObject({
      error: { code: 400, details: { 'body.parameters.clientId': { code: 'batch_of_several' } } },
    })
    for (const clientId of clients)
      expect(await request({ batchId: 'm-same', clientId })).toMatchObject({
        record: { status: 'SUCCESSFUL', lines: 0 },
      })
    await installation.vault.store.query({ text: `delete from tokenmill.batch where batch_id = 'm-same'` })
  })

  it('makes none for an entity that is not the client’s, nor without the role', async () => {
    const foreign = settlement({ entity_id: randomUUID() })
    expect(await ask(foreign)).toMatchObject({
      error: { code: 403, details: { 'body.entity_id': { code: 'entity_forbidden' } } },
    })
    const { credentials } = await installation.addClient('reader', { roles: ['REPORT_READ'] })
    const other = await installation.connect({ credentials })
    expect(await other.call('report', settlement())).toMatchObject({ error: { code: 403 } })
  })

  it('says FAILED and where, and keeps no file, if lines and sums differ; asked again after it was mended, it is made', async () => {
    expect(
      await writeBatch(client, installation, [{ cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2031 }]),
    ).toEqual(['CREATED'])
    const { store } = installation.vault
    const { rows } = await store.query<{ batch_id: string }>({ text: 'select batch_id from tokenmill.batch' })
    const tamper = (created: number) =>
      store.query({
        text: `update tokenmill.receipt set counts = counts || '{"CREATED": ${created}}' where batch_no is not null`,
      })
    const request = settlement({ report_type: 'BATCH_REPORT', parameters: { batchId: rows[0]?.batch_id } })
    await tamper(2)
    const files = readdirSync(folder())
    const jti = randomUUID()
    const failed = await ask(request, jti)
    expect(failed).toMatchObject({ status: 'FAILED', code: 500 })
    expect(await reports.find(store, failed.receipt_id)).toMatchObject({
      status: 'FAILED',
      failureReason: expect.stringMatching(/group CREATED: records of the lines is 1, the store's sum is 2/),
      storageKey: null,
    })
    expect(readdirSync(folder())).toEqual(files)
    await tamper(1)
    const mended = await ask(request, jti)
    expect(mended).toMatchObject({ status: 'SUCCEEDED', record: { status: 'SUCCESSFUL', lines: 1 } })
    const { storageKey } = (await reports.find(store, uidOf(mended))) ?? {}
    expect(await readFile(join(folder(), storageKey ?? ''), 'utf8')).toBe(
      'record,outcome,reason,chunks,records,lines\r\nLINE,CREATED,,1,1,\r\nGROUP,CREATED,,,1,1\r\nTOTAL,,,,1,1\r\n',
    )
    const activity = settlement({
      report_type: 'TOKEN_ACTIVITY_REPORT',
      parameters: { reportableDay: new Date().toISOString().slice(0, 10) },
    })
    const { record } = await ask(activity)
    const counted = await reports.find(store, String(record?.['reportUid']))
    expect(counted?.totals).toEqual([
      { lines: '1', sums: { created: '1', updated: '0', suspended: '0', deleted: '0' } },
    ])
  })

  it('gives its file to whoever asks on the command line, whole and checked', async () => {
    const run = (...words: string[]) => runCommand(['report', ...words], { env: installation.env })
    const options = [
      '--type',
      'INVOICE',
      '--parameter',
      `invoicePeriodFrom=${DAY}`,
      '--parameter',
      `invoicePeriodTo=${DAY}`,
    ]
    const credentials = ['--client', installation.clientFile]
    const asked = await run('request', ...options, ...credentials, '--mime', 'text/plain', '--wait', '--json')
    expect(asked.code, asked.stderr).toBe(0)
    const { reportUid, sha256, bytes } = JSON.parse(asked.stdout) as Record<string, string>
    const listed = await run('list', ...credentials, '--search', `reportUid==${reportUid}`, '--json')
    expect(JSON.parse(listed.stdout)).toMatchObject({
      totals: 1,
      reports: [{ reportUid, sha256, status: 'SUCCESSFUL' }],
    })
    expect(await run('list', ...credentials, '--search', 'status=lt=x')).toMatchObject({ code: 64 })
    const out = join(installation.dataDir, 'invoice.txt')
    const taken = await run('download', reportUid ?? '', '--out', out)
    expect(taken.stderr).toContain(`${bytes} bytes, SHA-256 ${sha256}`)
    expect(readFileSync(out, 'utf8')).toMatch(/^INVOICE\n[\s\S]*\nEnd of report\.\n$/)
    const wrong = await run('request', '--type', 'INVOICE', ...credentials, '--wait')
    expect(wrong).toMatchObject({ code: 64, stderr: expect.stringContaining('--parameter invoicePeriodFrom') })
    expect(await run('download', randomUUID())).toMatchObject({ code: 1 })
  })
})

/** The process that makes a report for this installation's workers. */
function makerOf(dataDir: string): { pid: number; parent: number } | undefined {
  for (const name of readdirSync('/proc')) {
    try {
      const read = (file: string) => readFileSync(`/proc/${name}/${file}`, 'utf8')
      if (!/^\d+$/.test(name) || !read('cmdline').includes('report-process.ts')) continue
      if (read('environ').includes(dataDir))
        return { pid: Number(name), parent: Number(/^PPid:\s+(\d+)/m.exec(read('status'))?.[1]) }
    } catch {
      // The process ended meanwhile.
    }
  }
  return undefined
}
