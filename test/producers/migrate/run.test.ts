// A whole file through queue, workers, store and results queue.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeSample } from '../../../producers/migrate/sample.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'

describeEngines('migrate', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.startWorkers({ roles: ['bulk'] })
  }, 60_000)
  afterAll(() => installation?.close())

  const migrate = async (args: string[]) => {
    const child = startCommand(['migrate', ...args, '--client', installation.clientFile, '--json'], {
      env: installation.env as Record<string, string>,
    })
    const exit = await child.exit
    return { ...exit, stderr: child.stderr(), json: child.stdout() === '' ? undefined : JSON.parse(child.stdout()) }
  }

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
    const verified = startCommand(
      ['manifest', 'verify', `${file}.manifest.json`, '--client', installation.clientFile],
      { env: installation.env as Record<string, string> },
    )
    expect(await verified.exit, verified.stderr()).toMatchObject({ code: 0 })
  }, 60_000)

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
  }, 60_000)

  it('says which scope is not open, instead of rejecting a million rows', async () => {
    const file = join(installation.dataDir, 'wrong.csv')
    await writeFile(file, 'card_number,expiry\n4111111111111111,12/30\n')
    const done = await migrate([file, '--scope', '11111111-2222-4333-8444-555555555555'])
    expect(done).toMatchObject({ code: 1 })
    expect(done.stderr).toMatch(/token scope is unknown, or not open/)
    // It can be mended: nothing of the first try is in the way.
    expect(await migrate([file])).toMatchObject({ code: 0, json: { rows: 1 } })
  }, 30_000)
})
