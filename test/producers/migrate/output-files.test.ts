// The files that a run writes beside its results: the rejected rows, and the file that goes back to the provider.
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readCheckpoint } from '../../../producers/migrate/checkpoint.ts'
import type { MigrateOptions } from '../../../producers/migrate/options.ts'
import { outputForms, textsOf } from '../../../producers/migrate/output-files.ts'
import { cardDetector } from '../../../producers/rows/pan-lookalikes.ts'
import { BUILT_IN } from '../../../producers/rows/profile/built-in.ts'
import { parseProfile } from '../../../producers/rows/profile/profile.ts'
import { type Row, rejectRow } from '../../../producers/rows/record.ts'
import { runCommand } from '../../support/command.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { rejected } from '../rows/outcome/ended-rows.ts'
import { SAMPLES } from '../rows/profile/samples.ts'

/** A profile for a file with a dropped column, a security code under another name, and free text. */
const PROFILE = {
  profile: 1,
  name: 'club',
  title: 'The export of a club',
  format: { type: 'delimited', delimiter: ';' },
  no_card: 'skip',
  where: [{ field: 'kind', is: ['card'] }],
  columns: {
    reference: '{card}',
    card_number: { from: 'number', remove: ' ' },
    expiry: { from: 'valid', form: 'MM/YY' },
    cardholder_name: { from: ['holder'] },
  },
  drop: ['pin'],
  return: {
    columns: [
      { name: 'STATUS', value: 'outcome', words: wordsOf('done', 'not done') },
      { name: 'OLD', value: 'reference' },
      { name: 'NEW', value: 'reuse_token' },
      { name: 'CUSTOMER', from: 'customer' },
      { name: 'UNTIL', value: 'expiry', form: 'YYYY-MM' },
    ],
    delimiter: ';',
  },
}
const OPTIONS: MigrateOptions = {
  file: 'cards.csv',
  ignoreUnknown: false,
  echo: [],
  dryRun: false,
  again: false,
  scope: 's',
  onConflict: 'update',
  onExpired: 'import',
  chunk: 500,
  inFlight: 16,
  recordKind: 'token-create',
}
const HEADER = 'customer;card;number;valid;holder;cvv;pin;kind'

function wordsOf(good: string, bad: string): Record<string, string> {
  const took = ['CREATED', 'UPDATED', 'UNCHANGED', 'DUPLICATE'].map(outcome => [outcome, good])
  return Object.fromEntries([...took, ...['REJECTED', 'FAILED', 'CANCELLED', 'SKIPPED'].map(name => [name, bad])])
}

/**
 * The expected files that go back, by profile. {T1} and {A1} stand for the reuse token and the analytics token of the
 * first row.
 */
const SHAPES: Record<string, readonly string[]> = {
  'stripe-csv': [
    'customer_id_old,source_id_old,customer_id_new,source_id_new',
    'cus_1,card_1,cus_1,{T1}',
    'cus_1,card_2,cus_1,{T2}',
  ],
  'stripe-json': [
    'customer_id_old,source_id_old,customer_id_new,source_id_new',
    'cus_1,card_1,cus_1,{T1}',
    'cus_1,card_2,cus_1,{T2}',
  ],
  square: [
    'external_card_id,square_card_id,card_brand,card_last_4,card_exp_month,card_exp_year,square_card_fingerprint,external_customer_id,square_customer_id',
    'ccof:1,{T1},VISA,1111,5,2030,,C1,',
  ],
  'adyen-import': [
    'status,paymentMethodVariant,shopperReference,recurringDetailReference,alias,expiryMonth,expiryYear,bin,cardSummary,issuerCountryCode,echodata,statusMessage,fundingSource',
    'Success,visa,shopper-1,{T1},,5,2030,41111111,1111,,e1,,',
    'Error,,shopper-2,,,,,,,,e2,no_card,',
  ],
  'mercado-pago': ['STATUS,CUSTOMER_ID,CARD_ID,REFERENCE_ID,STATUS_DETAIL', 'OK,,{T1},ref-1,', 'OK,,{T2},ref-2,'],
  vgs: [
    'original_token,card_id,card_fingerprint,pan_alias,expiry_year,expiry_month,token_type,job_trace_id,file_name,error',
    'tok_1,{T1},{A1},{T1},2030,05,,,,',
    'tok_2,,,,,,,,,expiry_format',
  ],
}

describeStore('a run', engine => {
  let installation: Installation
  let profile: string
  const at = (name: string) => join(installation.dataDir, name)
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    profile = at('club.json')
    await writeFile(profile, JSON.stringify(PROFILE))
  })
  afterAll(() => installation?.close())

  const migrate = async (args: string[], clientFile = installation.clientFile) => {
    const words = ['migrate', ...args, '--client', clientFile, '--json']
    const { code, stdout, stderr } = await runCommand(words, { env: installation.env })
    return { code, stderr, json: stdout === '' ? {} : JSON.parse(stdout) }
  }
  const put = async (name: string, rows: readonly string[]) => {
    await writeFile(at(name), [HEADER, ...rows, ''].join('\n'))
    return at(name)
  }
  const verify = (file: string) =>
    runCommand(['manifest', 'verify', `${file}.manifest.json`, '--client', installation.clientFile, '--json'], {
      env: installation.env,
    })
  const good = (n: number) => `cus_${n};c_${n};${testPan(n)};12/30;ADA;987;4321;card`
  /** Every tenth row is rejected. */
  const many = (from: number, rows: number) =>
    Array.from({ length: rows }, (_, n) =>
      n % 10 === 3 ? `cus_${n};c_${from + n};${testPan(from + n)};13/30;ADA;987;4321;card` : good(from + n),
    )
  const beside = (name: string) => [
    '--from',
    profile,
    '--rejects',
    at(`${name}.rejects`),
    '--return',
    at(`${name}.back`),
  ]
  const read = (path: string) => readFile(path, 'utf8')

  it.each(Object.entries(SHAPES))('goes back in the shape of %s, whose rows all end as known', async (name, rows) => {
    const example = Object.hasOwn(BUILT_IN, name) ? name : join('docs/profiles', `${name}.json`)
    const file = at(`${name}.data`)
    await writeFile(file, SAMPLES[name]?.file ?? '')
    const { clientFile } = await installation.addClient(name)
    const done = await migrate([file, '--from', example, '--return', `${file}.back`], clientFile)
    expect(done, done.stderr).toMatchObject({ json: { complete: true, return: `${file}.back` } })
    const [, ...results] = (await read(`${file}.results.csv`)).trim().split('\n')
    const tokens = results.map(line => line.split(',').slice(4, 6))
    const written = rows.map(row =>
      row.replace(/\{([TA])(\d)\}/g, (_, kind, n) => tokens[n - 1]?.[kind === 'T' ? 0 : 1] ?? ''),
    )
    expect(await read(`${file}.back`)).toBe(`${written.join('\n')}\n`)
    expect(tokens[0]?.[0]).toMatch(/^t/)
  })

  it('tells by its place in the results the number by which the vault knows a row of nested JSON', async () => {
    const { batch_id: batch } = JSON.parse(await read(at('stripe-json.data.manifest.json')))
    const rows = (await read(at('stripe-json.data.results.csv'))).trim().split('\n')
    const place = rows.findIndex(row => row.includes(',card_3,'))
    expect(place).toBe(4)
    const { stdout, stderr } = await runCommand(['explain', batch, `${place}`, '--json'], { env: installation.env })
    expect(JSON.parse(stdout || '{}'), stderr).toMatchObject({ record: { reference: 'card_3', outcome: 'REJECTED' } })
  })

  it('says of each rejected row why, with its own columns and without card data', async () => {
    const rows = [
      good(1),
      'cus_2;c_2;4111 1111 1111 1112;12/30;GRACE;123;4321;card',
      `=cus_3;c_3;${testPan(3)};1330;ADA;987;4321;card`,
      `${testPan(4)};c_4;${testPan(4)};13/30;ADA;987;4321;card`,
      'cus_5;c_5',
      `cus_6;${testPan(6)};${testPan(6)};12/30;ADA;987;4321;card`,
      'cus_7;c_7;;;ADA;;;card',
    ]
    const file = await put('some.csv', rows)
    const done = await migrate([file, ...beside('some')])
    expect(done, done.stderr).toMatchObject({ code: 3, json: { created: 1, rejected: 5, skipped: 1 } })
    const rejects = await read(at('some.rejects'))
    expect(rejects.trim().split('\n')).toEqual([
      'line,item,outcome,reason,field,reference,bin,last_four,card,kind',
      expect.stringMatching(/^3,,REJECTED,pan_luhn,[^,]*,c_2,411111,1112,c_2,card$/),
      `4,,REJECTED,expiry_format,,c_3,411111,${testPan(3).slice(-4)},c_3,card`,
      `5,,REJECTED,expiry_format,,c_4,411111,${testPan(4).slice(-4)},c_4,card`,
      '6,,REJECTED,row_fields,,,,,,',
      expect.stringMatching(/^7,,REJECTED,reference_pan,[^,]*,,411111,\d{4},\*{16},card$/),
    ])
    const back = await read(at('some.back'))
    expect(back.split('\n').map(line => line.replace(/t0\w+/, 'T'))).toEqual([
      'STATUS;OLD;NEW;CUSTOMER;UNTIL',
      'done;c_1;T;cus_1;2030-12',
      ...['not done;c_2;;cus_2;', 'not done;c_3;;=cus_3;', 'not done;c_4;;;', 'not done;;;;', 'not done;;;cus_6;'],
      ...['not done;c_7;;cus_7;', ''],
    ])
    for (const text of [rejects, back]) {
      // A token's id may hold these digits by chance.
      expect(text.replace(/t0\w+/g, 'T')).not.toMatch(/987|4321|123\b|ADA|GRACE/)
      for (const n of [1, 3, 4, 6]) expect(text.replace(/\D/g, '')).not.toContain(testPan(n))
    }
    const verified = await verify(file)
    expect(JSON.parse(verified.stdout).checks).toMatchObject({ rejects_digest: 'holds', return_digest: 'holds' })
    await writeFile(at('some.back'), `${back}x`)
    const changed = await verify(file)
    expect(changed).toMatchObject({ code: 1 })
    expect(JSON.parse(changed.stdout).checks).toMatchObject({ rejects_digest: 'holds', return_digest: 'fails' })
  })

  it('repeats of a file without a profile the columns that it reads, by their names there', async () => {
    const file = at('plain.csv')
    const map = at('map.json')
    await writeFile(map, '{"Brand":"card_brand","Remark":null,"City":null}')
    const rows = [`r1,${testPan(11)},12/30,JCB,,Köln`, `r2,${testPan(12)},12/30,VISA,${testPan(12)},@Rom`]
    await writeFile(file, ['reference,card_number,expiry,Brand,Remark,City', ...rows, ''].join('\n'))
    const done = await migrate([file, '--map', map, '--echo', 'City', '--rejects', at('plain.rejects')])
    expect(done, done.stderr).toMatchObject({ code: 3, json: { created: 1, rejected: 1 } })
    expect((await read(at('plain.rejects'))).split('\n')).toEqual([
      'line,outcome,reason,field,reference,bin,last_four,Brand,public_key_alias,token_type,token_expiry_date,City',
      expect.stringMatching(/^2,REJECTED,brand_conflict,[^,]*,r1,411111,\d{4},JCB,,,,Köln$/),
      '',
    ])
  })

  it('killed in the midst goes on, and its files end as if it had never stopped', async () => {
    const file = await put('killed.csv', many(1_000, 6_000))
    const options = ['migrate', file, ...beside('killed'), '--client', installation.clientFile, '--chunk', '50']
    const child = startCommand(options, { env: installation.env as Record<string, string> })
    const chunks = async () => (await readCheckpoint(`${file}.results.csv`).catch(() => undefined))?.next_chunk ?? 0
    await until(async () => (await chunks()) >= 20, { what: 'some chunks' })
    await child.kill9()
    expect(await chunks()).toBeLessThan(120)
    const done = await migrate([file, ...beside('killed'), '--chunk', '50'])
    expect(done, done.stderr).toMatchObject({ code: 3, json: { variant: 'run', created: 5_400, rejected: 600 } })
    expect(await verify(file)).toMatchObject({ code: 0 })
    const again = await migrate([file, ...beside('killed')])
    expect(again, again.stderr).toMatchObject({ code: 3, json: { variant: 'replay' } })
    expect(again.json.rejects).toBe(`${at('killed.rejects')}.replay.csv`)
    expect(await read(at('killed.rejects'))).toBe(await read(again.json.rejects))
    expect(await read(at('killed.back'))).toBe(await read(again.json.return))
  })

  it('begins again at the first row for a file that is new in it, and leaves one alone that is no longer asked for', async () => {
    const file = await put('later.csv', many(20_000, 60))
    const first = ['--from', profile, '--return', at('later.back')]
    const chunk = ['--chunk', '10']
    const canary = await migrate([file, ...first, ...chunk, '--limit', '20'])
    expect(canary, canary.stderr).toMatchObject({ code: 3, json: { rows: 20, created: 18 } })
    const before = await read(at('later.back'))
    const later = ['--from', profile, '--rejects', at('later.rejects')]
    const second = await migrate([file, ...later, ...chunk, '--limit', '40'])
    expect(second, second.stderr).toMatchObject({ code: 3, json: { rows: 40, created: 36, rejected: 4 } })
    expect(second.stderr).toContain('--rejects is new in this run, which therefore begins again at the first row')
    const rest = await migrate([file, ...later])
    expect(rest, rest.stderr).toMatchObject({ code: 3, json: { rows: 60, created: 54, rejected: 6, complete: true } })
    expect(rest.stderr).not.toContain('is new in this run')
    expect((await read(`${file}.results.csv`)).trim().split('\n')).toHaveLength(61)
    expect((await read(at('later.rejects'))).trim().split('\n')).toHaveLength(7)
    expect(await read(at('later.back'))).toBe(before)
    const manifest = JSON.parse(await read(`${file}.manifest.json`))
    expect(manifest).toMatchObject({ rejects: { name: 'later.rejects' } })
    expect(manifest).not.toHaveProperty('return')
  })

  it('counts owners once where it begins again for a new file, and writes that file for a profile that names them', async () => {
    const named = at('owners.json')
    const onFile = {
      provider: 'club',
      customer_id: '{customer}',
      card_id: '{card}',
      cardholder_name: { from: ['holder'] },
    }
    await writeFile(named, JSON.stringify({ ...PROFILE, on_file: onFile }))
    const file = await put('owned.csv', many(40_000, 40))
    const first = ['--from', named, '--return', at('owned.back'), '--chunk', '10']
    const canary = await migrate([file, ...first, '--limit', '20'])
    expect(canary, canary.stderr).toMatchObject({ code: 3, json: { references: { ADDED: 18 } } })
    const rest = await migrate([file, ...first, '--rejects', at('owned.rejects')])
    expect(rest, rest.stderr).toMatchObject({ code: 3, json: { complete: true, references: { ADDED: 36 } } })
    expect(rest.stderr).toContain('begins again at the first row')
    expect(JSON.parse(await read(`${file}.manifest.json`))).toMatchObject({
      references: { ADDED: 36 },
      on_file: {},
      rejects: { name: 'owned.rejects' },
      return: { name: 'owned.back' },
    })
    expect((await read(at('owned.back'))).trim().split('\n')).toHaveLength(41)
    const [header, row] = (await read(at('owned.rejects'))).split('\n')
    expect(header).toBe('line,item,outcome,reason,field,reference,bin,last_four,card,kind,customer')
    expect(row).toMatch(/^5,,REJECTED,expiry_format,,c_40003,\d{6},\d{4},c_40003,card,cus_3$/)
    expect(await verify(file)).toMatchObject({ code: 0 })
  })

  it('writes them in a dry run, too, beside its results', async () => {
    const file = await put('dry.csv', many(30_000, 10))
    const done = await migrate([file, ...beside('dry'), '--dry-run'])
    expect(done, done.stderr).toMatchObject({
      code: 3,
      json: { rejected: 1, rejects: `${at('dry.rejects')}.dry-run.csv` },
    })
    expect((await read(done.json.rejects)).trim().split('\n')).toHaveLength(2)
    expect((await read(done.json.return)).split('\n')[1]).toBe('done;c_30000;;cus_30000;')
    await expect(read(at('dry.rejects'))).rejects.toThrow('ENOENT')
    const real = await migrate([file, ...beside('dry'), '--expect', `${file}.dry-run.manifest.json`])
    expect(real, real.stderr).toMatchObject({ code: 3, json: { as_expected: true } })
  })

  it('writes nothing beside the input where its options name other places, in a dry run and a replay neither', async () => {
    const folder = at('closed')
    const out = at('out')
    for (const path of [folder, out]) await mkdir(path)
    const file = join(folder, 'cards.csv')
    await writeFile(file, 'reference,card_number,expiry\na,4111111111111111,12/30\nb,1,12/30\n')
    const named = ['results', 'manifest', 'rejects'].flatMap(name => [`--${name}`, join(out, name)])
    const run = (...more: string[]) =>
      runCommand(['migrate', file, ...named, '--client', installation.clientFile, '--json', ...more], {
        env: installation.env,
      })
    for (const more of [['--dry-run'], ['--expect', join(out, 'manifest.dry-run.json')], []])
      expect(await run(...more)).toMatchObject({ code: 3 })
    expect(await readdir(folder)).toEqual(['cards.csv'])
    const variants = ['', '.dry-run', '.replay'].flatMap(variant =>
      variant === ''
        ? ['results', 'manifest', 'rejects', 'manifest.jws']
        : [`results${variant}.csv`, `rejects${variant}.csv`, `manifest${variant}.json`, `manifest${variant}.json.jws`],
    )
    expect((await readdir(out)).sort()).toEqual(variants.sort())
  })

  it('refuses a file that goes back without its shape, one that exists, and one name for two files', async () => {
    const file = await put('refused.csv', [good(50)])
    const refused = async (args: string[], text: string) => {
      const end = await migrate([file, ...args])
      expect(end).toMatchObject({ code: 64 })
      expect(end.stderr).toContain(text)
    }
    await refused(['--return', at('x')], '--return needs a profile that says the shape')
    await refused(['--from', 'braintree', '--return', at('x')], '--return needs a profile that says the shape')
    const { stdout } = await runCommand(['profile', 'list', '--json'], { env: installation.env })
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ name: 'braintree', return: false }))
    expect(JSON.parse(stdout)).toContainEqual(expect.objectContaining({ name: 'square', return: true }))
    await refused(
      ['--from', profile, '--rejects', at('x'), '--return', at('x')],
      '--rejects and --return name the same',
    )
    await refused(['--from', profile, '--rejects', file], 'FILE and --rejects name the same file')
    await writeFile(at('there.csv'), 'mine')
    await refused(['--from', profile, '--rejects', at('there.csv')], 'exists and does not belong to this batch')
    expect(await read(at('there.csv'))).toBe('mine')
    const other = at('other.csv')
    await writeFile(other, 'card;number;valid;holder;kind\nc_51;4111111111111111;12/30;ADA;card\n')
    const missing = await migrate([other, '--from', profile, '--return', at('y')])
    expect(missing).toMatchObject({ code: 64 })
    expect(missing.stderr).toContain('no column "customer" (return.columns.3.from)')
    expect(await migrate([other, '--from', profile])).toMatchObject({ code: 0 })
  })
})

it('takes the rows of a chunk in parts of 100, none of which shows a card of another part', () => {
  const by = parseProfile('club.json', JSON.stringify(PROFILE))
  const rows = Array.from({ length: 201 }, (_, n): Row => {
    const kept = ['c', 'card', n === 0 ? testPan(200) : `cus_${n}`]
    return { ...rejectRow(n + 2, 'pan_luhn', `r${n}`, undefined, testPan(n)), kept }
  })
  const ends = rows.map(({ line }) => ({ ...rejected, line }))
  for (const form of outputForms({ ...OPTIONS, profile: by, rejects: 'r', return: 'b' }, 'run')) {
    const texts = [...textsOf(form, ends, rows)]
    expect(texts.map(text => text.split('\n').length - 1)).toEqual([100, 100, 1])
    expect(texts.join('')).toBe(form.textOf(ends, rows, cardDetector(rows)))
    expect(texts[0]).not.toContain(testPan(200))
  }
})
