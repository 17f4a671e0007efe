// `tokenmill submit` without its command line: every line of a file has one result, and the same file twice is one effect.
import { createHash, randomBytes } from 'node:crypto'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { text } from 'node:stream/consumers'
import { afterEach, beforeEach, expect, it } from 'vitest'
import type { Totals } from '../../../producers/submit/progress.ts'
import { exitStatus, type SubmitFile, submitFile } from '../../../producers/submit/submit.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { openRedis } from '../../../src/queue/open-redis.ts'
import { describeRedis, redisUrl } from '../../support/engines.ts'
import { until } from '../../support/until.ts'
import {
  type FakeWorker,
  fakeWorker,
  lifecycle,
  makeParties,
  type Parties,
  type Script,
  silent,
  TOKEN,
} from '../bundle.ts'

describeRedis('submit', () => {
  let queues: Queues
  let parties: Parties
  let dir: string
  let worker: FakeWorker | undefined

  beforeEach(async () => {
    const prefix = `{submit-${process.pid}-${randomBytes(4).toString('hex')}}`
    queues = await openRedis([redisUrl() ?? ''], { prefix, lockMs: 30_000, log: silent })
    parties = await makeParties()
    dir = mkdtempSync(join(tmpdir(), 'submit-'))
  })
  afterEach(async () => {
    await worker?.close()
    worker = undefined
    for (const kind of ['token-lifecycle', 'token-create', 'token-update']) await queues.obliterate(kind)
    await queues.close()
    rmSync(dir, { recursive: true, force: true })
  })

  function work(script?: Script): FakeWorker {
    worker = fakeWorker(queues, parties, ['token-lifecycle', 'token-create', 'token-update'], script)
    return worker
  }
  function write(lines: (string | object)[]): string {
    const file = join(dir, 'work.ndjson')
    writeFileSync(file, lines.map(line => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''))
    return file
  }
  async function run(file: string, more: Partial<SubmitFile> = {}) {
    const out = new PassThrough()
    const progress = new PassThrough()
    const printed = text(out)
    const told = text(progress)
    const { credentials } = parties
    const totals = await submitFile({ file, queues, credentials, out, progress, log: silent, ...more }).finally(() => {
      out.end()
      progress.end()
    })
    const results = (await printed)
      .split('\n')
      .filter(Boolean)
      .map(line => JSON.parse(line) as Record<string, unknown>)
    return { totals, progress: await told, results: results.sort((a, b) => Number(a['line']) - Number(b['line'])) }
  }
  const line = (more: object = {}) => ({ kind: 'token-lifecycle', request: lifecycle(), ...more })

  it('gives every line one result, and a line that is not valid one that was never sent', async () => {
    const { seen } = work(async ({ claims }, tell) => {
      await tell(claims.reference === 'no' ? { status: 'FAILED', code: 404 } : {})
      return undefined
    })
    const file = write([
      line({ reference: 'first', sequence: 4 }),
      '',
      '{"kind": "token-lifecycle"',
      line({ kind: 'token-lifecycle', request: { id: TOKEN, action: 'BURN' }, reference: 'kept' }),
      line({ colour: 'red' }),
      line({ kind: 'reversal' }),
      { kind: 'token-update', request: { id: TOKEN, cvv: '123' } },
      `{"kind":"${'x'.repeat(70_000)}"}`,
      '"\u0000"',
      line({ reference: 'no', jti: 'own-1' }),
      line({ jti: 'own-1', request: { ...lifecycle(), action: 'DELETE' } }),
    ])
    const { totals, results } = await run(file)
    expect(results.map(({ line, code, attempt }) => [line, code, attempt === 0])).toEqual([
      [1, 200, false],
      [3, 400, true],
      [4, 400, true],
      [5, 400, true],
      [6, 400, true],
      [7, 400, true],
      [8, 400, true],
      [9, 400, true],
      [10, 404, false],
      [11, 400, true],
    ])
    const details = results.map(({ error }) =>
      Object.keys((error as { details?: object } | undefined)?.details ?? {}).join(),
    )
    expect(details).toEqual([
      '',
      'body',
      'body.action',
      'body.colour',
      'body.kind',
      'body.cvv',
      'body',
      'body',
      '',
      'body.jti',
    ])
    expect(results[2]).toMatchObject({ reference: 'kept', kind: 'token-lifecycle' })
    expect(totals).toEqual({ lines: 10, succeeded: 1, failed: 1, invalid: 8, complete: true })
    expect(exitStatus(totals)).toBe(3)
    expect(seen.map(({ claims }) => claims.reference).sort()).toEqual(['first', 'no'])
  })

  it('names each job by file and line, on a results queue of its own that is gone at the end', async () => {
    const { seen } = work()
    const file = write([line(), line({ jti: 'given' })])
    const digest = createHash('sha256')
      .update(`${JSON.stringify(line())}\n${JSON.stringify(line({ jti: 'given' }))}\n`)
      .digest('hex')
      .slice(0, 16)
    const { totals, progress } = await run(file)
    await run(file)
    expect(seen.map(({ claims }) => claims.jti).sort()).toEqual(['given', 'given', `s-${digest}-1`, `s-${digest}-1`])
    expect(new Set(seen.map(({ claims }) => claims.reply_to))).toEqual(new Set([`s${digest}`]))
    expect(exitStatus(totals)).toBe(0)
    expect(progress).toContain('2 read, 2 succeeded, 0 failed, 0 invalid')
    const queue = `results-${parties.credentials.signingKey.clientId}-s${digest}`
    expect(await queues.depth(queue)).toEqual({ waiting: 0, active: 0, delayed: 0, failed: 0 })
  })

  it('bounds what is in flight', async () => {
    const { openMax, seen } = work()
    const { totals } = await run(write(Array.from({ length: 200 }, () => line())), { inFlight: 10 })
    expect(totals).toMatchObject({ lines: 200, succeeded: 200 })
    expect(seen).toHaveLength(200)
    expect(openMax()).toBeLessThanOrEqual(10)
  })

  it('sends nothing more once it is stopped, finishes what is in flight, and is then not complete', async () => {
    const stop = new AbortController()
    const { seen } = work(async (_, tell) => {
      stop.abort()
      await tell()
      return undefined
    })
    const { totals, results } = await run(write(Array.from({ length: 100 }, () => line())), {
      inFlight: 4,
      signal: stop.signal,
    })
    expect(totals.complete).toBe(false)
    expect(exitStatus(totals)).toBe(1)
    expect(results).toHaveLength(totals.lines)
    expect(seen.length).toBeLessThan(100)
  })

  it('ends without the answers that do not come in time after it was stopped', async () => {
    const stop = new AbortController()
    const ended = run(write([line(), line()]), { signal: stop.signal, finishMs: 50 })
    await until(async () => (await queues.depth('token-lifecycle')).waiting === 2)
    stop.abort()
    const { totals } = await ended
    expect(totals).toEqual({ lines: 2, succeeded: 0, failed: 0, invalid: 0, complete: false } satisfies Totals)
  })

  /** The queues of a run whose file gets another content once it was read for its digest. */
  const changing = (change: () => void): Queues => ({
    ...queues,
    async obliterate(queue) {
      change()
      await queues.obliterate(queue)
    },
  })

  it('refuses a second run of a file beside the first, which gets all its answers', async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>()
    const { seen } = work(async (_, tell) => {
      await released
      await tell()
      return undefined
    })
    const file = write([line(), line()])
    const first = run(file)
    await until(async () => seen.length === 2)
    const queue = `results-${parties.credentials.signingKey.clientId}-${seen[0]?.claims.reply_to}`
    await until(async () => (await queues.workersOf(queue)) === 1)
    const second = run(file, { giveUpAfterMs: 500 })
    await expect(second).rejects.toMatchObject({
      status: 1,
      message: expect.stringMatching(/^Another run sends .*work\.ndjson, or a file of the same content\. Wait until/),
    })
    release()
    expect(await first).toMatchObject({ totals: { succeeded: 2, complete: true }, results: [{ line: 1 }, { line: 2 }] })
    expect(seen).toHaveLength(2)
  })

  it('sends no line of a file that was changed after its digest was taken', async () => {
    const { seen } = work()
    const file = write([line({ reference: 'before' })])
    const whole = readFileSync(file, 'utf8')
    for (const changed of [whole.replace('before', 'behind'), `${whole}${whole}`, whole.slice(0, -1), '']) {
      writeFileSync(file, whole)
      await expect(run(file, { queues: changing(() => writeFileSync(file, changed)) })).rejects.toMatchObject({
        status: 1,
        message: expect.stringMatching(/work\.ndjson changed between its two readings\. .* run the same command again/),
      })
    }
    const gone = changing(() => rmSync(file))
    writeFileSync(file, whole)
    await expect(run(file, { queues: gone })).rejects.toMatchObject({ status: 64 })
    expect(seen).toEqual([])
  })

  it('sends the lines before the change of a large file, and says how to go on', async () => {
    const { seen } = work()
    const empty = Array.from({ length: 300 }, () => ' '.repeat(60_000))
    const file = write([line({ reference: 'first' }), ...empty, line({ reference: 'before' })])
    const whole = readFileSync(file, 'utf8')
    const change = () => writeFileSync(file, whole.replace('before', 'behind'))
    await expect(run(file, { queues: changing(change) })).rejects.toMatchObject({
      status: 1,
      message: expect.stringMatching(/changed between .* The lines up to \d+ were sent\. Put back the file as it was/),
    })
    expect(seen.map(({ claims }) => claims.reference)).toEqual(['first'])
    writeFileSync(file, whole)
    const { totals } = await run(file)
    expect(totals).toMatchObject({ succeeded: 2, complete: true })
    expect(new Set(seen.map(({ claims }) => claims.jti))).toHaveLength(2)
  })

  it('says that a file can not be read', async () => {
    await expect(run(join(dir, 'none.ndjson'))).rejects.toMatchObject({ status: 64 })
  })
})
