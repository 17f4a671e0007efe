// A batch that is cancelled while it runs: rows that were worked keep their effect, no further row is worked, and
// results say which is which.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommand } from '../support/command.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { QUICK, stateOf } from './bundle.ts'
import {
  CHUNK,
  migrateAgain,
  newFile,
  quickStoring,
  readResults,
  slowStoring,
  startMigrate,
  untilMiddle,
} from './migration.ts'

/** So many that rows are left after two commands have run. */
const ROWS = 40 * CHUNK

describeEngines('a batch that is cancelled in its midst', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine, QUICK)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  const command = async (...args: string[]) => {
    const { code, stdout, stderr } = await runCommand([...args, '--json'], { env: installation.env })
    expect(code, stderr).toBe(0)
    return JSON.parse(stdout)
  }

  it('answers the rest as cancelled, and its sums hold then and for ever', async () => {
    const ask = async <R>(text: string, values: unknown[] = []) =>
      (await installation.vault.store.query<R>({ text, values })).rows
    const file = await newFile(installation.dataDir, installation.scope, ROWS)
    // The first command loads the modules, so that later ones run at once.
    await command('batch', 'list')
    // One chunk at a time, so that rows are left.
    await slowStoring({ ask })
    const run = startMigrate(installation, file, CHUNK, ['--in-flight', '1'])
    await untilMiddle({ ask }, file, run)
    const [{ batch_id: id }] = await command('batch', 'list')
    await command('batch', 'cancel', id, '--yes')
    await quickStoring({ ask })
    const ended = await run.end()
    expect(ended, ended.stderr).toMatchObject({ code: 3, json: { complete: true, rows: file.rows, failed: 0 } })
    const { created, duplicate, rejected, cancelled } = ended.json as Record<string, number>
    expect(Number(cancelled)).toBeGreaterThan(0)
    expect(Number(created)).toBeGreaterThan(0)
    expect([created, duplicate, rejected, cancelled].reduce((sum = 0, n = 0) => sum + n)).toBe(file.rows)
    const outcomes = (await readResults(`${file.path}.results.csv`)).map(({ outcome }) => outcome)
    // Whole chunks, and none after the first that was cancelled.
    expect(outcomes.indexOf('CANCELLED') % CHUNK).toBe(0)
    expect(new Set(outcomes.slice(outcomes.indexOf('CANCELLED')))).toEqual(new Set(['CANCELLED']))
    const before = await stateOf({ ...installation, ask }, file.scope)
    expect(before).toMatchObject({ tokens: created })
    const shown = { state: 'CANCELLED', records_done: file.rows, counts: { CREATED: created, CANCELLED: cancelled } }
    await until(async () => (await command('batch', 'show', id)).records_done === file.rows)
    expect(await command('batch', 'show', id)).toMatchObject(shown)
    const again = await migrateAgain(installation, file)
    expect(again, again.stderr).toMatchObject({ code: 3, json: { created, duplicate, rejected, cancelled } })
    expect(await stateOf({ ...installation, ask }, file.scope)).toEqual(before)
  })
})
