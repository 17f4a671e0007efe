// A whole file through queue, workers, store and results queue.
import { existsSync } from 'node:fs'
import { readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeSample } from '../../../bin/sample/cards.ts'
import { receiptId } from '../../../src/job/envelope/ids.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { runCommand } from '../../support/command.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'

describeEngines('migrate', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  const migrate = async (args: string[]) => {
    const words = ['migrate', ...args, '--client', installation.clientFile, '--json']
    const { code, stdout, stderr } = await runCommand(words, { env: installation.env })
    return { code, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) }
  }

  it('does what is asked of one token in the order of the file, over however many chunks', async () => {
    const cards = join(installation.dataDir, 'few.csv')
    await writeFile(cards, 'card_number,expiry\n5555555555554444,12/30\n')
    await migrate([cards])
    const [, row] = (await readFile(`${cards}.results.csv`, 'utf8')).split('\n')
    const id = row?.split(',')[4]
    const lines = Array.from({ length: 400 }, (_, index) => `${id},${index % 2 === 0 ? 'SUSPEND' : 'ACTIVATE'}`)
    const file = join(installation.dataDir, 'actions.csv')
    await writeFile(file, `id,action\n${lines.join('\n')}\n`)
    const done = await migrate([file, '--record-kind', 'token-lifecycle', '--chunk', '7'])
    // Each took effect: none found the state that it asks for.
    expect(done, done.stderr).toMatchObject({ code: 0, json: { rows: 400, updated: 400, unchanged: 0 } })
  })

  // The queue plays no part in the other tests, so they run on one engine.
  if (engine.name === 'redis') return

  it('gives every row of a file exactly one outcome, and changes nothing the second time', async () => {
    const file = join(installation.dataDir, 'cards.csv')
    const sample = await writeSample(file, { rows: 3_000, seed: 7, now: Date.now() })
    const rehearsed = await migrate([file, '--dry-run', '--chunk', '50'])
    const first = await migrate([file])
    expect(first, first.stderr).toMatchObject({ code: 3, json: { rows: 3_000, complete: true, variant: 'run' } })
    const { luhn, length, month, name, broken, duplicate } = sample
    const { created, rejected, duplicate: repeated } = rehearsed.json
    expect(first.json).toMatchObject({ created, rejected, duplicate: repeated })
    expect(first.json).toMatchObject({ rejected: luhn + length + month + name + broken, duplicate, failed: 0 })
    const results = await readFile(`${file}.results.csv`, 'utf8')
    expect(results.trim().split('\n')).toHaveLength(3_001)
    const again = await migrate([file])
    expect(again, again.stderr).toMatchObject({
      code: 3,
      json: { variant: 'replay', created: first.json.created, duplicate },
    })
    const verify = ['manifest', 'verify', `${file}.manifest.json`, '--client', installation.clientFile]
    const verified = await runCommand(verify, { env: installation.env })
    expect(verified, verified.stderr).toMatchObject({ code: 0 })
  })

  it('goes on with later chunks while an older one has no answer, and writes all in the order of the file', async () => {
    const { vault, credentials, dataDir } = installation
    const file = join(dataDir, 'held.csv')
    await writeSample(file, { rows: 300, seed: 23, now: Date.now() })
    const receiptOf = (chunk: number) => receiptId(credentials.signingKey.clientId, `held-${chunk}`)
    const receipts = async () => {
      const text = 'select count(*)::int as n from tokenmill.receipt where receipt_id = any($1::uuid[])'
      const values = [Array.from({ length: 30 }, (_, chunk) => receiptOf(chunk))]
      return (await vault.store.query<{ n: number }>({ text, values })).rows[0]?.n ?? 0
    }
    const waiting = `${file}.results.csv.waiting`
    const options = ['--batch-id', 'held', '--chunk', '10', '--in-flight', '2']
    const run = await vault.store.transaction(
      async () => {
        const begun = migrate([file, ...options])
        await until(async () => (await receipts()) === 29, { what: 'all chunks but the one' })
        await until(async () => (await stat(waiting)).size > 0, { what: 'their results in a file' })
        expect((await stat(waiting)).mode & 0o777).toBe(0o600)
        expect(await readFile(waiting, 'latin1')).not.toMatch(/\d{13,19}/)
        return { begun }
      },
      { lock: receiptOf(3) },
    )
    const done = await run.begun
    expect(done, done.stderr).toMatchObject({ code: 3, json: { complete: true, rows: 300, failed: 0 } })
    const lines = (await readFile(`${file}.results.csv`, 'utf8')).trim().split('\n').slice(1)
    expect(lines.map(line => Number(line.split(',')[0]))).toEqual(Array.from({ length: 300 }, (_, index) => index + 2))
    expect(existsSync(waiting)).toBe(false)
    const verify = ['manifest', 'verify', `${file}.manifest.json`, '--client', installation.clientFile]
    const verified = await runCommand(verify, { env: installation.env })
    expect(verified, verified.stderr).toMatchObject({ code: 0 })
  })

  it('says which scope is not open, instead of rejecting a million rows', async () => {
    const file = join(installation.dataDir, 'wrong.csv')
    await writeFile(file, 'card_number,expiry\n4111111111111111,12/30\n')
    const done = await migrate([file, '--scope', '11111111-2222-4333-8444-555555555555'])
    expect(done).toMatchObject({ code: 1 })
    expect(done.stderr).toMatch(/token scope is unknown, or not open/)
    // After the correction the same file can be migrated.
    expect(await migrate([file])).toMatchObject({ code: 0, json: { rows: 1 } })
  })

  it('says which names a new batch over a migrated file may have, and how it goes on after a stop', async () => {
    const file = join(installation.dataDir, 'twice.csv')
    await writeSample(file, { rows: 30, seed: 5, now: Date.now() })
    const first = await migrate([file])
    const own = ['--results', `${file}.again.results.csv`, '--manifest', `${file}.again.manifest.json`]
    expect(await migrate([file, '--again'])).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(`Give the new batch files of its own: ${own.join(' ')}`),
    })
    const stopped = await migrate([file, '--again', '--chunk', '10', '--limit', '10', ...own])
    const id = String(stopped.json.batch_id)
    expect(stopped.stderr).toContain(`run it with --batch-id ${id} in place of --again and without --limit to go on`)
    const refused = await migrate([file, '--again', '--chunk', '10', ...own])
    expect(refused).toMatchObject({
      code: 64,
      stderr: expect.stringContaining(`Finish that batch with --batch-id ${id} in place of --again, or`),
    })
    const finished = await migrate([file, '--batch-id', id, '--chunk', '10', ...own])
    expect(finished, finished.stderr).toMatchObject({
      json: { batch_id: id, variant: 'run', rows: 30, complete: true },
    })
    expect(first.json.batch_id).not.toBe(id)
    expect(await migrate([file, '--again'])).toMatchObject({ code: 64, stderr: expect.stringContaining('again-2.man') })
  })

  it('stops at --limit, rounded up to whole chunks, and finishes the batch with the next run', async () => {
    const file = join(installation.dataDir, 'canary.csv')
    await writeSample(file, { rows: 250, seed: 11, now: Date.now() })
    const canary = await migrate([file, '--chunk', '100', '--limit', '120'])
    expect(canary, canary.stderr).toMatchObject({ code: 3, json: { complete: false, stopped: 'limit', rows: 200 } })
    expect(canary.stderr).toContain('--limit 120 is rounded up to 2 whole chunks of 100 rows')
    const id = canary.json.batch_id
    await becomes(id, 'PAUSED')
    const rest = await migrate([file])
    expect(rest, rest.stderr).toMatchObject({ code: 3, json: { complete: true, rows: 250 } })
    const batch = await becomes(id, 'FINISHED')
    expect(batch).toMatchObject({ rowsDone: 250, revision: 1, extent: { chunks: 3, rows: 250, name: 'canary.csv' } })
    const { reasons } = JSON.parse(await readFile(`${file}.manifest.json`, 'utf8'))
    expect(reasons).toEqual(rest.json.reasons)
    expect(batch.reasons).toEqual(reasons)
  })

  it('stops once more rows are rejected than --max-rejected allows, and goes on without it', async () => {
    const file = join(installation.dataDir, 'spoilt.csv')
    const rows = Array.from({ length: 400 }, () => '4111111111111112,12/30')
    await writeFile(file, `card_number,expiry\n${rows.join('\n')}\n`)
    const options = [file, '--chunk', '50', '--in-flight', '1']
    const stopped = await migrate([...options, '--max-rejected', '99'])
    expect(stopped, stopped.stderr).toMatchObject({ code: 1, json: { complete: false, stopped: 'rejected' } })
    expect(stopped.json).toMatchObject({ rejected: 150, reasons: { REJECTED: { pan_luhn: 150 } } })
    const share = await migrate([...options, '--max-rejected', '1%'])
    // A share is checked only from 1,000 rows on.
    expect(share, share.stderr).toMatchObject({ code: 3, json: { complete: true, rejected: 400 } })
  })

  it('ends a batch from standard input with its last chunk', async () => {
    const child = startCommand(
      [
        'migrate',
        '-',
        '--format',
        'csv',
        '--batch-id',
        'piped',
        '--chunk',
        '2',
        '--results',
        'piped.csv',
        '--json',
      ].concat(['--client', installation.clientFile]),
      { env: installation.env as Record<string, string>, cwd: installation.dataDir },
    )
    child.write(CARDS)
    child.write()
    expect(await child.exit, child.stderr()).toMatchObject({ code: 0 })
    expect(await becomes('piped', 'FINISHED')).toMatchObject({ extent: { chunks: 2, rows: null }, rowsDone: 4 })
  })

  const becomes = (id: string, state: string) =>
    until(
      async () => {
        const batch = await batches.find(installation.vault.store, installation.credentials.signingKey.clientId, id)
        return batch && stateOf(batch, Date.now()) === state && batch
      },
      { what: `${id} ${state}` },
    )
})

const CARDS = `card_number,expiry\n${[1, 2, 3, 4].map(n => `${testPan(n)},12/30`).join('\n')}\n`
