// The pages of batches: a batch's figures are those of `batch show`, its chart draws what was noted, its refused rows are shown
// without their references, and a list is sent as CSV after the audit says who takes it.
import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { setImmediate } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { refusedOf } from '../../../../producers/console/batches/counted.ts'
import { FIRST, lookForRefused } from '../../../../producers/console/batches/refused.ts'
import { CSV_ROWS_MAX, sendCsv } from '../../../../producers/console/csv.ts'
import { grantPerson } from '../../../../src/acts/person-grants.ts'
import { pack, type RecordOutcome } from '../../../../src/job/chunk-outcomes.ts'
import { noCounts, type Outcome } from '../../../../src/job/outcome.ts'
import { openLog } from '../../../../src/log.ts'
import { sightOf } from '../../../../src/store/sight.ts'
import { runCommand } from '../../../support/command.ts'
import { type ConsoleBundle, OURS, openConsoleBundle, type Person, THEIRS } from '../bundle.ts'

const HOSTILE = `=cmd|'/c calc'!A1"><img src=x onerror="window.pwned=1">`
const REFERENCE = 'canary-reference'
const CARD = '4111111111111111'

let bundle: ConsoleBundle
let ada: Person
beforeAll(async () => {
  bundle = await openConsoleBundle()
  ada = await bundle.addPerson('ada')
})
afterAll(() => bundle?.close())

const page = async (path: string, { cookie }: Person = ada) => (await bundle.call('GET', path, { cookie })).text
const plain = (html: string) =>
  html
    .replace(/<[^>]+>/g, ' ')
    .replace(/\s+/g, ' ')
    .trim()

/** A receipt of a chunk: its rows are refused with a reason, or created (`undefined`). */
async function addChunk(batchNo: number, chunk: number, rows: readonly (Outcome | undefined)[]): Promise<void> {
  const records = rows.map((outcome, index): RecordOutcome => {
    const refused = { outcome: outcome ?? 'CREATED', reason: outcome && 'pan_luhn', field: outcome && 'body.pan' }
    return { line: chunk * 100 + index + 2, reference: `${REFERENCE}-${CARD}`, token: undefined, ...refused }
  })
  const counts = noCounts()
  for (const { outcome } of records) counts[outcome] += 1
  await bundle.rows(
    `insert into tokenmill.receipt (receipt_id, day, client_id, iss, kind, jti, request_digest, envelope_digest, status, code, batch_no,
  chunk, counts, outcomes, revision, attempt, accepted_at, completed_at)
values (gen_random_uuid(), current_date, 'c', 'c', 'token-batch', $1, '', '', 'SUCCEEDED', 200, $2, $3, $4, $5, 1, 1, now(), now())`,
    [randomUUID(), batchNo, chunk, JSON.stringify(counts), pack(records)],
  )
}
const addSamples = (batchNo: number, samples: readonly [minutesAgo: number, done: number, state: string][]) =>
  Promise.all(
    samples.map(([minutesAgo, done, state]) =>
      bundle.rows(
        `insert into tokenmill.batch_sample (batch_no, at, rows_done, rows_refused, state)
values ($1, now() - make_interval(mins => $2), $3, 0, $4)`,
        [batchNo, minutesAgo, done, state],
      ),
    ),
  )

describe('one batch', () => {
  it('has the figures of batch show --json', async () => {
    const batchId = 'same-figures'
    const no = await bundle.addBatch({
      batchId,
      extentRows: 91_234,
      rowsDone: 54_321,
      counts: { CREATED: 40_001, UPDATED: 7_002, UNCHANGED: 5_003, DUPLICATE: 1_004, REJECTED: 900, FAILED: 411 },
      more: `extent_chunks = 92, chunks_done = 55, paused_at = '2026-11-20T10:11:12Z', created_at = '2026-11-20T09:08:07Z',
  active_at = '2026-11-20T10:10:10Z', source_name = 'spring/part-2.csv', source_sha256 = '${'ab'.repeat(32)}',
  reasons = '{"REJECTED": {"pan_luhn": 777, "card_expired": 123}, "FAILED": {"internal": 411}}'`,
    })
    const { env } = bundle.installation
    const { stdout } = await runCommand(['batch', 'show', batchId, '--json'], { env })
    const shown = JSON.parse(stdout)
    expect(shown.batch_id).toBe(batchId)
    const text = plain(await page(`/batches/${no}`))
    const count = (n: number) => n.toLocaleString('en-US')
    const when = (at: string) => `${at.slice(0, 19).replace('T', ' ')} UTC`
    for (const wanted of [
      `${batchId} ${shown.state}`,
      `${count(shown.records_done)} of ${count(shown.records)} rows done`,
      ...Object.entries<number>(shown.counts)
        .filter(([, n]) => n > 0)
        .map(([outcome, n]) => `${outcome} ${count(n)}`),
      `Chunks ${count(shown.chunks_done)} of ${count(shown.chunks)}`,
      `Records ${shown.record_kind}`,
      `Begun ${when(shown.created_at)}`,
      `Last activity ${when(shown.active_at)}`,
      `Paused ${when(shown.paused_at)}`,
      `File ${shown.source_name}`,
      `Which ${count(shown.counts.REJECTED + shown.counts.FAILED)} rows were refused`,
    ])
      expect(text).toContain(wanted)
    for (const [reason, n] of Object.entries<number>({ ...shown.reasons.REJECTED, ...shown.reasons.FAILED }))
      expect(text).toMatch(new RegExp(`${reason} [^\\d]+ ${count(n)} `))
    expect(await page(`/batches/${no}`)).toContain(`title="${shown.source_sha256}"`)
    expect([shown.rows_per_second, shown.eta_seconds]).toEqual([null, null])
    expect(text).not.toContain('rows/s')
  })

  it('has a chart in words, in a picture and in a table', async () => {
    const no = await bundle.addBatch({
      rowsDone: 600,
      more: `created_at = now() - interval '2 hours', active_at = now()`,
    })
    await addSamples(no, [
      [120, 0, 'RUNNING'],
      [80, 400, 'PAUSED'],
      [50, 400, 'RUNNING'],
      [5, 590, 'RUNNING'],
    ])
    const text = await page(`/batches/${no}`)
    expect(text).toContain('<title id="chart-title">')
    expect(text).toMatch(
      /<desc id="chart-desc" data-figure="long">600 rows done in 2 h, none of them refused\..*Paused once, for 30 min\./,
    )
    expect(text).toMatch(/<rect class="shade paused" id="chart-shade-0" x="33\.\d+%" y="0" width="25\.\d+%"/)
    expect(text).toContain('<polyline class="edge" id="chart-edge" points="0.0,240.0 ')
    expect(plain(text)).toMatch(/The same as a table .* 400 0 paused/)
    expect(plain(text)).toContain('all 1,000 rows')
    expect(text).toContain(`id="batch-${no}-rows"`)
  })

  it('says of what has no points that it is not known how it went', async () => {
    const before = await bundle.addBatch({ rowsDone: 600 })
    expect(await page(`/batches/${before}`)).toContain('How it went is not known')
    const begun = await bundle.addBatch({ rowsDone: 600, more: `active_at = now()` })
    await addSamples(begun, [
      [20, 400, 'RUNNING'],
      [5, 590, 'RUNNING'],
    ])
    expect(await page(`/batches/${begun}`)).toContain('How the first 400 went is not known.')
    expect(await page(`/batches/${await bundle.addBatch()}`)).toContain('No row has been answered yet')
  })

  it('runs nothing that its sender chose', async () => {
    const reasons = JSON.stringify({ REJECTED: { [HOSTILE]: 3 } }).replaceAll("'", "''")
    const more = `source_name = '${HOSTILE.replaceAll("'", "''")}', reasons = '${reasons}'`
    const no = await bundle.addBatch({ batchId: HOSTILE, rowsDone: 3, counts: { REJECTED: 3 }, more })
    for (const path of [`/batches/${no}`, `/batches/${no}/refused`, '/batches?order=newest']) {
      const text = await page(path)
      expect(text).toContain('&#60;img')
      expect(text).not.toContain('<img')
    }
    await bundle.rows('delete from tokenmill.batch where batch_no = $1', [no])
  })
})

describe('the refused rows of a batch', () => {
  let no: number
  beforeAll(async () => {
    no = await bundle.addBatch({
      batchId: 'with-refused',
      rowsDone: 500,
      counts: { CREATED: 250, REJECTED: 249, FAILED: 1 },
    })
    await addChunk(no, 0, [undefined, 'REJECTED', undefined])
    await addChunk(no, 1, [undefined, undefined])
    await addChunk(no, 3, ['FAILED', 'CANCELLED', 'DUPLICATE'])
    await addChunk(
      no,
      7,
      Array.from({ length: 150 }, () => 'REJECTED' as const),
    )
  })
  const linesOf = (text: string) =>
    [...text.matchAll(/<th scope="row" class="figure">(\d+)</g)].map(([, line]) => Number(line))

  it('are listed by chunk and line, page by page, with their reasons', async () => {
    // A page looks for a moment only, and a slow machine sees less in it: it then links to what it didn't look at.
    const pages: string[] = []
    for (let next: string | undefined = `/batches/${no}/refused`; next; ) {
      const text = await page(next)
      pages.push(text)
      next = /href="([^"]+)">(?:Next page|Look further)/.exec(text)?.[1]
    }
    const rows = Array.from({ length: 150 }, (_, index) => 702 + index)
    expect(pages.flatMap(linesOf)).toEqual([3, 302, ...rows])
    for (const text of pages) {
      expect(linesOf(text).length).toBeLessThanOrEqual(100)
      if (text.includes('Next page')) expect(linesOf(text)).toHaveLength(100)
    }
    expect(plain(pages.join())).toContain('3 REJECTED pan_luhn The card number fails the Luhn check.')
    expect(plain(pages.join())).toContain('302 FAILED pan_luhn')
    expect(plain(pages.at(-1) ?? '')).toContain('These are the last.')
  })

  it('are shown without their references', async () => {
    const text = await page(`/batches/${no}/refused`)
    expect(text).not.toContain(REFERENCE)
    expect(text).not.toContain(CARD)
  })

  it('are looked for no longer than a moment, and the page says how far', async () => {
    const { store } = bundle.installation.vault
    const asked = { batchNo: no, after: FIRST, limit: 100, ms: 0 }
    const look = await lookForRefused(sightOf([OURS]), store, asked)
    expect(look.found.map(({ line }) => line)).toEqual([3])
    expect(look.next).toEqual({ chunk: 1, place: 0 })
    expect(await lookForRefused(sightOf([THEIRS]), store, asked)).toEqual({ found: [], next: undefined })
  })

  it('that are not kept any more are looked for in the results', async () => {
    const gone = await bundle.addBatch({ rowsDone: 5, counts: { REJECTED: 5 } })
    expect(await page(`/batches/${gone}/refused`)).toContain('TOKENMILL_RECEIPT_DAYS')
    expect(refusedOf({ counts: { ...noCounts(), REJECTED: 2, FAILED: 3, CANCELLED: 4 } })).toBe(5)
  })
})

describe('a CSV', () => {
  const personOf = async (name: string, entities: string[] | null) => {
    const person = await bundle.addPerson(name, { roles: ['VIEWER'], entities })
    const { ring, store } = bundle.installation.vault
    const row = { personId: person.personId, name, roles: ['VIEWER' as const], entities, isLocal: false }
    await grantPerson(store, ring, row)
    return person
  }
  const exports = () =>
    bundle.rows<{ actor: string; subject: string; detail: unknown }>(
      `select actor, subject, detail from tokenmill.audit where action = 'list.exported' and outcome = 'done' order by audit_id`,
    )
  let limited: Person
  beforeAll(async () => {
    await bundle.installation.openWorkers({ roles: ['interactive'] })
    limited = await personOf('limited', [OURS])
  })

  it('of batches has only those of the person, guards formulas, and is in the audit', async () => {
    await bundle.addBatch({ batchId: HOSTILE, rowsDone: 7, counts: { CREATED: 7 } })
    await bundle.addBatch({ batchId: 'canary-theirs', entityId: THEIRS })
    const form = { order: 'need', state: 'open', since: '2020-01-01' }
    const answer = await bundle.call('POST', '/batches/csv', { cookie: limited.cookie, form })
    expect(answer).toMatchObject({
      status: 200,
      headers: { 'content-disposition': 'attachment; filename="batches.csv"', 'cache-control': 'no-store' },
    })
    const [head = '', ...lines] = answer.text.split('\r\n')
    expect(head).toMatch(
      /^batch_id,client_id,client_name,.*,records,records_done,created,.*,rejected,failed,cancelled$/,
    )
    expect(lines.find(line => line.includes('cmd|'))).toMatch(/^"'=cmd\|'/)
    expect(lines.find(line => line.startsWith('with-refused,'))).toMatch(/,1000,500,250,0,0,0,249,1,0$/)
    expect(answer.text).not.toContain('canary-theirs')
    expect(await exports()).toEqual([
      {
        actor: `person:${limited.personId}`,
        subject: 'batches',
        detail: { list: 'batches', state: 'open', since: '2020-01-01', unproved: true },
      },
    ])
  })

  it('of refused rows has all of them, and no reference', async () => {
    const [{ no = 0 } = {}] = await bundle.rows<{ no: number }>(
      `select batch_no as no from tokenmill.batch where batch_id = 'with-refused'`,
    )
    const { text } = await bundle.call('POST', `/batches/${no}/refused/csv`, { cookie: limited.cookie, form: {} })
    const lines = text.split('\r\n')
    expect(lines.slice(0, 3)).toEqual([
      'line,outcome,reason,meaning',
      '3,REJECTED,pan_luhn,The card number fails the Luhn check.',
      '302,FAILED,pan_luhn,The card number fails the Luhn check.',
    ])
    expect(lines).toHaveLength(1 + 152 + 1)
    expect(text).not.toContain(REFERENCE)
    expect((await exports()).at(-1)).toMatchObject({ subject: 'with-refused', detail: { list: 'refused' } })
  })

  it('is not sent to a person whom tokenmill did not make, and not without a worker’s answer', async () => {
    const before = await exports()
    const forged = await bundle.call('POST', '/batches/csv', { cookie: ada.cookie, form: {} })
    expect(forged.status).toBe(503)
    expect(forged.text).toContain('person_unknown')
    expect(forged.text).not.toContain('canary-theirs')
    expect(await exports()).toEqual(before)
    const list = { name: 'x', subject: 'batches', parameters: { list: 'batches' as const }, head: ['a'] }
    const sent = await sending({ done: null }, { ...list, pages: () => expect.fail('nothing is read') })
    expect(sent).toMatchObject({ status: 503, text: expect.stringContaining('no worker answered') })
  })

  it('says when there are more rows than it may have', async () => {
    const list = { name: 'x', subject: 'batches', parameters: { list: 'batches' as const }, head: ['a'] }
    const row = ['b']
    async function* pages() {
      for (;;) yield Array.from({ length: 30_000 }, () => row)
    }
    const { text } = await sending({ done: true, auditId: '1' }, { ...list, pages })
    const lines = text.split('\r\n')
    expect(lines.slice(-3)).toEqual(['b', `There are more than ${CSV_ROWS_MAX} rows; these are the first.`, ''])
    expect(lines).toHaveLength(1 + CSV_ROWS_MAX + 2)
  })

  it('is looked for no longer than its browser waits, though nothing is found', async () => {
    const list = { name: 'x', subject: 'batches', parameters: { list: 'batches' as const }, head: ['a'] }
    let [asked, leave] = [0, () => {}]
    async function* pages() {
      for (; asked < 1_000; asked += 1) {
        if (asked === 3) leave()
        yield []
      }
    }
    const takes = (body: Readable) => {
      leave = () => body.destroy()
    }
    await sending({ done: true, auditId: '1' }, { ...list, pages }, takes).catch(() => {})
    await setImmediate()
    expect(asked).toBe(3)
  })

  it.each([
    ['whose session was ended', 'update tokenmill.session set revoked_at = now() where session_hash = $1'],
    [
      'who sees other entities now',
      `update tokenmill.person set entities = array[gen_random_uuid()] where person_id = $2`,
    ],
    ['who has other roles now', `update tokenmill.person set roles = '{VIEWER}' where person_id = $2`],
    ['who was revoked', 'update tokenmill.person set revoked_at = now() where person_id = $2'],
  ])('breaks off for a person %s', async (_, sql) => {
    const person = await bundle.addPerson(randomUUID(), { entities: [OURS] })
    const list = { name: 'x', subject: 'batches', parameters: { list: 'batches' as const }, head: ['a'] }
    let asked = 0
    async function* pages() {
      for (; asked < 5; asked += 1) {
        if (asked === 2)
          await bundle.rows(`${sql} and $1::bytea is not null and $2::uuid is not null`, [
            person.sessionHash,
            person.personId,
          ])
        yield [['b']]
      }
    }
    let taken = ''
    const takes = (body: Readable) => body.on('data', part => (taken += part))
    const session = { ...person, roles: ['ADMIN'], entities: [OURS] }
    await expect(sending({ done: true, auditId: '1' }, { ...list, pages }, takes, session)).rejects.toThrow()
    // What was on its way when the session ended is sent.
    expect(taken.match(/b\r\n/g) ?? []).toHaveLength(2)
    expect(asked).toBe(2)
  })

  /** What `sendCsv` answers if the worker says this. */
  async function sending(
    verdict: Awaited<ReturnType<Parameters<typeof sendCsv>[0]['sendAct']>>,
    list: Parameters<typeof sendCsv>[3],
    takes: (body: Readable) => void = () => {},
    session: { sessionHash: Buffer; roles: string[]; entities: string[] | null } = {
      ...ada,
      roles: ['ADMIN'],
      entities: null,
    },
  ) {
    let [status, text] = [200, '']
    const reply = {
      code: (told: number) => {
        status = told
        return reply
      },
      type: () => reply,
      header: () => reply,
      async send(body: string | AsyncIterable<Buffer>) {
        if (body instanceof Readable) takes(body)
        for await (const part of typeof body === 'string' ? [body] : body) text += part
      },
    }
    const { store } = bundle.installation.vault
    const log = openLog('silent')
    const deps = { store, sendAct: async () => verdict, clock: Date.now, log, name: 'x', isEmbedded: false }
    await sendCsv(deps as never, session as never, reply as never, list)
    return { status, text }
  }
})
