// Wrong files through the real `migrate` command: it names the line of each bad row, and the error of a file that can't
// be used, but never their content.
import { mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { runCommand } from '../support/command.ts'
import type { Engine } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { canary } from './canary.ts'

const HEADER = 'reference,card_number,expiry_month,expiry_year,cardholder_name'
const pan = (name: string) => canary(`file ${name}`).pan

describe('a file through the command', () => {
  let database: FreshDatabase
  let installation: Installation
  let inputs: string
  beforeAll(async () => {
    inputs = await mkdtemp(join(tmpdir(), 'tokenmill-inputs-'))
    database = await freshDatabase()
    const engine: Engine = { name: 'postgres', prefix: '{files}', redisUrls: undefined, databaseUrl: database.url }
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
    await rm(inputs, { recursive: true, force: true })
  })

  const migrate = async (name: string, content: string | Buffer, ...args: string[]) => {
    const file = join(inputs, name)
    await writeFile(file, content)
    const words = ['migrate', file, '--client', installation.clientFile, '--json', ...args]
    const { code, stdout, stderr } = await runCommand(words, { env: installation.env })
    const results = await readFile(`${file}.results.csv`, 'utf8').catch(() => '')
    const rows = results
      .trim()
      .split('\n')
      .slice(1)
      .map(row => row.split(','))
    return {
      code,
      stderr: stderr.trim(),
      json: stdout === '' ? undefined : JSON.parse(stdout),
      rows,
    }
  }

  it('with a BOM, CRLF, quotes and blank lines is read as it was meant', async () => {
    const rows = [HEADER, '', `"r,1",${pan('bom 1')},1,2031,"O""NEIL"`, '   '.trim(), `r2,${pan('bom 2')},01,31,`]
    const done = await migrate('bom.csv', Buffer.from(`\ufeff${rows.join('\r\n')}\r\n`))
    expect(done, done.stderr).toMatchObject({ code: 0, json: { rows: 2, created: 2 } })
    expect(done.rows.map(([line]) => line)).toEqual(['3', '5'])
  })

  it('tells each bad row by the line at which it starts, and goes on', async () => {
    const good = (name: string) => `${name},${pan(name)},12,2031,ANNA`
    const lines: (string | Buffer)[] = [
      HEADER,
      good('a'),
      `nul\u0000,${pan('nul')},12,2031,ANNA`,
      `few,${pan('few')},12`,
      `many,${pan('many')},12,2031,ANNA,ANNA`,
      Buffer.from(`utf8,${pan('utf8')},12,2031,\xff\xfe`, 'latin1'),
      `excel,${pan('excel')},Dec-31,,ANNA`,
      `float,${pan('float')},12.0,2031,ANNA`,
      `science,4.00007E+15,12,2031,ANNA`,
      `blank,,12,2031,ANNA`,
      `long,${pan('long')},12,2031,${'A'.repeat(31)}`,
      `huge,${pan('huge')},12,2031,${'A'.repeat(70_000)}`,
      `quote,${pan('quote')},12,2031,AN"NA`,
      `"two`,
      `lines",${pan('two lines')},12,2031,ANNA`,
      good('b'),
    ]
    const bytes = Buffer.concat(lines.flatMap(line => [Buffer.from(line as string), Buffer.from('\n')]))
    const done = await migrate('rows.csv', bytes)
    expect(done, done.stderr).toMatchObject({ code: 3, json: { rows: 14, failed: 0 } })
    const outcomes = Object.fromEntries(
      done.rows.filter(row => row.length > 5).map(row => [row[0], `${row[2]} ${row.at(-1)}`]),
    )
    expect(outcomes).toMatchObject({
      2: 'CREATED ',
      3: 'REJECTED row_nul',
      4: 'REJECTED row_fields',
      5: 'REJECTED row_fields',
      6: 'REJECTED row_utf8',
      7: 'REJECTED expiry_format',
      8: 'REJECTED expiry_format',
      9: 'REJECTED pan_format',
      10: expect.stringMatching(/^REJECTED /),
      11: 'REJECTED name_length',
      12: 'REJECTED row_too_long',
      13: 'REJECTED row_quotes',
      16: 'CREATED ',
    })
    expect(done.stderr).not.toContain('REJECTED')
  })

  it('with dates that a spreadsheet has spoilt rejects those rows alone', async () => {
    const rows = [
      'reference,card_number,expiry',
      ...['Dec-31', '2031-12-01', '46357', '12/2031', '31/12', '1/31'].map(
        (expiry, index) => `r${index},${pan(`date ${index}`)},${expiry}`,
      ),
    ]
    const done = await migrate('dates.csv', rows.join('\n'))
    expect(done, done.stderr).toMatchObject({ code: 3, json: { rows: 6, created: 2, rejected: 4 } })
    expect(done.rows.map(row => row.at(-1))).toEqual([
      'expiry_format',
      'expiry_format',
      'expiry_format',
      '',
      'expiry_format',
      '',
    ])
  })

  const UTF16 = Buffer.from(`\ufeff${HEADER}\nr1,${pan('utf16')},12,2031,A\n`, 'utf16le')
  it.each<[string, string, string | Buffer, number, RegExp]>([
    ['is in UTF-16', 'utf16.csv', UTF16, 1, /UTF-16|UTF-8|NUL/],
    ['holds no rows', 'none.csv', `${HEADER}\n`, 1, /holds no rows/],
    [
      'names a column twice',
      'twice.csv',
      `${HEADER},reference\n`,
      64,
      /^tokenmill: Line 1, column 6: "reference" stands in column 1 too/,
    ],
    [
      'has no header',
      'headless.csv',
      `r1,${pan('headless')},12,2031,A\n`,
      64,
      /^tokenmill: Line 1 holds data, not the names of columns/,
    ],
    ['is separated by semicolons', 'semicolon.csv', `${HEADER.replaceAll(',', ';')}\n`, 64, /commas/],
    [
      'has a million columns',
      'columns.csv',
      `${'a,'.repeat(1_000_000)}a\n`,
      1,
      /^tokenmill: Line 1: the header is longer than 64 KiB/,
    ],
    [
      'has quotes that never close',
      'open.csv',
      `"${HEADER}\nr1,${pan('open')},12,2031,A\n`,
      1,
      /^tokenmill: Line 1: the header/,
    ],
    [
      'does not tell its format',
      'cards.csv.constructor',
      `${HEADER}\nr1,${pan('format')},12,2031,A\n`,
      64,
      /does not tell its format/,
    ],
  ])('that %s stops the run in one line', async (_, name, content, status, says) => {
    const done = await migrate(name, content)
    expect(done.stderr).toMatch(says)
    expect(done).toMatchObject({ code: status, json: undefined })
    expect(done.stderr.split('\n')).toHaveLength(1)
    expect(done.stderr.replaceAll(inputs, '')).not.toMatch(/\d{7}/)
    // No file is left beside it that would disturb a later run.
    expect((await readdir(inputs)).filter(file => file.startsWith(`${basename(name)}.`))).toEqual([])
  })

  it('of which one row opens quotes that never close loses that row alone', async () => {
    const rows = [
      HEADER,
      `a,${pan('before')},12,2031,ANNA`,
      `b,${pan('open row')},12,2031,"ANNA`,
      `c,${pan('swallowed')},12,2031,BEN`,
    ]
    const done = await migrate('swallowed.csv', rows.join('\n'))
    expect(done, done.stderr).toMatchObject({ code: 3, json: { created: 2, rejected: 1 } })
    expect(done.rows[1]?.slice(0, 3)).toEqual(['3', '', 'REJECTED'])
    expect(done.rows[1]?.at(-1)).toBe('row_quotes')
  })
})
