// Batches over HTTP: a body becomes a batch when it has arrived completely, and its cards are stored nowhere in clear.

import { request as httpRequest } from 'node:http'
import { setTimeout as pause } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { openEvents } from '../../../../producers/gateway/batches/events.ts'
import { systemClock } from '../../../../src/clock.ts'
import { openLog } from '../../../../src/log.ts'
import * as batches from '../../../../src/store/batch/batches.ts'
import * as intake from '../../../../src/store/batch/intake.ts'
import * as chunks from '../../../../src/store/batch/intake-chunks.ts'
import { readDatabase } from '../../../security/places.ts'
import { describeStore } from '../../../support/engines.ts'
import { grantAll } from '../../../support/grant-all.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'
import { startScript } from '../../../support/process.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'
import { type Answer, basicOf, type Caller, type CallOptions, openGatewayFor } from '../bundle.ts'

const BATCHES = '/oidc/api/v2/batches'
const CSV = { 'content-type': 'text/csv' }
const NDJSON = { 'content-type': 'application/x-ndjson' }
const ROWS = 5_000

/** Every hundredth number fails its Luhn check, and every fiftieth row repeats the one before it. */
const panOf = (from: number, row: number) => {
  if (row % 100 === 99) return testPan(from + row).replace(/.$/, last => String((Number(last) + 1) % 10))
  return testPan(from + (row % 50 === 49 ? row - 1 : row))
}
const rowsOf = <T>(count: number, row: (index: number) => T) => Array.from({ length: count }, (_, index) => row(index))
const csvOf = (from: number, count: number) =>
  `reference,card_number,expiry_month,expiry_year\n${rowsOf(count, row => `r-${row},${panOf(from, row)},12,2034\n`).join('')}`
const ndjsonOf = (from: number, count: number) =>
  rowsOf(
    count,
    row => `${JSON.stringify({ reference: `r-${row}`, card_number: panOf(from, row), expiry: '12/34' })}\n`,
  ).join('')
const EXPECTED = { CREATED: 4_900, DUPLICATE: 50, REJECTED: 50 }

describeStore('a batch over HTTP', engine => {
  let installation: Installation
  let caller: Caller
  beforeAll(async () => {
    installation = await openInstallation(engine)
    caller = await openGatewayFor(installation, { TOKENMILL_RESEND_SECONDS: '2', TOKENMILL_BATCH_BODY_MB: '1' })
  })
  afterAll(async () => {
    await caller?.close()
    await installation?.close()
  })

  const query = async <R>(text: string, values: unknown[] = []) =>
    (await installation.vault.store.query<R>({ text, values })).rows
  const post = (search: string, body: string, options: CallOptions = {}) =>
    caller.call('POST', `${BATCHES}?token_scope=${installation.scope}${search}`, { headers: CSV, body, ...options })
  const show = async (id: unknown, options: CallOptions = {}) =>
    (await caller.call('GET', `${BATCHES}/${id}`, options)).body
  const finished = (id: unknown, options: CallOptions = {}) =>
    until(
      async () => {
        const status = await show(id, options)
        return status['finished'] === true && status
      },
      { what: `batch ${id}` },
    )
  const leftOf = async () => [
    await query('select from tokenmill.intake'),
    await query('select from tokenmill.intake_chunk'),
  ]
  const codeOf = ({ body }: Answer) =>
    Object.entries((body['details'] ?? {}) as Record<string, { code: string }>).map(
      ([field, { code }]) => `${field} ${code}`,
    )

  describe('before any worker runs', () => {
    it.each([
      ['&colour=red', 'query.colour field_unknown'],
      ['&kind=report', 'query.kind field_value'],
      ['&on_conflict=never', 'query.on_conflict field_value'],
      ['&dry_run=1', 'query.dry_run field_value'],
      ['&batch_id=a%20b', 'query.batch_id field_format'],
      ['&dry_run=true&batch_id=mine', 'query.batch_id field_conflict'],
      ['&kind=token-update', 'query.token_scope field_conflict'],
    ])('is refused for the query %s', async (search, code) => {
      const answer = await post(search, csvOf(0, 1))
      expect([answer.status, codeOf(answer)]).toEqual([400, [code]])
    })

    it('is refused without a scope, for another’s scope, without the role of its kind, and without credentials', async () => {
      const other = await installation.addClient('other', { entity: '11111111-2222-4333-8444-555555555555' })
      const reader = await installation.addClient('reader', { roles: ['TOKEN_READ'] })
      const without = await caller.call('POST', BATCHES, { headers: CSV, body: csvOf(0, 1) })
      const foreign = await caller.call('POST', `${BATCHES}?token_scope=${other.scope}`, {
        headers: CSV,
        body: csvOf(0, 1),
      })
      const roleless = await post('', csvOf(0, 1), { authorization: await basicOf(reader.clientFile) })
      const nobody = await post('', csvOf(0, 1), { authorization: null })
      expect([without, foreign, roleless, nobody].map(({ status }) => status)).toEqual([400, 403, 403, 401])
    })

    it('is refused at once, by its lines, where a row needs a role that the caller lacks, however it is sent', async () => {
      const id = `t${'0'.repeat(26)}`
      const writer = await installation.addClient('writer', { roles: ['TOKEN_WRITE', 'TOKEN_READ'] })
      const authorization = await basicOf(writer.clientFile)
      const csv = `id,cardholder_name,scheme_token_action\n${id},ANNA,\n${id},,DELETE\n${id},BERTA,\n${id},,SUSPEND\n`
      const ndjson = `{"id":"${id}","cardholder_name":"ANNA"}\n{"id":"${id}","scheme_token_action":"ACTIVATE"}\n`
      const sent = (search: string, body: string, headers = CSV as Record<string, string>, by: CallOptions = {}) =>
        caller.call('POST', `${BATCHES}?kind=token-update${search}`, { headers, body, authorization, ...by })
      const refused = (line: number) => `body.lines.${line}.scheme_token_action role_missing`
      for (const search of ['', '&dry_run=true', '&batch_id=acting']) {
        const ends = [await sent(search, csv), await sent(search, ndjson, NDJSON)]
        expect(ends.map(end => [end.status, codeOf(end)])).toEqual([
          [403, [refused(3), refused(5)]],
          [403, [refused(2)]],
        ])
      }
      expect(await leftOf()).toEqual([[], []])
      const [one, other] = [
        await caller.call('POST', `${BATCHES}?kind=token-lifecycle`, {
          headers: CSV,
          body: 'id,action\n',
          authorization,
        }),
        await caller.call('POST', `${BATCHES}?kind=reference`, { headers: CSV, body: 'id,action\n', authorization }),
      ]
      expect([one, other].map(end => [end.status, codeOf(end)])).toEqual([
        [403, ['query.kind role_missing']],
        [403, ['query.kind role_missing']],
      ])
    })

    it('is refused where its body can’t be read as rows, and leaves nothing', async () => {
      const json = await post('', '{}', { headers: { 'content-type': 'application/json' } })
      expect(codeOf(json)).toEqual(['body body_media_type'])
      const unknown = await post('', `reference,card_number,expiry,colour\n`)
      expect(unknown.body['details']).toEqual({
        body: { code: 'rows_unreadable', message: 'Line 1, column 4: unknown column "colour".' },
      })
      expect(codeOf(await post('', ''))).toEqual(['body rows_unreadable'])
      expect(codeOf(await post('', `${csvOf(0, 2_000)}\n${'x'.repeat(1_100_000)}`))).toEqual(['body body_too_large'])
      expect(await leftOf()).toEqual([[], []])
    })

    it('whose body breaks off leaves nothing that runs', async () => {
      const body = Buffer.from(csvOf(0, 6_000))
      const sending = httpRequest(`${caller.url}${BATCHES}?token_scope=${installation.scope}&batch_id=broken`, {
        method: 'POST',
        headers: { ...CSV, authorization: caller.authorization, 'content-length': body.length + 10 },
      })
      sending.on('error', () => {})
      sending.write(body)
      await until(async () => (await query('select from tokenmill.intake_chunk')).length >= 5)
      expect(await query('select state from tokenmill.intake')).toEqual([{ state: 'RECEIVING' }])
      expect((await caller.call('GET', `${BATCHES}/broken`)).status).toBe(404)
      sending.destroy()
      await until(async () => (await leftOf()).flat().length === 0, { what: 'nothing is left' })
      expect(await query('select from tokenmill.batch')).toEqual([])
      expect((await installation.queues.depth('token-batch')).waiting).toBe(0)
    })

    it('is accepted when its end has come, under an id that stands for this body alone', async () => {
      const body = ndjsonOf(10_000, 1_200)
      const made = await post('&batch_id=first', body, { headers: NDJSON })
      expect(made).toMatchObject({ status: 202, body: { batch_id: 'first', records: 1_200, chunks: 2 } })
      expect(made.headers.get('location')).toBe(`${BATCHES}/first`)
      const again = await post('&batch_id=first', body, { headers: NDJSON })
      expect(again.body).toEqual(made.body)
      expect(codeOf(await post('&batch_id=first', `${body} `, { headers: NDJSON }))).toEqual([
        'query.batch_id batch_id_reused',
      ])
      expect(codeOf(await post('&batch_id=first&on_conflict=keep', body, { headers: NDJSON }))).toEqual([
        'query.batch_id batch_id_reused',
      ])
      expect(await query('select from tokenmill.intake')).toHaveLength(1)
      expect(await query('select batch_id, entity_id from tokenmill.batch')).toEqual([
        { batch_id: 'first', entity_id: ENTITY },
      ])
      expect(await show('first')).toMatchObject({ finished: false, records: 1_200, records_done: 0, progress: 0 })
      const results = await caller.call('GET', `${BATCHES}/first/results`)
      expect([results.status, codeOf(results)]).toEqual([404, ['params.id batch_unfinished']])
    })

    it('is counted as promised, chunk by chunk', async () => {
      const { rows, oldest } = await chunks.measure(caller.gateway.deps.store)
      expect(rows).toBeGreaterThan(0)
      expect(Date.now() - Number(oldest)).toBeLessThan(120_000)
    })

    it('that is sent twice at the same time is one batch', async () => {
      const body = csvOf(20_000, 1_500)
      const answers = await Promise.all([1, 2, 3].map(() => post('&batch_id=raced', body)))
      expect(answers.map(({ status }) => status)).toEqual([202, 202, 202])
      expect(new Set(answers.map(({ text }) => text)).size).toBe(1)
      expect(await query(`select from tokenmill.intake where batch_id = 'raced'`)).toHaveLength(1)
      expect(await query('select from tokenmill.intake where state = $1', ['RECEIVING'])).toEqual([])
    })

    it('shows no card in any table', async () => {
      const places = await readDatabase(engine.databaseUrl)
      const traces = [panOf(10_000, 0), panOf(10_000, 777), panOf(20_000, 3)]
      expect(places.filter(({ text }) => traces.some(pan => text.includes(pan)))).toEqual([])
      expect(places.some(({ text }) => text.includes('r-777'))).toBe(true)
    })

    it('is its client’s alone', async () => {
      const { clientFile } = await installation.addClient('lister')
      const authorization = await basicOf(clientFile)
      for (const [method, path] of [
        ['GET', ''],
        ['GET', '/results'],
        ['GET', '/events'],
        ['DELETE', ''],
      ] as const)
        expect((await caller.call(method, `${BATCHES}/first${path}`, { authorization })).status).toBe(404)
    })

    it('is followed until its gateway closes', async () => {
      const closing = await openGatewayFor(installation)
      const answer = await fetch(`${closing.url}${BATCHES}/first/events`, {
        headers: { authorization: caller.authorization },
      })
      const reading = answer.text()
      await closing.close()
      expect(await reading).toMatch(/^event: progress\nid: 0\ndata: \{/)
    })

    it('that is cancelled before anything started ends with every row CANCELLED, and keeps no block', async () => {
      await installation.queues.obliterate('token-batch')
      await query(`update tokenmill.intake_chunk set state = 'WAITING', sent_at = null, due_at = null`)
      expect((await caller.call('DELETE', `${BATCHES}/first`)).status).toBe(204)
      expect((await caller.call('DELETE', `${BATCHES}/first`)).status).toBe(204)
      expect(await show('first')).toMatchObject({ state: 'CANCELLED' })
    })
  })

  describe('with workers', () => {
    beforeAll(async () => {
      await installation.openWorkers({ roles: ['bulk'] })
    })

    it('that was cancelled has taken no effect', async () => {
      expect(await finished('first')).toMatchObject({
        state: 'CANCELLED',
        progress: 1,
        records_done: 1_200,
        counts: { CANCELLED: 1_200, CREATED: 0 },
      })
      const { text } = await caller.call('GET', `${BATCHES}/first/results`)
      const lines = text.trimEnd().split('\n')
      expect(lines).toHaveLength(1_201)
      expect(lines[1]).toBe('1,r-0,CANCELLED,400,,,,,,,,cancelled')
      expect(lines.at(-1)).toBe('1200,r-1199,CANCELLED,400,,,,,,,,cancelled')
    })

    it('is listed beside those that came by the queue, newest first, and finished for the workers, too', async () => {
      const { clientId } = installation.credentials.signingKey
      await batches.open(installation.vault.store, {
        clientId,
        batchId: 'queued',
        recordKind: 'token-create',
        tokenScope: installation.scope,
        layout: {},
        entityId: null,
        chunkRecords: 500,
        acceptedAt: Date.now(),
      })
      expect((await post('&batch_id=listed', csvOf(50_000, 600))).status).toBe(202)
      // Workers may take chunks of both batches in any order, so either may end first.
      await Promise.all(['listed', 'raced'].map(id => finished(id)))
      const listOf = async (search: string) => {
        const { status, body } = await caller.call('GET', `${BATCHES}?${search}`)
        expect(status).toBe(200)
        return (body['batches'] as { batch_id: string; state: string }[]).map(one => `${one.batch_id} ${one.state}`)
      }
      const told = async () => (await listOf('state=FINISHED')).join()
      await until(async () => (await told()).startsWith('listed FINISHED,raced FINISHED'))
      expect(await listOf('limit=2')).toEqual(['listed FINISHED', 'queued ACCEPTED'])
      expect(await listOf('limit=2&before=listed')).toEqual(['queued ACCEPTED', 'raced FINISHED'])
      expect(await listOf('state=CANCELLED')).toEqual(['first CANCELLED'])
      expect((await caller.call('GET', `${BATCHES}/queued`)).body).toMatchObject({ state: 'ACCEPTED', finished: false })
      expect(codeOf(await caller.call('GET', `${BATCHES}?before=none`))).toEqual(['query.before batch_not_found'])
      expect(codeOf(await caller.call('GET', `${BATCHES}?limit=0`))).toEqual(['query.limit field_range'])
      const stranger = await installation.addClient('unrelated')
      const other = await caller.call('GET', BATCHES, { authorization: await basicOf(stranger.clientFile) })
      expect(other.body).toEqual({ batches: [] })
    })

    it.each([
      ['CSV', CSV, csvOf, 100_000, 2],
      ['NDJSON', NDJSON, ndjsonOf, 200_000, 1],
    ])(
      'of 5,000 rows of %s ends with an outcome for each, in the order of its rows',
      async (name, headers, bodyOf, from, first) => {
        const id = `whole-${name}`
        expect((await post(`&batch_id=${id}`, bodyOf(from, ROWS), { headers })).status).toBe(202)
        const status = await finished(id)
        expect(status).toMatchObject({
          state: 'FINISHED',
          progress: 1,
          records: ROWS,
          records_done: ROWS,
          chunks: 5,
          chunks_done: 5,
          counts: EXPECTED,
        })
        const csv = (await caller.call('GET', `${BATCHES}/${id}/results`)).text.trimEnd().split('\n')
        expect(csv[0]).toBe(
          'line,reference,outcome,code,reuse_token,analytics_token,bin,last_four,expiry_month,expiry_year,brand,reason',
        )
        expect(csv[1]).toMatch(new RegExp(`^${first},r-0,CREATED,200,t[0-9A-Z]{26},,41111100,....,12,2034,VISA,$`))
        const ndjson = (
          await caller.call('GET', `${BATCHES}/${id}/results`, { headers: { accept: 'application/x-ndjson' } })
        ).text
        const records = ndjson
          .trimEnd()
          .split('\n')
          .map(line => JSON.parse(line) as { line: number; reference: string; outcome: string; reason?: string })
        expect(records.map(({ line }) => line)).toEqual(rowsOf(ROWS, row => row + first))
        expect(records.map(({ reference }) => reference)).toEqual(rowsOf(ROWS, row => `r-${row}`))
        expect(records[99]).toMatchObject({ outcome: 'REJECTED', reason: 'pan_luhn' })
        expect(records[49]).toMatchObject({ outcome: 'DUPLICATE' })
        const kept = await query(
          `select from tokenmill.intake_chunk where jws is not null or block is not null or (state = 'DONE' and lines is not null)`,
        )
        expect(kept).toEqual([])
        expect((await post(`&batch_id=${id}`, bodyOf(from, ROWS), { headers })).status).toBe(202)
        expect((await show(id))['counts']).toEqual(status['counts'])
      },
    )

    it('tells its progress as events, whatever was seen before, and ends with `finished`', async () => {
      const made = await post('', csvOf(300_000, 3_000))
      const id = made.body['batch_id']
      const headers = { authorization: caller.authorization, 'last-event-id': '999' }
      const answer = await fetch(`${caller.url}${BATCHES}/${id}/events`, { headers })
      expect(answer.headers.get('content-type')).toBe('text/event-stream')
      const text = await answer.text()
      const events = [...text.matchAll(/^event: (\w+)\nid: (\d+)\ndata: (.*)\n\n/gm)]
      expect(events[0]?.[1]).toBe('progress')
      expect(events.at(-1)?.[1]).toBe('finished')
      expect(JSON.parse(events.at(-1)?.[3] ?? '')).toMatchObject({ batch_id: id, finished: true, records_done: 3_000 })
      // A late reader also gets the last event.
      const { store } = installation.vault
      const found = await intake.find(store, installation.credentials.signingKey.clientId, String(id))
      const opened = openEvents({ store, clock: systemClock, log: openLog('silent') })
      const stream = found && opened.open(found)
      await pause(2_200)
      expect((await stream?.toArray())?.join('')).toMatch(/^event: finished\n/m)
      opened.close()
    })

    it('accepted by a gateway that is killed before it could queue a chunk, is done once by the next one', async () => {
      const env = { ...installation.env, TOKENMILL_HTTP_PORT: '0', TOKENMILL_RESEND_SECONDS: '2' }
      const child = startScript('test/producers/gateway/deaf-gateway.ts', [], { env })
      const [, port] = await child.line(/port (\d+)/)
      const answer = await fetch(
        `http://127.0.0.1:${port}${BATCHES}?token_scope=${installation.scope}&batch_id=orphan`,
        {
          method: 'POST',
          headers: { ...CSV, authorization: caller.authorization },
          body: csvOf(400_000, 2_000),
        },
      )
      expect(answer.status).toBe(202)
      await child.kill9()
      expect(await finished('orphan')).toMatchObject({ counts: { CREATED: 1_960, DUPLICATE: 20, REJECTED: 20 } })
      expect(await query(`select from tokenmill.receipt where jti like 'orphan-%'`)).toHaveLength(2)
    })

    it('whose client loses its role on the way ends with every row refused, by line and reference', async () => {
      const { clientFile, credentials, scope } = await installation.addClient('demoted', { entity: ENTITY })
      const authorization = await basicOf(clientFile)
      const { clientId } = credentials.signingKey
      const path = `${BATCHES}?token_scope=${scope}&batch_id=demoted`
      const lock = await installation.vault.store.pool.connect()
      try {
        // This gateway's feeder waits while another one holds the lock.
        await lock.query(`begin; select pg_advisory_xact_lock(hashtextextended('tokenmill feeder', 0))`)
        expect(
          (await caller.call('POST', path, { authorization, headers: CSV, body: csvOf(500_000, 10) })).status,
        ).toBe(202)
        await query(`update tokenmill.client set roles = '{TOKEN_READ}' where client_id = $1`, [clientId])
        await grantAll(installation.vault.store, installation.vault.ring)
      } finally {
        await lock.query('rollback')
        lock.release()
      }
      expect(await finished('demoted', { authorization })).toMatchObject({ counts: { REJECTED: 10 } })
      const { text } = await caller.call('GET', `${BATCHES}/demoted/results`, { authorization })
      expect(text.split('\n')[3]).toBe('4,r-2,REJECTED,403,,,,,,,,role_missing')
    })

    it('as a dry run predicts every outcome, and leaves no token and no receipt', async () => {
      const before = await query<{ tokens: number }>('select count(*) as tokens from tokenmill.token')
      const made = await post('&dry_run=true', csvOf(600_000, 1_000))
      expect(made.status).toBe(202)
      const id = made.body['batch_id']
      expect(await finished(id)).toMatchObject({ dry_run: true, counts: { CREATED: 980, DUPLICATE: 10, REJECTED: 10 } })
      expect((await caller.call('GET', `${BATCHES}/${id}/results`)).text.trimEnd().split('\n')).toHaveLength(1_001)
      expect(await query('select count(*) as tokens from tokenmill.token')).toEqual(before)
      expect(await query(`select from tokenmill.receipt where jti like 'dry-%'`)).toEqual([])
    })
  })
})
