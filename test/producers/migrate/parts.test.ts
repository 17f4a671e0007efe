// Several files as one migration: each is a separate batch, and all their manifests have the same name.
import { access, appendFile, copyFile, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { writeSample } from '../../../bin/sample/cards.ts'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'

describeStore('a migration of several files', engine => {
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
  async function part(name: string, rows: readonly string[]): Promise<string> {
    const file = join(installation.dataDir, name)
    await writeFile(file, ['reference,card_number,expiry', ...rows, ''].join('\n'))
    return file
  }
  const manifestOf = async (file: string) => JSON.parse(await readFile(`${file}.manifest.json`, 'utf8'))

  it('migrates one part after the other, and goes on where it stopped', async () => {
    const one = await part('part-1.csv', ['a,4111111111111111,12/30', 'b,5555555555554444,12/30', 'c,1,12/30'])
    const two = await part('part-2.csv', ['d,378282246310005,12/30', 'e,6011111111111117,12/30'])
    const words = [one, two, '--migration', 'spring', '--chunk', '2', '--rejects', '{}.rejects.csv']
    const stopped = await migrate([...words, '--limit', '2'])
    expect(stopped, stopped.stderr).toMatchObject({
      code: 0,
      json: { migration: 'spring', complete: false, parts: [{ state: 'stopped', stopped: 'limit', rows: 2 }] },
    })
    expect(stopped.stderr).toMatch(/stopped at --limit in .*part-1\.csv, and 1 part was not begun/)
    const done = await migrate(words)
    expect(done, done.stderr).toMatchObject({
      code: 3,
      json: {
        complete: true,
        rows: 5,
        created: 4,
        rejected: 1,
        parts: [
          { state: 'complete', rows: 3 },
          { state: 'complete', rows: 2 },
        ],
      },
    })
    for (const file of [one, two]) expect(await manifestOf(file)).toMatchObject({ migration: 'spring' })
    expect((await readFile(`${one}.rejects.csv`, 'utf8')).trim().split('\n')).toHaveLength(2)
    const listed = await runCommand(['batch', 'list', '--json'], { env: installation.env })
    expect(listed.stdout).toContain('"spring/part-2.csv"')
    // A part whose results file is missing, or that gets an additional file, is answered again from its receipts.
    await rename(`${two}.results.csv`, `${two}.kept`)
    const again = await migrate(words)
    expect(again.json.parts).toMatchObject([{ state: 'finished_before' }, { state: 'complete' }])
    await access(again.json.parts[1].results)
    const asked = await migrate([...words.slice(0, -1), '{}.other.csv'])
    expect(asked.json.parts).toMatchObject([{ state: 'complete' }, { state: 'complete' }])
    await rename(`${two}.kept`, `${two}.results.csv`)
    // A third part comes later: the others aren't sent again.
    const three = await part('part-3.csv', ['f,3530111333300000,12/30'])
    const more = await migrate([one, two, three, ...words.slice(2)])
    expect(more, more.stderr).toMatchObject({
      code: 3,
      json: {
        created: 5,
        parts: [{ state: 'finished_before', rejected: 1 }, { state: 'finished_before' }, { state: 'complete' }],
      },
    })
  })

  it('says what its list names and no part has, also of parts that were finished before', async () => {
    const one = await part('list-1.csv', [`q,${testPan(41)},12/30`, `r,${testPan(42)},12/30`])
    const two = await part('list-2.csv', [`s,${testPan(43)},12/30`])
    const list = join(installation.dataDir, 'parts-list.txt')
    await writeFile(list, 'q\ns\nt\n')
    const words = ['--migration', 'listed', '--only', list]
    const first = await migrate([one, ...words])
    expect(first, first.stderr).toMatchObject({ code: 3, json: { listing: { listed: 3, found: 1 } } })
    const both = await migrate([one, two, ...words])
    expect(both, both.stderr).toMatchObject({
      code: 3,
      json: { parts: [{ state: 'finished_before' }, { state: 'complete' }], listing: { found: 2, missing: ['"t"'] } },
    })
    expect(both.stderr).toContain('listed 3, found 2; not found (first): "t"')
    const allowed = await migrate([one, two, ...words, '--allow-missing'])
    expect(allowed, allowed.stderr).toMatchObject({ code: 0 })
  })

  it('stops at a finished part whose files are not what it wrote', async () => {
    const one = await part('cut-1.csv', ['k,4917610000000000,12/30', 'l,1,12/30'])
    const two = await part('cut-2.csv', ['m,30569309025904,12/30'])
    const words = [one, two, '--migration', 'cut', '--rejects', '{}.rejects.csv']
    expect(await migrate(words)).toMatchObject({ code: 3 })
    for (const path of [`${one}.results.csv`, `${one}.rejects.csv`]) {
      const whole = await readFile(path)
      for (const change of [
        () => truncate(path, whole.length - 5),
        () => writeFile(path, whole.toString('utf8').replace('l', 'x')),
      ]) {
        await change()
        const stopped = await migrate(words)
        expect(stopped, stopped.stderr).toMatchObject({ code: 1, json: undefined })
        expect(stopped.stderr).toContain(`${path} is not the file that the finished part wrote.`)
        await writeFile(path, whole)
      }
    }
    const finished = [{ state: 'finished_before' }, { state: 'finished_before' }]
    expect(await migrate(words)).toMatchObject({ code: 3, json: { parts: finished } })
    // Without the file the part is answered again from its receipts, as the message says.
    await rm(`${one}.results.csv`)
    expect(await migrate(words)).toMatchObject({ code: 3, json: { parts: [{ state: 'complete' }, finished[1]] } })
  })

  it('refuses parts of the same content, and options that are for one file, before anything is sent', async () => {
    const one = join(installation.dataDir, 'same-1.csv')
    await writeSample(one, { rows: 20, seed: 3, now: Date.now() })
    const two = join(installation.dataDir, 'same-2.csv')
    await copyFile(one, two)
    const named = ['--migration', 'same']
    expect(await migrate([one, two, ...named])).toMatchObject({
      code: 64,
      stderr: expect.stringMatching(/same-1\.csv and .*same-2\.csv have the same content/),
    })
    await appendFile(two, 'x\n')
    const refused = [
      [[one, two], /which needs a name/],
      [[one, '-', ...named], /Standard input is no part/],
      [[one, two, ...named, '--batch-id', 'b'], /--batch-id is for one file/],
      [[one, two, ...named, '--results', 'r.csv'], /--results names one file/],
      [[one, '--migration', 'not ok'], /1 to 64 letters/],
      [[one, '--migration', '4111111111111111'], /could be a card number/],
    ] as const
    for (const [words, text] of refused)
      expect(await migrate([...words]), words.map(word => basename(word)).join(' ')).toMatchObject({
        code: 64,
        stderr: expect.stringMatching(text),
      })
  })

  it('goes on with the other parts after rows were rejected, and stops where one part stops', async () => {
    const wrong = await part(
      'stop-1.csv',
      Array.from({ length: 60 }, (_, n) => `r${n},${n},12/30`),
    )
    const after = await part('stop-2.csv', ['g,4012888888881881,12/30'])
    const words = [wrong, after, '--migration', 'stopping', '--chunk', '2', '--in-flight', '2']
    const stopped = await migrate([...words, '--max-rejected', '1'])
    expect(stopped).toMatchObject({ code: 1, json: { complete: false, parts: [{ stopped: 'rejected' }] } })
    expect(stopped.stderr).toMatch(
      /stop-1\.csv, and 1 part was not begun: stopped: more rows are rejected than --max-rejected allows; .* higher bound/,
    )
    const done = await migrate(words)
    expect(done, done.stderr).toMatchObject({ code: 3, json: { complete: true, rejected: 60, created: 1 } })
    expect(done.json.parts[0]).toMatchObject({ reasons: { REJECTED: { pan_format: 60 } } })
  })

  it('compares each part with its rehearsal, also one that was finished before', async () => {
    const one = await part('expect-1.csv', ['h,5105105105105100,12/30'])
    const two = await part('expect-2.csv', ['i,5105105105105100,12/30'])
    const words = [one, two, '--migration', 'expected']
    await migrate([...words, '--dry-run'])
    const compared = [...words, '--expect', '{}.dry-run.manifest.json']
    for (const state of ['complete', 'finished_before']) {
      const done = await migrate(compared)
      expect(done, done.stderr).toMatchObject({
        json: {
          parts: [
            { state, as_expected: true, differences: [] },
            {
              state,
              as_expected: false,
              differences: expect.arrayContaining([{ outcome: 'CREATED', expected: 1, found: 0 }]),
            },
          ],
        },
      })
      expect(done.stderr).toMatch(/expect-1\.csv: as expected by .*expect-1\.csv\.dry-run/)
      expect(done.stderr).toMatch(/expect-2\.csv: CREATED: 1 expected, 0 found/)
    }
  })
})
