// A file whose first rows fit and whose later ones don't: what stops it, what is kept, and how it goes on.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readCheckpoint } from '../../../producers/migrate/checkpoint.ts'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'

const HEADER = 'id,number,valid'
const columns = { reference: '{id}', card_number: { from: 'number' }, expiry: { from: 'valid', form: 'MMYY' } }
const DELIMITED = { profile: 1, name: 'plain', title: 'A plain file', format: { type: 'delimited' }, columns }
const PROFILES = {
  mmyy: DELIMITED,
  yymm: { ...DELIMITED, name: 'turned', columns: { ...columns, expiry: { from: 'valid', form: 'YYMM' } } },
  utf16: { ...DELIMITED, format: { type: 'delimited', encoding: 'utf-16le' } },
  counted: { ...DELIMITED, format: { type: 'delimited', trailer_record: { mark: 'END', count_field: 2 } } },
  cardless: { ...DELIMITED, no_card: 'skip' },
  nested: { ...DELIMITED, format: { type: 'json', records: 'cards[]' } },
}
type ProfileName = keyof typeof PROFILES

describeStore('a file that stops fitting', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    for (const [name, profile] of Object.entries(PROFILES)) await writeFile(at(`${name}.json`), JSON.stringify(profile))
  })
  afterAll(() => installation?.close())

  const at = (name: string) => join(installation.dataDir, name)
  const migrate = async (args: readonly string[]) => {
    const words = ['migrate', ...args, '--client', installation.clientFile, '--json']
    const { code, stdout, stderr } = await runCommand(words, { env: installation.env })
    return { code, stderr, json: stdout === '' ? undefined : JSON.parse(stdout) }
  }
  const from = (name: ProfileName) => ['--from', at(`${name}.json`)]
  const put = async (name: string, lines: readonly string[]) => {
    await writeFile(at(name), `${[HEADER, ...lines, ''].join('\n')}`)
    return at(name)
  }
  const piped = async (id: string, profile: ProfileName, lines: readonly string[]) => {
    const options = ['--batch-id', id, '--results', at(`${id}.csv`), '--chunk', '10', '--json']
    const words = ['migrate', '-', ...from(profile), ...options, '--client', installation.clientFile]
    const child = startCommand(words, { env: installation.env })
    child.write(`${lines.join('\n')}\n`)
    child.write()
    const { code } = await child.exit
    return { code, stderr: child.stderr(), json: child.stdout() === '' ? undefined : JSON.parse(child.stdout()) }
  }
  /** Rows with card numbers that no other `block` has. */
  const rows = (block: number, first: number, count: number, valid = '1230') =>
    Array.from({ length: count }, (_, index) => {
      const n = block * 10_000 + first + index
      return `c_${n},${testPan(n)},${valid}`
    })
  const outcomesIn = async (path: string) => {
    const [, ...lines] = (await readFile(path, 'utf8')).trim().split('\n')
    return Object.groupBy(lines, line => line.split(',')[2] ?? '')
  }
  const tokens = async () => {
    const text = 'select count(*)::int as n from tokenmill.token'
    return (await installation.vault.store.query<{ n: number }>({ text })).rows[0]?.n ?? 0
  }
  const batch = (id: string) => batches.find(installation.vault.store, installation.credentials.signingKey.clientId, id)

  it('in the form of its expiries: the run says from which line on, and another profile takes the rest', async () => {
    const before = await tokens()
    const file = await put('turned.csv', [...rows(1, 0, 600), ...rows(1, 600, 1_300, '3012')])
    const done = await migrate([file, ...from('mmyy'), '--rejects', at('turned.rejects.csv')])
    expect(done).toMatchObject({ code: 3, json: { created: 600, rejected: 1_300, complete: true } })
    expect(done.json.reasons).toEqual({ REJECTED: { expiry_format: 1_300 } })
    expect(done.stderr).toMatch(/from line 602 on all 1\d\d\d rows so far are rejected: expiry_format\./)
    expect(done.stderr.match(/from line/g)).toHaveLength(1)

    const rejected = (await readFile(at('turned.rejects.csv'), 'utf8')).trim().split('\n').slice(1)
    await writeFile(at('rest.txt'), rejected.map(line => line.split(',')[5]).join('\n'))
    const own = ['--results', at('rest.csv'), '--manifest', at('rest.json')]
    const rest = await migrate([file, ...from('yymm'), '--only', at('rest.txt'), ...own])
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { created: 1_300, skipped: 600, rejected: 0 } })
    expect(rest.json.batch_id).not.toBe(done.json.batch_id)
    expect((await tokens()) - before).toBe(1_900)
  })

  it('in the number of its columns: --max-rejected stops it, and the mended file loses and doubles nothing', async () => {
    const before = await tokens()
    const wider = rows(2, 100, 400).map(row => `${row},extra`)
    const file = await put('wider.csv', [...rows(2, 0, 100), ...wider])
    const run = [file, ...from('mmyy'), '--chunk', '50', '--in-flight', '1']
    const stopped = await migrate([...run, '--max-rejected', '60'])
    expect(stopped).toMatchObject({
      code: 1,
      json: { complete: false, stopped: 'rejected', created: 100, rejected: 150 },
    })
    expect(stopped.stderr).toContain('more rows are rejected than --max-rejected allows; run the same command again')
    expect(await readCheckpoint(`${file}.results.csv`)).toMatchObject({
      next_chunk: 5,
      counts: { CREATED: 100, REJECTED: 150 },
      reasons: { REJECTED: { row_fields: 150 } },
    })
    expect((await tokens()) - before).toBe(100)

    const mended = await put('wider.csv', rows(2, 0, 500))
    const refused = await migrate([mended, ...from('mmyy')])
    expect(refused).toMatchObject({ code: 64, stderr: expect.stringContaining('belongs to another batch') })
    const own = ['--results', at('mended.csv'), '--manifest', at('mended.json')]
    const rest = await migrate([mended, ...from('mmyy'), ...own])
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { unchanged: 100, created: 400 } })
    expect((await tokens()) - before).toBe(500)
  })

  it('in its encoding: a lost byte of UTF-16 makes one endless row, and nothing is sent', async () => {
    const lines = [HEADER, ...rows(3, 0, 50), 'c_x,'.padEnd(9_000_000, 'x')]
    const bytes = Buffer.from(`${lines.join('\n')}\n`, 'utf16le')
    const file = at('shifted.csv')
    await writeFile(file, Buffer.concat([bytes.subarray(0, 1_001), bytes.subarray(1_002)]))
    const done = await migrate([file, ...from('utf16')])
    expect(done).toMatchObject({ code: 1, json: undefined })
    expect(done.stderr).toMatch(/Line \d+: the row is longer than 16 MiB/)
    expect(await readCheckpoint(`${file}.results.csv`)).toBeUndefined()
  })

  const nested = (lines: readonly string[]) =>
    lines.map(line => {
      const [id, number, valid] = line.split(',')
      return JSON.stringify({ id, number, valid })
    })
  const document = (elements: readonly string[]) => [`{"cards":[${elements.join(',\n')}]}`]

  it('by an element that is too large: that one is rejected', async () => {
    const large = JSON.stringify({ id: 'c_large', number: testPan(7), valid: '1230', note: 'x'.repeat(1_100_000) })
    const file = at('large.json')
    await writeFile(file, document([...nested(rows(4, 0, 30)), large, ...nested(rows(4, 30, 30))]).join(''))
    const done = await migrate([file, ...from('nested')])
    expect(done, done.stderr).toMatchObject({ code: 3, json: { created: 60, rejected: 1 } })
    expect(done.json.reasons).toEqual({ REJECTED: { element_too_large: 1 } })
  })

  it('by JSON that is broken in its midst: nothing of a file is sent, and the line of the break is named', async () => {
    const elements = nested(rows(5, 0, 60))
    elements[30] = elements[30]?.slice(0, -1) ?? ''
    const file = at('broken.json')
    await writeFile(file, document(elements).join(''))
    const done = await migrate([file, ...from('nested')])
    expect(done).toMatchObject({ code: 1, json: undefined })
    expect(done.stderr).toContain('its last element begins in line 31')
  })

  it('by JSON that is broken in the midst of standard input: what came before stands, and the rest goes on', async () => {
    const before = await tokens()
    const elements = nested(rows(6, 0, 60))
    const broken = [...elements.slice(0, 35), '}', ...elements.slice(35)]
    const stopped = await piped('pipe-json', 'nested', document(broken))
    expect(stopped).toMatchObject({ code: 1, json: { complete: false, stopped: 'input', rows: 30, created: 30 } })
    expect(stopped.stderr).toMatch(/Line 36: .*not JSON.* The 30 rows that were answered before stand/)
    expect(await readCheckpoint(at('pipe-json.csv'))).toMatchObject({ next_chunk: 2, counts: { CREATED: 20 } })
    expect((await outcomesIn(at('pipe-json.csv')))['CREATED']).toHaveLength(30)

    const other = nested(rows(6, 500, 60))
    expect(await piped('pipe-json', 'nested', document(other))).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('Another file was sent under this batch id'),
    })
    const rest = await piped('pipe-json', 'nested', document(elements))
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { complete: true, rows: 60, created: 60 } })
    expect((await tokens()) - before).toBe(60)
  })

  it('by a trailer that counts other rows: standard input stops at its end and goes on once the trailer is right', async () => {
    const before = await tokens()
    const cards = rows(7, 0, 25)
    const stopped = await piped('pipe-count', 'counted', [HEADER, ...cards, 'END,26'])
    expect(stopped).toMatchObject({ code: 1, json: { complete: false, stopped: 'input', created: 20 } })
    expect(stopped.stderr).toContain('Line 27 states 26 rows, and the file has 25')
    const short = await piped('pipe-count', 'counted', [HEADER, ...cards.slice(0, 10), 'END,10'])
    expect(short).toMatchObject({ code: 1, stderr: expect.stringContaining('ends before the rows') })
    const rest = await piped('pipe-count', 'counted', [HEADER, ...cards, 'END,25'])
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { complete: true, rows: 25, created: 25 } })
    expect((await tokens()) - before).toBe(25)
  })

  it('by a trailer that counts other rows: nothing of a file is sent', async () => {
    const file = await put('counted.csv', [...rows(8, 0, 5), 'END,6'])
    const done = await migrate([file, ...from('counted')])
    expect(done).toMatchObject({ code: 1, json: undefined })
    expect(done.stderr).toContain('Line 7 states 6 rows, and the file has 5')
  })

  it('ends the batch of standard input whose last rows are all skipped', async () => {
    const skipped = Array.from({ length: 1_200 }, (_, index) => `n_${index},,`)
    const done = await piped('pipe-tail', 'cardless', [HEADER, ...rows(9, 0, 15), ...skipped])
    expect(done, done.stderr).toMatchObject({ code: 0, json: { complete: true, created: 15, skipped: 1_200 } })
    const finished = async () => {
      const found = await batch('pipe-tail')
      return found && stateOf(found, Date.now()) === 'FINISHED' && found
    }
    expect(await until(finished, { what: 'the end of the batch' })).toMatchObject({
      chunksDone: 2,
      rowsDone: 15,
    })
  })
})
