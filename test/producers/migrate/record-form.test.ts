// The form in which the records of a batch are sent: columns, or rows where a worker doesn't know columns, and the same
// results with each form.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { writeSample } from '../../../bin/sample/cards.ts'
import { openInstallationKey } from '../../../cli/open/installation-key.ts'
import { type RecordForm, sendInForm } from '../../../producers/client/in-form.ts'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { recordFormOf } from '../../../producers/migrate/chunk/record-form.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { migrate } from '../../../producers/migrate/run.ts'
import { type Result, sealResult } from '../../../src/job/answer/result.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import { envelopeDigest } from '../../../src/job/envelope/digest.ts'
import { type Claims, peek } from '../../../src/job/envelope/envelope.ts'
import { receiptId, resultId } from '../../../src/job/envelope/ids.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { blockFormOf } from '../../../src/vault/capture/block.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { silent } from '../bundle.ts'

const OPTIONS: Omit<MigrateOptions, 'file'> = {
  ignoreUnknown: false,
  echo: [],
  dryRun: false,
  onConflict: 'update',
  onExpired: 'import',
  chunk: 50,
  inFlight: 4,
  recordKind: 'token-create',
  again: false,
}
describeStore('the form of a batch', engine => {
  let installation: Installation
  let other: Awaited<ReturnType<Installation['addClient']>>
  /** The forms in which each chunk was sent, chunk after chunk. */
  let forms: string[] = []
  let files = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    other = await installation.addClient('other')
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  it('does not show: a batch that falls back to rows ends in the same results', async () => {
    const file = await sample(400)
    // Two chunks in hand may be worked in any order: then either of two rows of one card is the duplicate.
    const columns = await run(file, { inFlight: 1 })
    const named = { results: `${file}.rows.csv`, manifest: `${file}.rows.json` }
    const rows = await run(file, { inFlight: 1, scope: other.scope, ...named }, { knowsColumns: false })
    expect(columns.forms).toEqual(new Array(8).fill('columns'))
    expect(rows.forms).toEqual(['columns', ...new Array(8).fill('rows')])
    expect(rows.summary.counts).toEqual(columns.summary.counts)
    expect(rows.summary.reasons).toEqual(columns.summary.reasons)
    const texts = await Promise.all([columns, rows].map(({ summary }) => readFile(summary.results, 'utf8')))
    const [one, two] = texts.map(text => text.split('\n').map(line => line.split(',').toSpliced(4, 1).join()))
    expect(one).toEqual(two)
    expect(texts[0]).not.toBe(texts[1])
  })

  it('of its results does not show in any file, with owners, echoes and all that makes rows special', async () => {
    const plain = await sample(600)
    const [header = '', ...lines] = (await readFile(plain, 'utf8')).trimEnd().split('\n')
    // Every fifth row lacks a field, every seventh has no card, and every third comes twice.
    const rows = lines.flatMap((line, index) => {
      if (index % 5 === 4) return [line.slice(line.indexOf(',') + 1)]
      return index % 3 === 2 ? [line, line] : [line]
    })
    const file = `${plain}.mixed.csv`
    await writeFile(file, [header, ...rows, ''].join('\n'))
    const cells = header.split(',')
    const more = { inFlight: 1, echo: [cells[0] ?? ''], ignoreUnknown: true }
    const named = (name: string) => ({
      results: `${file}.${name}.csv`,
      manifest: `${file}.${name}.json`,
      rejects: `${file}.${name}.rejects.csv`,
    })
    const columns = await run(file, { ...more, ...named('columns') })
    const { counts, rejects = '', results } = columns.summary
    expect(counts.CREATED).toBeGreaterThan(100)
    expect(Math.min(counts.DUPLICATE, counts.REJECTED)).toBeGreaterThan(10)
    const written = () => Promise.all([results, rejects].map(path => readFile(path, 'utf8')))
    const before = await written()
    // A repeat is answered from the receipts, in rows, whatever the envelope says.
    const again = await run(file, { ...more, ...named('columns') })
    expect(again.summary).toMatchObject({ variant: 'replay', counts: columns.summary.counts })
    expect(await written()).toEqual(before)
  })

  it('is that of the chunks that were done, though no file tells it', async () => {
    const file = await sample(200)
    const begun = await run(file, {}, { knowsColumns: false })
    await rm(`${file}.results.csv`)
    await rm(`${file}.manifest.json`)
    const lost = await run(file, { inFlight: 1 })
    expect(lost.forms).toEqual(['columns', 'rows', 'rows', 'rows', 'rows'])
    expect(lost.summary.counts).toEqual(begun.summary.counts)
  })

  it('refuses another file under a batch id in either form', async () => {
    const batchId = 'taken'
    // Of one chunk: another might be sent before the refusal of the first stops the run.
    await run(await sample(50), { batchId })
    const next = await sample(50)
    await expect(run(next, { batchId })).rejects.toThrow(/Chunk 0 was refused/)
    expect(forms).toEqual(['columns', 'rows'])
  })

  async function sample(rows: number): Promise<string> {
    files += 1
    const file = join(installation.dataDir, `form-${files}.csv`)
    await writeSample(file, { rows, seed: 100 + files, now: Date.now() })
    return file
  }

  async function run(file: string, more: Partial<MigrateOptions> = {}, { knowsColumns = true } = {}) {
    forms = []
    const { credentials, scope, queues } = installation
    const deps: FileRunDeps = {
      queues: watched(queues, knowsColumns ? undefined : refusing),
      credentials,
      clock: Date.now,
      log: silent,
      stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
      stop: new AbortController().signal,
    }
    const summary = await migrate({ ...OPTIONS, file, scope, ...more }, deps)
    return { summary, forms }
  }

  /** `takeColumns`: takes the jobs in columns, which then aren't put on the queue. */
  function watched(queues: Queues, takeColumns?: (jws: string) => Promise<void>): Queues {
    const sent = new Set<string>()
    return {
      ...queues,
      async add(queue, job) {
        const { jws, block = '' } = job.data as { jws: string; block?: string }
        const form = blockFormOf(block) ?? 'none'
        // A job that the queue still has is put there again.
        if (!sent.has(`${job.id} ${form}`)) forms.push(form)
        sent.add(`${job.id} ${form}`)
        if (form === 'columns' && takeColumns) return takeColumns(jws)
        return queues.add(queue, job)
      },
    }
  }

  /** Answers as a worker that doesn't know columns does. */
  async function refusing(jws: string): Promise<void> {
    const { queues, vault } = installation
    const { iss, jti, kind, reply_to: replyTo } = claimsOf(jws)
    const id = receiptId(iss, jti)
    const named = { resultId: resultId(id, 1), revision: 1 }
    const now = new Date().toISOString()
    const details = { 'body.request.block': { message: 'Refused.', code: 'block_records' } }
    const body = JSON.stringify({
      v: 1,
      type: 'result',
      result_id: named.resultId,
      receipt_id: id,
      revision: 1,
      status: 'FAILED',
      code: 400,
      error: { code: 400, message: 'Refused.', details, timestamp: 1, reversal_status: 'NONE' },
      kind,
      jti,
      envelope: envelopeDigest(jws).toString('base64url'),
      attempt: 1,
      accepted_at: now,
      completed_at: now,
    })
    const key = await openInstallationKey(vault.store, vault.halves)
    const data = sealResult(body, { clientId: iss, ...named }, key)
    await queues.add(resultsQueue(iss, replyTo), { id: `r_${id.slice(0, 30)}`, data, priority: 0 })
  }
})

function claimsOf(jws: string): Claims {
  const peeked = peek(jws)
  if (typeof peeked === 'string') throw new Error(`a job was signed wrongly: ${peeked}`)
  return peeked.payload as Claims
}

describe('a chunk', () => {
  const answered = (field?: string, code?: string) =>
    ({ error: field && { details: { [field]: { code } } } }) as unknown as Result
  const send = async (form: RecordForm, answers: Record<string, Result>) => {
    const sent: string[] = []
    const result = await sendInForm(form, async word => {
      sent.push(word)
      return answers[word] as Result
    })
    return { result, sent, form }
  }

  it('is sent in the other form once, if it is refused as one of another form', async () => {
    const good = answered()
    for (const [field, code] of [
      ['body.jti', 'jti_reused'],
      ['body.request.batch_id', 'batch_layout'],
      ['body.request.block', 'field_format'],
      ['body.request.block', 'block_records'],
      ['body.columns', 'field_unknown'],
    ] as const) {
      const refused = answered(field, code)
      expect(await send({ now: 'columns' }, { columns: refused, rows: good })).toEqual({
        result: good,
        sent: ['columns', 'rows'],
        form: { now: 'rows' },
      })
      const both = await send({ now: 'columns' }, { columns: refused, rows: refused })
      expect(both).toMatchObject({ result: refused, form: { now: 'columns' } })
      const fixed = await send({ now: 'rows', isFixed: true }, { rows: refused, columns: good })
      expect(fixed).toMatchObject({ result: refused, sent: ['rows'], form: { now: 'rows' } })
    }
    const other = answered('body.request.batch_id', 'batch_too_old')
    expect((await send({ now: 'columns' }, { columns: other })).sent).toEqual(['columns'])
  })

  it('is sent in the first form again, if a worker without the first refused it and the other form tells that it was done', async () => {
    const good = answered()
    const reused = answered('body.jti', 'jti_reused')
    const inTurn = async (...answers: Result[]) => {
      const sent: string[] = []
      const form: RecordForm = { now: 'columns' }
      const result = await sendInForm(form, async word => answers[sent.push(word) - 1] as Result)
      return { result, sent, form }
    }
    for (const older of [answered('body.columns', 'field_unknown'), answered('body.request.block', 'block_records')]) {
      expect(await inTurn(older, reused, good)).toEqual({
        result: good,
        sent: ['columns', 'rows', 'columns'],
        form: { now: 'columns' },
      })
      // The older worker had it again: what it says is true of the fleet.
      const late = answered('body.columns', 'field_unknown')
      expect(await inTurn(older, reused, late)).toMatchObject({
        result: older,
        sent: ['columns', 'rows', 'columns'],
        form: { now: 'columns' },
      })
    }
    expect(await inTurn(reused, reused, good)).toMatchObject({ result: reused, sent: ['columns', 'rows'] })
  })

  it('is of a form that its options allow', () => {
    const form = (more: Partial<MigrateOptions>) => recordFormOf({ ...OPTIONS, file: 'f.csv', ...more })
    for (const more of [{}, { dryRun: true }]) expect(form(more)).toEqual({ now: 'columns' })
    for (const more of [{ recordKind: 'token-update' }, { sourceTime: { column: 't' } }] as const)
      expect(form(more)).toEqual({ now: 'rows', isFixed: true })
  })
})
