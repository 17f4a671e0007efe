// In which form the chunks of a file travel: one form for the whole batch, rows only where a worker doesn't know columns, and
// a ledger and results that don't show the form. Each line stands once, though workers are killed.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { FileRunDeps } from '../../../producers/file-run.ts'
import { ingest } from '../../../producers/ingest/run.ts'
import { readCompact } from '../../../src/job/envelope/envelope.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import type { QueuedJob, Queues } from '../../../src/queue/engine.ts'
import type { Supervised } from '../../../workers/process/supervise.ts'
import { childrenRunning, kill9 } from '../../chaos/bundle.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { silent } from '../bundle.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from './sample.ts'

const CHUNK = 100
const OLDER = fileURLToPath(new URL('../../support/scripts/older-worker.ts', import.meta.url))

describeOnRedis('the form of a batch of transactions', engine => {
  let installation: Installation
  let workers: Supervised
  /** The forms in which each chunk was sent, chunk after chunk. */
  let forms: string[] = []
  let files = 0
  beforeAll(async () => {
    installation = await openInstallation(engine)
    workers = await installation.startWorkers({ roles: ['bulk'], processes: 2 })
  })
  afterAll(() => installation?.close())

  it('does not show: rows and columns end in the same results and the same ledger', async () => {
    const [one, two] = [await sample(800), await sample(800)]
    const columns = await run(one)
    await change(OLDER)
    const rows = await run(two)
    await change()
    expect(columns.forms).toEqual(new Array(9).fill('columns'))
    expect(rows.forms.filter(form => form === 'rows')).toEqual(new Array(9).fill('rows'))
    expect(columns.summary).toMatchObject({ complete: true, counts: { CREATED: 800, REJECTED: 80, UNCHANGED: 0 } })
    expect(rows.summary.counts).toEqual(columns.summary.counts)
    const texts = await Promise.all([columns, rows].map(({ summary }) => readFile(summary.results, 'utf8')))
    const [first, second] = texts.map(text => text.split('\n').map(line => line.split(',').toSpliced(1, 1).join()))
    expect(first).toEqual(second)
    expect(await ledger(one)).toEqual(await ledger(two))
  })

  it('is that of the chunks that were done: half a file in rows goes on in rows, and so does a replay', async () => {
    const file = await sample(600)
    await change(OLDER)
    const begun = await run(file, { stopAfter: 6 })
    await change()
    expect(begun.summary.complete).toBe(false)
    for (const _ of ['the rest', 'a replay']) {
      const ended = await run(file)
      expect(ended.forms.filter(form => form === 'rows').length).toBeGreaterThan(5)
      expect(ended.summary).toMatchObject({ complete: true, counts: { CREATED: 600, REJECTED: 60 } })
    }
  })

  it('refuses another file under a batch id in either form', async () => {
    await run(await sample(100), { batchId: 'taken' })
    await expect(run(await sample(100), { batchId: 'taken' })).rejects.toThrow(/Chunk 0 was refused/)
    expect(forms.slice(0, 2)).toContain('columns')
  })

  it('hinders no later chunk while an older one has no answer, and all results stand in the order of the file', async () => {
    const { vault, credentials } = installation
    const file = await sample(1_000)
    const chunks = Array.from({ length: 11 }, (_, chunk) => receiptId(credentials.signingKey.clientId, `held-${chunk}`))
    const done = async () => {
      const text = 'select count(*)::int as n from tokenmill.receipt where receipt_id = any($1::uuid[])'
      return (await vault.store.query<{ n: number }>({ text, values: [chunks] })).rows[0]?.n
    }
    const { running } = await vault.store.transaction(
      async () => {
        const begun = run(file, { batchId: 'held' })
        await until(async () => (await done()) === 10, { what: 'all chunks but the one' })
        return { running: begun }
      },
      { lock: chunks[2] ?? '' },
    )
    const { summary } = await running
    expect(summary).toMatchObject({ complete: true, counts: { CREATED: 1_000, REJECTED: 100, FAILED: 0 } })
    const lines = (await readFile(summary.results, 'utf8')).trim().split('\n').slice(1)
    const numbers = lines.map(line => Number(line.split(',')[0]))
    expect(numbers).toEqual(numbers.toSorted((a, b) => a - b))
    expect(numbers).toHaveLength(100)
  })

  it('puts each line into the ledger once, though every worker process was killed', async () => {
    const file = await sample(4_000)
    let killed = 0
    const ended = await run(file, {
      onSend: count => {
        if (count % 12 !== 0 || killed === 3) return
        killed += 1
        kill9(childrenRunning('worker-process'))
      },
    })
    expect(killed).toBe(3)
    expect(ended.summary).toMatchObject({ complete: true, counts: { CREATED: 4_000, REJECTED: 400, FAILED: 0 } })
    expect(await ledger(file)).toHaveLength(4_000)
  })

  it('ends the run where an older worker starts in the midst of columns, and goes on once it is upgraded', async () => {
    for (const lines of ['good', 'some refused'] as const) {
      const file = await sample(300, lines)
      const onSend = async (count: number) => {
        if (count === 2) await change(OLDER)
      }
      // No repeat of a chunk that was done may lie in the queue when the older worker starts.
      await expect(run(file, { onSend, resendMs: 60_000, inFlight: 1 })).rejects.toMatchObject({
        message: expect.stringMatching(
          /^Chunk [12] was refused: body\.columns: .*The workers are of an older release/s,
        ),
      })
      await change()
      const ended = await run(file)
      // A refusal of the first run that comes late has its chunk tried in rows.
      expect(ended.forms.slice(0, 2)).toEqual(['columns', 'columns'])
      expect(ended.summary).toMatchObject({ complete: true, counts: { CREATED: 300, FAILED: 0 } })
      expect(await ledger(file)).toHaveLength(300)
    }
  })

  /** Replaces the workers. */
  async function change(script?: string): Promise<void> {
    await workers.close()
    workers = await installation.startWorkers({ roles: ['bulk'], ...(script && { script }) })
  }

  /** One line in ten is refused, most of them by workers, unless all are good. */
  async function sample(rows: number, lines: 'good' | 'some refused' = 'some refused'): Promise<string> {
    files += 1
    const file = join(installation.dataDir, `form-${files}.csv`)
    const written = Array.from({ length: rows }, (_, index) => {
      const made = transactionOf(index, { entity: ENTITY, seed: file })
      const row = csvRowOf(index % 3 === 0 ? { ...made, merchant_reference: `JOSÉ ${index}` } : made)
      const wrong = { ...transactionOf(index, { entity: ENTITY, seed: `wrong ${file}` }), masked_card: `4111 ${index}` }
      return lines === 'some refused' && index % 10 === 0 ? [row, csvRowOf(wrong)] : [row]
    })
    await writeFile(file, `${[CSV_HEADER, ...written.flat()].join('\n')}\n`)
    return file
  }

  /** The lines of a file that are in the ledger, without their uids, in the order of the file. */
  async function ledger(file: string): Promise<unknown[]> {
    const text = await readFile(file, 'utf8')
    const uids = text
      .split('\n')
      .slice(1, -1)
      .map(line => line.slice(0, 36))
    const { rows } = await installation.vault.store.query<{ row: unknown }>({
      text: `select to_jsonb(t) - 'transaction_uid' - 'batch_no' - 'recorded_at' as row from tokenmill.transaction as t
where transaction_uid = any($1) order by array_position($1, transaction_uid)`,
      values: [uids],
    })
    return rows
  }

  interface RunOptions {
    batchId?: string
    /** The run stops after so many chunks were sent. */
    stopAfter?: number
    /** Called before each chunk is sent, which waits for it. */
    onSend?: (count: number) => Promise<void> | void
    resendMs?: number
    inFlight?: number
  }

  async function run(file: string, { batchId, stopAfter, onSend, resendMs = 2_000, inFlight = 4 }: RunOptions = {}) {
    forms = []
    const stop = new AbortController()
    const queues = watched(installation.queues, () => {
      if (forms.length === stopAfter) stop.abort()
      return onSend?.(forms.length)
    })
    const deps: FileRunDeps = {
      queues,
      credentials: installation.credentials,
      clock: Date.now,
      log: silent,
      stream: { isTTY: false, write: () => true } as unknown as NodeJS.WriteStream,
      stop: stop.signal,
      resendMs,
    }
    const summary = await ingest({ file, chunk: CHUNK, inFlight, batchId }, deps)
    return { summary, forms }
  }

  function watched(queues: Queues, onSend: () => Promise<void> | void): Queues {
    const sent = new Set<string>()
    const see = async (job: QueuedJob) => {
      const { request } = (readCompact((job.data as { jws: string }).jws)?.payload ?? {}) as { request?: object }
      const form = request && 'columns' in request ? 'columns' : 'rows'
      // A job that the queue still has is put there again.
      if (!sent.has(`${job.id} ${form}`)) forms.push(form)
      sent.add(`${job.id} ${form}`)
      await onSend()
    }
    return {
      ...queues,
      async add(queue, job) {
        await see(job)
        return queues.add(queue, job)
      },
      async addBulk(queue, jobs) {
        for (const job of jobs) await see(job)
        return queues.addBulk(queue, jobs)
      },
    }
  }
})
