// What becomes of a job whose attempt failed, where another copy of it has ended meanwhile.
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../../producers/migrate/sample.ts'
import { tokenBatch } from '../../../producers/token-batch.ts'
import { isRefusal, toFault } from '../../../src/errors.ts'
import { jobId } from '../../../src/job/envelope/ids.ts'
import { failedList } from '../../../src/queue/failed.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'

const OVERTAKEN = fileURLToPath(new URL('../../support/overtaken-worker.ts', import.meta.url))

describeEngines('a job that fails while another copy of it ends', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine, { TOKENMILL_LOCK_SECONDS: '60' })
  }, 60_000)
  afterAll(() => installation?.close())

  it('is answered from the receipt of that copy, and leaves nothing in the failed set', async () => {
    const { queues, credentials, scope, vault } = installation
    const file = join(installation.dataDir, 'overtaken')
    await installation.startWorkers({ script: OVERTAKEN, roles: ['bulk'], env: { OVERTAKEN_FILE: file } })
    const client = await installation.connect()
    const { jwe } = credentials.captureKeys
    if (!jwe) throw new Error('broken law: the client has a JWE key')
    const plan = {
      ...{ batchId: 'twice', recordKind: 'token-create' as const, tokenScope: scope, captureKey: jwe },
      acceptedAt: Math.floor(Date.now() / 1000),
    }
    const lines = ['OVERTAKEN', 'other'].map((reference, index) =>
      JSON.stringify({
        ...{ line: index + 2, reference },
        request: { card: { cardNumber: panOf(index, 91), expiryMonth: 12, expiryYear: 2031 } },
      }),
    )
    const ask = await tokenBatch(client.clientId, plan, { number: 0, lines })
    if (isRefusal(ask)) throw new Error('broken law: a chunk has its form')
    const answer = client.call('token-batch', ask.request, { jti: ask.jti, block: ask.block })
    await until(async () => existsSync(`${file}.standing`), { ms: 20_000, what: 'the worker to stand still' })
    const id = jobId(client.clientId, ask.jti)
    const job = await queues.get('token-batch', id)
    await queues.add('token-batch', { id: 'another_copy', data: job?.data })
    await installation.startWorkers({ roles: ['bulk'] })
    expect(await answer).toMatchObject({ records: [{ outcome: 'CREATED' }, { outcome: 'CREATED' }] })
    await writeFile(file, '')
    await until(async () => !(await queues.has('token-batch', id)), { ms: 20_000, what: 'the job to end' })
    expect((await failedList(queues, 'token-batch')).map(({ code }) => code)).toEqual([])
    const { rows } = await vault.store.query({ text: 'select count(*)::int as n from tokenmill.token' })
    expect(rows).toEqual([{ n: 2 }])
  }, 90_000)
})

it('a right that PostgreSQL denies is a fault of its own, and no defect', () => {
  expect(toFault(Object.assign(new Error('permission denied for table token'), { code: '42501' })).code).toBe(
    'store_denied',
  )
  expect(toFault(Object.assign(new Error('x'), { code: '42703' })).code).toBe('defect')
})
