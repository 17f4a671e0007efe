// A job whose attempt fails, while another copy of it ends or has ended.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../bin/sample/pan.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import { Fault, isRefusal, toFault } from '../../../src/errors.ts'
import { Claims, sign } from '../../../src/job/envelope/envelope.ts'
import { jobId } from '../../../src/job/envelope/ids.ts'
import { failedList } from '../../../src/queue/failed.ts'
import { giveUp, runJob } from '../../../workers/line/run-job.ts'
import { transactionOf } from '../../producers/ingest/sample.ts'
import { describeEngines, describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { openWorld, type World } from '../provider/bundle.ts'

const OVERTAKEN = fileURLToPath(new URL('../../support/scripts/overtaken-worker.ts', import.meta.url))

describeEngines('a job that fails while another copy of it ends', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine, { TOKENMILL_LOCK_SECONDS: '60' })
  })
  afterAll(() => installation?.close())

  it('is answered from the receipt of that copy, and leaves nothing in the failed set', async () => {
    const { queues, credentials, scope, vault } = installation
    const file = join(installation.dataDir, 'overtaken')
    await installation.startWorkers({ script: OVERTAKEN, roles: ['bulk'], env: { OVERTAKEN_FILE: file } })
    const client = await installation.connect()
    const { jwe } = credentials.captureKeys
    if (!jwe) throw new Error('broken law: the client has a JWE key')
    const plan = {
      batchId: 'twice',
      recordKind: 'token-create' as const,
      tokenScope: scope,
      captureKey: jwe,
      acceptedAt: Math.floor(Date.now() / 1000),
    }
    const lines = ['OVERTAKEN', 'other'].map((reference, index) =>
      JSON.stringify({
        line: index + 2,
        reference,
        request: { card: { cardNumber: panOf(index, 91), expiryMonth: 12, expiryYear: 2031 } },
      }),
    )
    const ask = await tokenBatch(client.clientId, plan, { number: 0, lines })
    if (isRefusal(ask)) throw new Error('broken law: a chunk has its form')
    const answer = client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block })
    await until(async () => existsSync(`${file}.standing`), { what: 'the worker to stand still' })
    const id = jobId(client.clientId, ask.jti)
    const job = await queues.get('token-batch', id)
    await queues.add('token-batch', { id: 'another_copy', data: job?.data })
    await installation.startWorkers({ roles: ['bulk'] })
    expect(await answer).toMatchObject({ records: [{ outcome: 'CREATED' }, { outcome: 'CREATED' }] })
    await writeFile(file, '')
    await until(async () => !(await queues.has('token-batch', id)), { what: 'the job to end' })
    expect((await failedList(queues, 'token-batch')).map(({ code }) => code)).toEqual([])
    const { rows } = await vault.store.query({ text: 'select count(*)::int as n from tokenmill.token' })
    expect(rows).toEqual([{ n: 2 }])
  })
})

describeStore('a job that is given up', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())
  const never = new AbortController().signal

  /** Makes a signed chunk of two lines. */
  function chunkOf(batchId: string, signedAt = Date.now()) {
    const { signingKey, userId, entityId } = installation.credentials
    const jti = `${batchId}-0`
    const transactions = [1, 2].map(line => ({
      line,
      transaction: {
        ...transactionOf(line, { entity: ENTITY, seed: batchId }),
        merchant_reference: line === 1 ? 'first' : 'second',
      },
    }))
    const claims = Claims.parse({
      iss: signingKey.clientId,
      aud: installation.session.config.audience,
      sub: userId,
      entity_id: entityId,
      jti,
      iat: Math.floor(signedAt / 1000),
      kind: 'transaction-batch',
      roles: ['LEDGER_WRITE'],
      request: { batch_id: batchId, chunk: 0, last: true, transactions },
    })
    const data = { jws: sign(claims, signingKey) }
    const flags = { attempt: 1, stalled: 0, exhausted: false, tied: false, enqueuedAt: Date.now() }
    return { id: jobId(signingKey.clientId, jti), data, ...flags }
  }

  it('after its process died is answered from the receipt of another copy', async () => {
    const world = await openWorld(installation)
    const job = chunkOf('died')
    expect(await runJob(job, never, world.deps)).toEqual({ done: true })
    const isAnswered = await giveUp({ ...job, exhausted: true }, undefined, new Fault('crashed'), world.deps, never)
    expect(isAnswered).toEqual({ done: true })
    expect(world.told).toMatchObject([
      { status: 'SUCCEEDED', revision: 1 },
      { status: 'SUCCEEDED', revision: 1 },
    ])
    expect((await failedList(installation.queues, 'transaction-batch')).map(({ jti }) => jti)).not.toContain('died-0')
  })

  it('is worked and bisected once where it repeats a chunk with rows that failed', async () => {
    const world = await openWorld(installation)
    const failing = (fails: (reference: string | undefined) => boolean): World['deps'] => ({
      ...world.deps,
      inspect: ({ reference }) => {
        if (fails(reference)) throw new Error('broken law: a test finds a bug')
      },
    })
    expect(
      await runJob(
        chunkOf('repeated', Date.now() - 5_000),
        never,
        failing(() => true),
      ),
    ).toEqual({ done: true })
    expect(world.told).toMatchObject([{ revision: 1, counts: { FAILED: 2 } }])
    // Each record works alone but not both together, so bisection finds none.
    const seen: (string | undefined)[] = []
    const together = failing(reference => seen.push(reference) > 1 && reference === 'second' && seen.at(-2) === 'first')
    expect(await runJob(chunkOf('repeated'), never, together)).toEqual({ failed: true, code: 'defect' })
    expect(seen).toEqual(['first', 'second', 'second', 'first'])
    expect(world.told.at(-1)).toMatchObject({ status: 'FAILED', revision: 0 })
  })
})

it('a right that PostgreSQL denies is a fault of its own, and no defect', () => {
  expect(toFault(Object.assign(new Error('permission denied for table token'), { code: '42501' })).code).toBe(
    'store_denied',
  )
  expect(toFault(Object.assign(new Error('x'), { code: '42703' })).code).toBe('defect')
  // Reports show this text to callers.
  expect(new Fault('store_denied').message).not.toMatch(/DATABASE_URL|schema|PostgreSQL/)
})
