// Files of different ages through queue, workers and store: what the command says, and what stands afterwards.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'

describeStore('files of different ages', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(() => installation?.close())

  const put = async (name: string, text: string) => {
    const file = join(installation.dataDir, name)
    await writeFile(file, text)
    return file
  }
  const cards = (rows: readonly string[], more = '') =>
    ['card_number,expiry,cardholder_name', ...rows, ''].join('\n') + more
  const migrate = async (args: string[]) => {
    const all = ['migrate', ...args, '--on-conflict', 'newest', '--client', installation.clientFile, '--json']
    const end = await runCommand(all, { env: installation.env })
    return { ...end, json: end.stdout === '' ? undefined : JSON.parse(end.stdout) }
  }

  it('end the same whichever comes last, and say so in results and manifest', async () => {
    const april = await put('april.csv', cards([`${testPan(1)},0433,NEW`, `${testPan(2)},0433,NEW`]))
    const march = await put('march.csv', cards([`${testPan(1)},0333,OLD`, `${testPan(3)},0333,OLD`]))
    expect(await migrate([april, '--source-time', '2026-04-30'])).toMatchObject({ code: 0, json: { created: 2 } })
    const dry = await migrate([march, '--source-time', '2026-03-31', '--dry-run'])
    expect(dry.json).toMatchObject({ created: 1, unchanged: 1 })
    const done = await migrate([march, '--source-time', '2026-03-31', '--expect', dry.json.manifest])
    expect(done.json).toMatchObject({ created: 1, unchanged: 1, as_expected: true })
    const { options } = JSON.parse(await readFile(`${march}.manifest.json`, 'utf8'))
    expect(options).toMatchObject({ on_conflict: 'newest', source_time: '2026-03-31T00:00:00.000Z' })
    // Another day makes another batch, in which the file is the newer one.
    const later = ['--results', join(installation.dataDir, 'later.csv'), '--manifest', `${march}.later.json`]
    const again = await migrate([march, '--source-time', '2026-05-31', ...later])
    expect(again.json).toMatchObject({ updated: 1, unchanged: 1 })
    expect(again.json.batch_id).not.toBe(done.json.batch_id)
  })

  it('say row by row when they were given, in a column', async () => {
    const rows = [
      ...[`2026-04-02,${testPan(4)},0433,NEW`, `2026-04-01,${testPan(4)},0333,OLD`, `,${testPan(5)},0433,NONE`],
      `2999-01-01,${testPan(6)},0433,FUTURE`,
    ]
    const file = await put('column.csv', ['updated_at,card_number,expiry,cardholder_name', ...rows, ''].join('\n'))
    const done = await migrate([file, '--source-time', 'updated_at'])
    expect(done.json).toMatchObject({
      created: 1,
      duplicate: 1,
      rejected: 2,
      reasons: { REJECTED: { source_time_invalid: 1, source_time_future: 1 } },
    })
    const results = await readFile(`${file}.results.csv`, 'utf8')
    expect(results.match(/,4,2033,/g)).toHaveLength(2)
  })

  it('need a time, and none that lies ahead', async () => {
    const file = await put('refused.csv', cards([`${testPan(7)},0433,ADA`]))
    expect(await migrate([file])).toMatchObject({ code: 64 })
    const ahead = await migrate([file, '--source-time', '2999-01-01'])
    expect(ahead).toMatchObject({ code: 64 })
    expect(ahead.stderr).toContain('--source-time lies in the future')
    const before = await migrate([file, '--source-time', '1969-12-31'])
    expect(before).toMatchObject({ code: 64 })
    expect(before.stderr).toContain('--source-time lies before 1970')
    expect(await migrate([file, '--source-time', '2026-03-31 10:00+99:00'])).toMatchObject({ code: 64 })
    const unknown = await migrate([file, '--source-time', 'nowhere'])
    expect(unknown.stderr).toContain('no column "nowhere", which --source-time names')
  })
})
