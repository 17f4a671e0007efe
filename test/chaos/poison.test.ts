// Records and jobs that kill the process that works them, or make it throw: only they fail.
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import { jobId } from '../../src/job/envelope/ids.ts'
import { failedList } from '../../src/queue/failed.ts'
import type { Supervised } from '../../workers/process/supervise.ts'
import type { WorkerRole } from '../../workers/process/worker-settings.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { QUICK } from './bundle.ts'
import { migrateAgain, readResults, startMigrate } from './migration.ts'

const MISBEHAVING = fileURLToPath(new URL('../support/scripts/misbehaving-worker.ts', import.meta.url))
/** After each probe that crashes a cell another cell must start, so chunks are small. */
const ROWS = 16
const CHUNK = 8
const POISON: Record<number, string> = { 5: 'POISON-CRASH', 12: 'POISON-THROW' }

describeEngines('poison', engine => {
  let installation: Installation
  let workers: Pick<Supervised, 'close'> | undefined
  beforeAll(async () => {
    // The jobs of a process that died are handed back: no lock runs out while this suite runs.
    installation = await openInstallation(engine, { ...QUICK, TOKENMILL_LOCK_SECONDS: '600' })
  })
  afterAll(() => installation?.close())

  const misbehave = async (role: WorkerRole) => {
    await workers?.close()
    workers = await installation.startWorkers({ roles: [role], script: MISBEHAVING })
  }
  const behave = async (role: WorkerRole) => {
    await workers?.close()
    workers = await installation.openWorkers({ roles: [role] })
  }

  it('in a batch fails alone, and is decided anew by the same file', async () => {
    const path = join(installation.dataDir, 'poison.csv')
    const row = (_: unknown, index: number) => `${POISON[index] ?? `row-${index}`},${panOf(index, 42)},12,2031`
    const lines = ['reference,card_number,expiry_month,expiry_year', ...Array.from({ length: ROWS }, row)]
    await writeFile(path, `${lines.join('\n')}\n`)
    const ask = async <R>(text: string) => (await installation.vault.store.query<R>({ text })).rows
    const file = { path, scope: installation.scope }
    await misbehave('bulk')
    const first = await startMigrate(installation, file, CHUNK).end()
    expect(first, first.stderr).toMatchObject({ code: 3, json: { complete: true, created: ROWS - 2, failed: 2 } })
    const failed = (await readResults(`${path}.results.csv`)).filter(({ outcome }) => outcome === 'FAILED')
    expect(failed.map(({ reference, code }) => `${reference} ${code}`)).toEqual([
      'POISON-CRASH 500',
      'POISON-THROW 500',
    ])
    const revisions = () => ask<{ n: number }>('select revision as n from tokenmill.receipt order by chunk')
    const before = (await revisions()).map(({ n }) => n)
    await behave('bulk')
    const again = await migrateAgain(installation, { ...file, chunk: CHUNK })
    expect(again, again.stderr).toMatchObject({ code: 0, json: { complete: true, created: ROWS, failed: 0 } })
    expect((await revisions()).map(({ n }, chunk) => n > (before[chunk] ?? n))).toEqual([true, true])
    expect(await ask('select count(*)::int as n, sum(version)::int as v from tokenmill.token')).toEqual([
      { n: ROWS, v: ROWS },
    ])
  })

  it('as a job fails alone, leaves a copy, and frees its id', async () => {
    const client = await installation.connect()
    const call = async (index: number, reference: string) => {
      const card = { cardNumber: panOf(index, 77), expiryMonth: 12, expiryYear: 2031 }
      const request = { token_scope: installation.scope, ...(await client.encryptCard(card)) }
      return { request, answer: client.call('token-create', request, { jti: `job-${index}`, reference }) }
    }
    // All jobs are queued before the worker takes them.
    const references = Array.from({ length: 10 }, (_, index) => (index === 4 ? 'POISON-CRASH' : `innocent-${index}`))
    references.push('POISON-THROW')
    const calls = await Promise.all(references.map((reference, index) => call(index, reference)))
    await until(async () => (await installation.queues.depth('token-create')).waiting === references.length)
    await misbehave('interactive')
    const results = await Promise.all(calls.map(({ answer }) => answer))
    expect(results.map(({ code }) => code)).toEqual(references.map(name => (name.startsWith('POISON') ? 500 : 200)))
    // The caller is answered first; the copy follows.
    const copies = () => failedList(installation.queues, 'token-create')
    await until(async () => (await copies()).length === 2, { what: 'both copies' })
    expect((await copies()).map(({ code }) => code).sort()).toEqual(['crashed', 'defect'])
    // A copy names its sender, also if the process that worked the job died.
    expect((await copies()).map(copy => [copy.code, copy.clientId, copy.jti, copy.reference]).sort()).toEqual([
      ['crashed', client.clientId, 'job-4', 'POISON-CRASH'],
      ['defect', client.clientId, 'job-10', 'POISON-THROW'],
    ])
    for (const index of [4, 10]) {
      const id = jobId(client.clientId, `job-${index}`)
      await until(async () => !(await installation.queues.has('token-create', id)), { what: 'its id to be free' })
    }
    await behave('interactive')
    const again = await client.call('token-create', calls[4]?.request, { jti: 'job-4' })
    expect(again).toMatchObject({ status: 'SUCCEEDED', receipt_id: results[4]?.receipt_id })
    expect(again.revision).toBeGreaterThan(results[4]?.revision ?? 0)
  })
})
