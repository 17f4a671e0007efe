// A chunk of standard input that is sent once more: a worker decides its failed rows again, and the results say so.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest'
import { describeStore } from '../../../support/engines.ts'
import { type Installation, openInstallation } from '../../../support/installation.ts'
import { startCommand } from '../../../support/process.ts'
import { testPan } from '../../../support/test-pan.ts'
import { until } from '../../../support/until.ts'

describeStore('failed rows of standard input', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    await installation.vault.store.query({
      text: `create function tokenmill.fail() returns trigger language plpgsql as $$ begin raise exception 'made to fail'; end $$`,
    })
    await writeFile(at('only.txt'), ['r_0', 'r_1', 'r_2', 'r_3', 'r_4'].join('\n'))
  })
  afterAll(() => installation?.close())
  beforeEach(() =>
    installation.vault.store.query({
      text: `create trigger fail before insert on tokenmill.token for each row when (new.card_holder_name = 'DEFECT') execute function tokenmill.fail()`,
    }),
  )

  const mend = () => installation.vault.store.query({ text: 'drop trigger fail on tokenmill.token' })
  const at = (name: string) => join(installation.dataDir, name)
  const start = (id: string, lines: readonly string[], more: readonly string[] = []) => {
    const names = ['--batch-id', id, '--results', at(`${id}.csv`), '--client', installation.clientFile]
    const words = [
      'migrate',
      '-',
      '--format',
      'csv',
      '--only',
      at('only.txt'),
      '--chunk',
      '2',
      '--in-flight',
      '1',
      '--json',
    ]
    const child = startCommand([...words, ...names, ...more], { env: installation.env })
    child.write(`${['reference,card_number,expiry,cardholder_name', ...lines].join('\n')}\n`)
    const ended = async () => {
      child.write()
      const { code } = await child.exit
      return { code, stderr: child.stderr(), json: child.stdout() === '' ? undefined : JSON.parse(child.stdout()) }
    }
    return { ended }
  }
  /** The fourth card fails while the trigger is there. */
  const cards = (block: number, count: number) =>
    Array.from({ length: count }, (_, n) => `r_${n},${testPan(block * 1_000 + n)},12/30,${n === 3 ? 'DEFECT' : 'Ada'}`)
  const outcomes = async (id: string) => {
    const [, ...lines] = (await readFile(at(`${id}.csv`), 'utf8')).trim().split('\n')
    return Object.fromEntries(lines.map(line => [line.split(',')[1], line.split(',')[2]]))
  }

  it('have their new outcome in the results where a run goes on behind them', async () => {
    const all = cards(1, 5)
    const stopped = await start('goes-on', all, ['--limit', '4']).ended()
    expect(stopped, stopped.stderr).toMatchObject({ json: { complete: false, created: 3, failed: 1 } })
    expect(await outcomes('goes-on')).toMatchObject({ r_3: 'FAILED' })
    await mend()
    const rest = await start('goes-on', all).ended()
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { complete: true, rows: 5, created: 5, failed: 0 } })
    expect(await outcomes('goes-on')).toMatchObject({ r_2: 'CREATED', r_3: 'CREATED', r_4: 'CREATED' })
  })

  it('stop a run that sent its last chunk once more, and the same command writes their new outcome', async () => {
    const skipped = Array.from({ length: 510 }, (_, n) => `s_${n},${testPan(2_500 + n)},12/30,Ada`)
    const all = [...cards(2, 4), ...skipped]
    const run = start('tail', all, ['--allow-missing'])
    const isWritten = () =>
      outcomes('tail').then(
        ends => ends['r_3'] === 'FAILED',
        () => false,
      )
    await until(isWritten, { what: 'the failed row' })
    await mend()
    const stopped = await run.ended()
    expect(stopped).toMatchObject({ code: 1, stderr: expect.stringMatching(/were decided again.*same command again/) })
    const rest = await start('tail', all, ['--allow-missing']).ended()
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { complete: true, created: 4, failed: 0, skipped: 510 } })
    expect(await outcomes('tail')).toMatchObject({ r_3: 'CREATED', s_509: 'SKIPPED' })
  })
})
