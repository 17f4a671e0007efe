// The form in which the records of a batch are sent: one form for all its chunks, columns only if all live workers read
// them, and the same results with each form.
import { readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type RecordForm, sendInForm } from '../../../producers/client/in-form.ts'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { checkpointPath, readCheckpoint } from '../../../producers/migrate/checkpoint.ts'
import { recordFormOf } from '../../../producers/migrate/chunk/record-form.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { migrate } from '../../../producers/migrate/run.ts'
import { writeSample } from '../../../producers/migrate/sample.ts'
import { peek } from '../../../src/job/envelope/envelope.ts'
import { FEATURES } from '../../../src/job/envelope/features.ts'
import type { Result } from '../../../src/job/result.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { blockFormOf } from '../../../src/vault/block.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { silent } from '../bundle.ts'

const OPTIONS: Omit<MigrateOptions, 'file'> = {
  ...{
    ignoreUnknown: false,
    echo: [],
    dryRun: false,
    onConflict: 'update',
    onExpired: 'import',
    chunk: 50,
    inFlight: 4,
  },
  ...{ recordKind: 'token-create', again: false },
}
const NOBODY = async () => []
const ALL = async () => ['columns']
const EVERY = async () => FEATURES

describeStore('the form of a batch', engine => {
  let installation: Installation
  let other: Awaited<ReturnType<Installation['addClient']>>
  /** The forms in which each chunk was sent, chunk after chunk. */
  let forms: string[] = []
  /** Whether each job of the last run had the claim `result_columns`. */
  let said: boolean[] = []
  /** The blocks that the last run sent. */
  const blocks = new Set<string>()
  let files = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    other = await installation.addClient('other')
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  it('does not show: rows and columns end in the same results', async () => {
    const file = await sample(400)
    const { scope } = other
    // Two chunks in hand may be worked in any order: then either of two rows of one card is the duplicate.
    const columns = await run(file, ALL, { inFlight: 1 })
    const rows = await run(file, NOBODY, {
      inFlight: 1,
      scope,
      results: `${file}.rows.csv`,
      manifest: `${file}.rows.json`,
    })
    expect(columns.forms).toEqual(new Array(8).fill('columns'))
    expect(rows.forms).toEqual(new Array(8).fill('rows'))
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
      ...{ results: `${file}.${name}.csv`, manifest: `${file}.${name}.json`, rejects: `${file}.${name}.rejects.csv` },
    })
    const third = await installation.addClient(`third-${files}`)
    const columns = await run(file, EVERY, { ...more, ...named('columns') })
    expect(said.filter(Boolean).length).toBeGreaterThan(2)
    const plainResults = await run(file, ALL, { ...more, ...named('rows'), scope: third.scope })
    expect(said.filter(Boolean)).toEqual([])
    const { counts, reasons } = columns.summary
    expect({ counts, reasons }).toEqual({ counts: plainResults.summary.counts, reasons: plainResults.summary.reasons })
    expect(counts.CREATED).toBeGreaterThan(100)
    expect(Math.min(counts.DUPLICATE, counts.REJECTED)).toBeGreaterThan(10)
    for (const output of ['results', 'rejects'] as const) {
      const texts = [columns, plainResults].map(({ summary }) => readFile(summary[output] ?? '', 'utf8'))
      const [one, two] = (await Promise.all(texts)).map(text => text.replaceAll(/\bt[0-9A-Z]{26}\b/g, 't'))
      expect(one).toEqual(two)
    }
    // A repeat is answered from the receipts, in rows, whatever the envelope says.
    const again = await run(file, EVERY, { ...more, ...named('columns') })
    expect(again.summary).toMatchObject({ variant: 'replay', counts: columns.summary.counts })
  })

  it('of its results goes on beside a receipt of the last release, and in a run that stopped', async () => {
    const file = await sample(400)
    const begun = await run(file, ALL, { limit: 150 })
    expect(begun.summary).toMatchObject({ complete: false, rows: 150 })
    const ended = await run(file, EVERY)
    expect(ended.summary).toMatchObject({ complete: true, rows: 400 })
    expect(said.some(Boolean)).toBe(true)
    // Without its files the run sends each chunk again: the first ones as an earlier sender sent them.
    await rm(`${file}.results.csv`)
    await rm(`${file}.manifest.json`)
    const lost = await run(file, EVERY)
    expect(lost.summary.counts).toEqual(ended.summary.counts)
  })

  it('is told by the checkpoint: a batch of rows goes on in rows, one of columns in columns', async () => {
    for (const [first, then, form] of [
      [NOBODY, ALL, 'rows'],
      [ALL, NOBODY, 'columns'],
    ] as const) {
      const file = await sample(200)
      const begun = await run(file, first, { limit: 100 })
      expect(begun.summary).toMatchObject({ complete: false, rows: 100 })
      const told = (await readCheckpoint(`${file}.results.csv`))?.options['record_form']
      expect(told).toBe(form === 'columns' ? 'columns' : undefined)
      const ended = await run(file, then)
      expect(ended).toMatchObject({ summary: { complete: true, rows: 200 }, forms: [form, form] })
      // So does a replay, which the manifest tells.
      const replay = await run(file, then)
      expect(replay).toMatchObject({ summary: { variant: 'replay', rows: 200 }, forms: [form, form, form, form] })
    }
  })

  it('is found out by the first chunk where nothing tells it', async () => {
    for (const [first, then, form] of [
      [NOBODY, ALL, 'rows'],
      [ALL, NOBODY, 'columns'],
    ] as const) {
      const file = await sample(200)
      const begun = await run(file, first)
      await rm(`${file}.results.csv`)
      await rm(`${file}.manifest.json`)
      const lost = await run(file, then)
      const wrong = form === 'rows' ? 'columns' : 'rows'
      expect(lost.forms).toEqual([wrong, form, form, form, form])
      expect(lost.summary.counts).toEqual(begun.summary.counts)
      const { options } = JSON.parse(await readFile(lost.summary.manifest, 'utf8'))
      expect(options.record_form).toBe(form === 'columns' ? 'columns' : undefined)
    }
  })

  it('is found out of a batch that stopped before its first chunk was answered, too', async () => {
    const file = await sample(100)
    const begun = await run(file, NOBODY)
    await rm(`${file}.results.csv`)
    await rm(`${file}.manifest.json`)
    const stop = new AbortController()
    stop.abort()
    await run(file, ALL, {}, stop)
    expect((await readCheckpoint(`${file}.results.csv`))?.options['record_form']).toBe('columns')
    const ended = await run(file, ALL)
    expect(ended).toMatchObject({ summary: { counts: begun.summary.counts }, forms: ['columns', 'rows', 'rows'] })
  })

  it('is found out by a later chunk where the checkpoint is wrong', async () => {
    for (const [first, form] of [
      [NOBODY, 'rows'],
      [ALL, 'columns'],
    ] as const) {
      const file = await sample(200)
      await run(file, first, { limit: 100 })
      const path = checkpointPath(`${file}.results.csv`)
      const checkpoint = JSON.parse(await readFile(path, 'utf8'))
      const { record_form: _, ...options } = checkpoint.options
      const wrong = { ...options, ...(form === 'rows' ? { record_form: 'columns' } : {}) }
      await writeFile(path, JSON.stringify({ ...checkpoint, options: wrong }))
      const ended = await run(file, first)
      expect(ended.summary).toMatchObject({ complete: true, rows: 200 })
      expect(ended.forms.at(-1)).toBe(form)
      const manifest = JSON.parse(await readFile(ended.summary.manifest, 'utf8'))
      expect(manifest.options.record_form).toBe(form === 'columns' ? 'columns' : undefined)
    }
  })

  it('refuses another file under a batch id in either form', async () => {
    const batchId = 'taken'
    // Of one chunk: another might be sent before the refusal of the first stops the run.
    await run(await sample(50), ALL, { batchId })
    const next = await sample(50)
    await expect(run(next, NOBODY, { batchId })).rejects.toThrow(/Chunk 0 was refused/)
    expect(forms).toEqual(['rows', 'columns'])
  })

  async function sample(rows: number): Promise<string> {
    files += 1
    const file = join(installation.dataDir, `form-${files}.csv`)
    await writeSample(file, { rows, seed: 100 + files, now: Date.now() })
    return file
  }

  async function run(
    file: string,
    features: NonNullable<FileRunDeps['features']>,
    more: Partial<MigrateOptions> = {},
    stop = new AbortController(),
  ) {
    forms = []
    said = []
    blocks.clear()
    const { credentials, scope } = installation
    const deps: FileRunDeps = {
      ...{ queues: watched(installation.queues), credentials, clock: Date.now, log: silent, features },
      stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
      stop: stop.signal,
    }
    const summary = await migrate({ ...OPTIONS, file, scope, ...more }, deps)
    return { summary, forms }
  }

  function watched(queues: Queues): Queues {
    const sent = new Set<string>()
    return {
      ...queues,
      add(queue, job) {
        const { block = '' } = job.data as { block?: string }
        const form = blockFormOf(block) ?? 'none'
        blocks.add(block)
        said.push(peekedOf(job.data as { jws: string })['result_columns'] === true)
        // A job that the queue still has is put there again.
        if (!sent.has(`${job.id} ${form}`)) forms.push(form)
        sent.add(`${job.id} ${form}`)
        return queues.add(queue, job)
      },
    }
  }
})

function peekedOf({ jws }: { jws: string }): Record<string, unknown> {
  const peeked = peek(jws)
  if (typeof peeked === 'string') throw new Error(`a job was signed wrongly: ${peeked}`)
  return peeked.payload
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
      ['body.request.block', 'block_records'],
      ['body.columns', 'field_unknown'],
    ] as const) {
      const refused = answered(field, code)
      expect(await send({ now: 'columns', isSettled: false }, { columns: refused, rows: good })).toEqual({
        ...{ result: good, sent: ['columns', 'rows'], form: { now: 'rows', isSettled: true } },
      })
      const both = await send({ now: 'columns', isSettled: false }, { columns: refused, rows: refused })
      expect(both).toMatchObject({ result: refused, form: { now: 'columns', isSettled: true } })
      const settled = await send({ now: 'columns', isSettled: true }, { columns: refused, rows: good })
      expect(settled).toMatchObject({ result: good, sent: ['columns', 'rows'], form: { now: 'rows' } })
      const fixed = await send({ now: 'rows', isSettled: true, isFixed: true }, { rows: refused, columns: good })
      expect(fixed).toMatchObject({ result: refused, sent: ['rows'], form: { now: 'rows' } })
    }
    const other = answered('body.request.batch_id', 'batch_too_old')
    expect((await send({ now: 'columns', isSettled: false }, { columns: other })).sent).toEqual(['columns'])
  })

  it('is sent in the first form again, if an older worker refused it and the other form tells that it was done', async () => {
    const good = answered()
    const reused = answered('body.jti', 'jti_reused')
    const inTurn = async (...answers: Result[]) => {
      const sent: string[] = []
      const form: RecordForm = { now: 'columns', isSettled: false }
      const result = await sendInForm(form, async word => answers[sent.push(word) - 1] as Result)
      return { result, sent, form }
    }
    for (const older of [answered('body.columns', 'field_unknown'), answered('body.request.block', 'block_records')]) {
      expect(await inTurn(older, reused, good)).toEqual({
        ...{ result: good, sent: ['columns', 'rows', 'columns'], form: { now: 'columns', isSettled: true } },
      })
      // The older worker had it again: what it says is true of the fleet.
      const late = answered('body.columns', 'field_unknown')
      expect(await inTurn(older, reused, late)).toMatchObject({
        ...{ result: older, sent: ['columns', 'rows', 'columns'], form: { now: 'columns', isSettled: true } },
      })
    }
    expect(await inTurn(reused, reused, good)).toMatchObject({ result: reused, sent: ['columns', 'rows'] })
  })

  it('is of a form that its options allow', async () => {
    const deps = { features: ALL } as unknown as FileRunDeps
    const form = (more: Partial<MigrateOptions>) =>
      recordFormOf({ ...OPTIONS, file: 'f.csv', ...more }, { told: undefined, checkpoint: undefined }, deps)
    expect(await form({})).toEqual({ now: 'columns', isSettled: false })
    for (const more of [{ dryRun: true }, { recordKind: 'token-update' }, { sourceTime: { column: 't' } }] as const)
      expect(await form(more)).toEqual({ now: 'rows', isSettled: true, isFixed: true })
    const silentDeps = { features: () => Promise.reject(new Error('away')) } as unknown as FileRunDeps
    const unknown = await recordFormOf(
      { ...OPTIONS, file: 'f.csv' },
      { told: undefined, checkpoint: undefined },
      silentDeps,
    )
    expect(unknown).toEqual({ now: 'rows', isSettled: false })
  })
})
