// Provider's files through queue, workers, store and results queue: read by a profile, several files one after the
// other, with rows that are never sent.
import { readFile, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { stateOf } from '../../../src/store/batch/batch-state.ts'
import * as batches from '../../../src/store/batch/batches.ts'
import { runCommand } from '../../support/command.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'

/** Semicolons, Latin-1, MMYYYY, numbers with blanks, customers without a card: what a provider may send. */
const PROFILE = {
  profile: 1,
  name: 'wine-club',
  title: 'The export of a wine club',
  format: { type: 'delimited', encoding: 'iso-8859-1', delimiter: ';', header: 'any_case' },
  no_card: 'skip',
  where: [{ field: 'kind', is: ['card'] }],
  columns: {
    reference: '{card id}',
    card_number: { from: 'number', remove: ' ' },
    expiry: { from: 'valid', form: 'MMYYYY' },
    cardholder_name: { from: ['first', 'last'], too_long: 'cut' },
  },
}

describeOnRedis('a file of a provider', engine => {
  let installation: Installation
  let profile: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers({ roles: ['bulk'] })
    profile = join(installation.dataDir, 'wine-club.json')
    await writeFile(profile, JSON.stringify(PROFILE))
  })
  afterAll(() => installation?.close())

  const tokenmill = (args: string[]) => runCommand(args, { env: installation.env })
  const migrate = async (args: string[]) => {
    const end = await tokenmill(['migrate', ...args, '--client', installation.clientFile, '--json'])
    return { ...end, json: end.stdout === '' ? undefined : JSON.parse(end.stdout) }
  }
  const spaced = (pan: string) => pan.replace(/(....)(?=.)/g, '$1 ')
  const rowOf = (n: number) => `Zoë;Müller-${'x'.repeat(n % 2 === 0 ? 0 : 30)};${spaced(testPan(n))};122030;card;c_${n}`
  const put = async (name: string, rows: readonly string[]) => {
    const file = join(installation.dataDir, name)
    await writeFile(file, Buffer.from(['FIRST;LAST;NUMBER;VALID;KIND;CARD ID', ...rows, ''].join('\r\n'), 'latin1'))
    return file
  }
  const resultsOf = async (file: string) => {
    const [header = '', ...lines] = (await readFile(`${file}.results.csv`, 'utf8')).trim().split('\n')
    const names = header.split(',')
    return lines.map(line => Object.fromEntries(line.split(',').map((cell, index) => [names[index], cell])))
  }
  const finished = (id: string) =>
    until(
      async () => {
        const batch = await batches.find(installation.vault.store, installation.credentials.signingKey.clientId, id)
        return batch && stateOf(batch, Date.now()) === 'FINISHED' && batch
      },
      { what: `${id} FINISHED` },
    )

  it('is read as it is: each row ends as it must, and what was repaired or left out is on record', async () => {
    const file = await put('club.csv', [
      rowOf(1),
      rowOf(2),
      'Ann;Only;;;card;',
      `Ben;Bank;${spaced(testPan(3))};122030;bank_account;b_1`,
      `Cy;Bad;${spaced(testPan(4))};132030;card;c_4`,
      'Di;Luhn;4111 1111 1111 1112;122030;card;c_5',
    ])
    const done = await migrate([file, '--from', profile])
    expect(done, done.stderr).toMatchObject({
      code: 3,
      json: {
        rows: 6,
        created: 2,
        rejected: 2,
        skipped: 2,
        complete: true,
        repairs: { encoding: 2, name_cut: 1, number_separators: 3 },
      },
    })
    expect(done.json.reasons).toEqual({
      REJECTED: { expiry_format: 1, pan_luhn: 1 },
      SKIPPED: { no_card: 1, filtered: 1 },
    })
    expect(done.stderr).toContain(`line 2: card ending ${testPan(1).slice(-4)}, expires 12/2030, reference c_1`)
    expect(await resultsOf(file)).toMatchObject([
      { line: '2', reference: 'c_1', outcome: 'CREATED', item: '', repairs: 'encoding name_cut number_separators' },
      { line: '3', reference: 'c_2', outcome: 'CREATED', repairs: 'encoding number_separators' },
      { line: '4', outcome: 'SKIPPED', code: '', reason: 'no_card' },
      { line: '5', outcome: 'SKIPPED', code: '', reason: 'filtered' },
      { line: '6', reference: 'c_4', outcome: 'REJECTED', reason: 'expiry_format' },
      { line: '7', reference: 'c_5', outcome: 'REJECTED', reason: 'pan_luhn' },
    ])
    // The vault knows the rows that were sent.
    expect(await finished(done.json.batch_id)).toMatchObject({ rowsDone: 4, extent: { chunks: 1, rows: 4 } })
    const verified = await tokenmill([
      'manifest',
      'verify',
      `${file}.manifest.json`,
      '--client',
      installation.clientFile,
    ])
    expect(verified, verified.stderr).toMatchObject({ code: 0 })
    const manifest = JSON.parse(await readFile(`${file}.manifest.json`, 'utf8'))
    expect(manifest).toMatchObject({ v: 1, rows: 6, counts: { SKIPPED: 2 }, options: { profile: 'wine-club' } })
  })

  it('goes on where it stopped, skipped rows included, and sends no chunk of nothing else', async () => {
    const customers = Array.from({ length: 230 }, (_, index) => `Nobody;N${index};;;card;`)
    const file = await put('long.csv', [rowOf(11), ...customers, rowOf(12), rowOf(13), ...customers.slice(0, 5)])
    const options = [file, '--from', profile, '--chunk', '2']
    const stopped = await migrate([...options, '--limit', '2'])
    expect(stopped, stopped.stderr).toMatchObject({ code: 0, json: { complete: false, stopped: 'limit', created: 1 } })
    const done = await migrate(options)
    expect(done, done.stderr).toMatchObject({ code: 0, json: { rows: 238, created: 3, skipped: 235, complete: true } })
    expect((await resultsOf(file)).map(({ line }) => Number(line))).toEqual(
      Array.from({ length: 238 }, (_, n) => n + 2),
    )
    expect(await finished(done.json.batch_id)).toMatchObject({ rowsDone: 3, extent: { chunks: 2, rows: 3 } })
  })

  it('is migrated in waves by lists of references', async () => {
    const file = await put('waves.csv', [21, 22, 23].map(rowOf))
    const list = join(installation.dataDir, 'wave-1.txt')
    await writeFile(list, 'reference\nc_22\n')
    const options = [file, '--from', profile]
    const first = await migrate([...options, '--only', list])
    expect(first, first.stderr).toMatchObject({ code: 0, json: { created: 1, skipped: 2 } })
    expect(first.json.reasons).toEqual({ SKIPPED: { not_listed: 2 } })
    await rename(`${file}.results.csv`, `${file}.first.csv`)
    const rest = await migrate([...options, '--manifest', `${file}.rest.json`])
    expect(rest, rest.stderr).toMatchObject({ code: 0, json: { created: 2, unchanged: 1, skipped: 0 } })
    expect(rest.json.batch_id).not.toBe(first.json.batch_id)
  })

  it('is one document of nested JSON: cards of one line are told apart, and a shared card is one token', async () => {
    const card = (id: string, n: number) => ({ id, number: testPan(n), exp_month: 12, exp_year: 2030, name: 'Zoë M' })
    const customers = [
      { id: 'cus_1', default_source: 'card_1', cards: [card('card_1', 51), card('card_2', 52)] },
      { id: 'cus_2', default_source: null, cards: [] },
      { id: 'cus_3', default_source: 'card_3', cards: [card('card_3', 51)] },
    ]
    const file = join(installation.dataDir, 'customers.json')
    await writeFile(file, JSON.stringify({ customers }))
    const done = await migrate([file, '--from', 'stripe-json', '--chunk', '1', '--in-flight', '8'])
    expect(done, done.stderr).toMatchObject({ code: 0, json: { created: 2, skipped: 1, complete: true } })
    const results = await resultsOf(file)
    expect(results).toMatchObject([
      { line: '1', item: '1.1', reference: 'card_1' },
      { line: '1', item: '1.2', reference: 'card_2', outcome: 'CREATED' },
      { line: '1', item: '2', outcome: 'SKIPPED', reason: 'no_card' },
      { line: '1', item: '3.1', reference: 'card_3' },
    ])
    const [first, , , third] = results
    expect([first?.['outcome'], third?.['outcome']].sort()).toEqual(['CREATED', 'DUPLICATE'])
    expect(first?.['reuse_token']).toBe(third?.['reuse_token'])
  })

  const customersFile = async (name: string, numbers: Record<string, number>) => {
    const cards = (ids: readonly string[]) =>
      ids.flatMap(id => {
        const n = numbers[id]
        return n === undefined ? [] : [{ id, number: testPan(n), exp_month: 12, exp_year: 2030, name: 'Zoë M' }]
      })
    const customers = [
      { id: 'cus_1', default_source: 'card_1', cards: cards(['card_1', 'card_2']) },
      { id: 'cus_2', default_source: null, cards: cards(['card_3']) },
    ]
    const file = join(installation.dataDir, name)
    await writeFile(file, JSON.stringify({ customers }))
    return file
  }

  it('says whose cards they are: two customers share a token, and a changed number moves its owner', async () => {
    const options = ['--from', 'stripe-json', '--provider-account', 'acct_1']
    const first = await customersFile('first.json', { card_1: 61, card_2: 62, card_3: 61 })
    const done = await migrate([first, ...options])
    expect(done, done.stderr).toMatchObject({ code: 0, json: { created: 2, duplicate: 1, references: { ADDED: 3 } } })
    const [one, two, three] = await resultsOf(first)
    expect([one, two, three].map(row => [row?.['reference_outcome'], row?.['previous_token']])).toEqual(
      Array(3).fill(['ADDED', '']),
    )
    expect(one?.['reuse_token']).toBe(three?.['reuse_token'])

    const second = await customersFile('second.json', { card_1: 61, card_2: 63, card_3: 61 })
    const moved = await migrate([second, ...options])
    expect(moved, moved.stderr).toMatchObject({ code: 0, json: { references: { UNCHANGED: 2, MOVED: 1 } } })
    const [, row] = await resultsOf(second)
    expect(row).toMatchObject({
      reference: 'card_2',
      outcome: 'CREATED',
      reference_outcome: 'MOVED',
      previous_token: two?.['reuse_token'],
    })
    expect(row?.['reuse_token']).not.toBe(two?.['reuse_token'])
    const manifest = JSON.parse(await readFile(`${second}.manifest.json`, 'utf8'))
    expect(manifest).toMatchObject({
      references: { UNCHANGED: 2, MOVED: 1 },
      on_file: {},
      options: { provider_account: 'acct_1' },
    })

    // The same ids at another account are other owners.
    const elsewhere = await customersFile('elsewhere.json', { card_1: 61 })
    const added = await migrate([elsewhere, '--from', 'stripe-json', '--provider-account', 'acct_2'])
    expect(added, added.stderr).toMatchObject({ code: 0, json: { unchanged: 1, references: { ADDED: 1 } } })
  })

  it('keeps a token for an owner whose number changed, or drops the one that nobody owns, where it is asked to', async () => {
    const options = ['--from', 'stripe-json', '--provider-account', 'acct_3']
    const before = await customersFile('before.json', { card_1: 71, card_2: 72 })
    await migrate([before, ...options])
    const [kept, dropped] = await resultsOf(before)
    const relinked = await migrate([await customersFile('relink.json', { card_1: 73 }), ...options, '--relink'])
    expect(relinked, relinked.stderr).toMatchObject({ code: 0 })
    const [row] = await resultsOf(join(installation.dataDir, 'relink.json'))
    expect(row).toMatchObject({ reuse_token: kept?.['reuse_token'] })
    const orphaned = await customersFile('orphan.json', { card_2: 74 })
    const gone = await migrate([orphaned, ...options, '--on-orphan', 'delete'])
    expect(gone, gone.stderr).toMatchObject({ code: 0, json: { references: { MOVED: 1 } } })
    const replay = await migrate([before, ...options])
    expect(replay, replay.stderr).toMatchObject({ json: { variant: 'replay' } })
    const replayed = (await readFile(`${before}.replay.results.csv`, 'utf8')).split('\n')
    expect(replayed[0]).toContain(',item,repairs,reference_outcome,previous_token,token_status')
    expect(replayed[2]).toMatch(new RegExp(`,card_2,CREATED,200,${dropped?.['reuse_token']},.*,1\\.2,,ADDED,,DELETED$`))
  })

  it('that names owners is not sent with options that its profile has no use for', async () => {
    const file = await put('no-owners.csv', [rowOf(81)])
    for (const [option, why] of [
      [['--provider-account', 'a'], 'needs a profile with on_file'],
      [['--on-orphan', 'keep'], 'needs a profile that says whose cards the rows are'],
      [['--relink'], 'needs a profile that says whose cards the rows are'],
    ] as const) {
      const end = await migrate([file, '--from', profile, ...option])
      expect(end).toMatchObject({ code: 64 })
      expect(end.stderr).toContain(why)
    }
  })

  it('is refused where a second option says how it is read, or a column is missing', async () => {
    const file = await put('refused.csv', [rowOf(31)])
    for (const beside of [['--format', 'csv'], ['--ignore-unknown']]) {
      const end = await migrate([file, '--from', profile, ...beside])
      expect(end).toMatchObject({ code: 64 })
      expect(end.stderr).toContain(`--from and ${beside[0]} say both how the file is read`)
    }
    expect(await migrate([file, '--from', 'nobody'])).toMatchObject({ code: 64 })
    const other = join(installation.dataDir, 'other.csv')
    await writeFile(other, 'FIRST;LAST;KIND\r\nA;B;card\r\n')
    const missing = await migrate([other, '--from', profile])
    expect(missing).toMatchObject({ code: 64 })
    for (const column of ['number', 'valid', 'card id']) expect(missing.stderr).toContain(column)
  })

  it('shows what a profile makes of it, and what is in it, before anything is sent', async () => {
    const file = await put('look.csv', [rowOf(41), rowOf(41), rowOf(43), 'Ann;Only;;;card;'])
    const checked = await tokenmill(['profile', 'check', profile, file])
    expect(checked, checked.stderr).toMatchObject({ code: 0 })
    expect(checked.stdout).toContain('line 2: card ending')
    expect(checked.stdout).toContain('line 5: skipped (no_card)')
    const inspected = await tokenmill(['inspect', file, '--from', profile, '--json'])
    expect(inspected, inspected.stderr).toMatchObject({ code: 0 })
    expect(JSON.parse(inspected.stdout)).toMatchObject({
      form: { type: 'delimited', encoding: 'iso-8859-1', delimiter: ';' },
      cards: {
        rows: 4,
        cards: 3,
        distinctCards: 2,
        references: { rows: 3, repeated: 1 },
        sharing: 0,
        brands: { VISA: 3 },
        expiryYears: { 2030: 3 },
        skipped: { no_card: 1 },
      },
    })
    for (const text of [checked.stdout, inspected.stdout]) expect(text.replace(/\D/g, '')).not.toContain(testPan(41))
    const draft = join(installation.dataDir, 'draft.json')
    const drafted = await tokenmill(['inspect', file, '--profile', draft])
    expect(drafted, drafted.stderr).toMatchObject({ code: 0 })
    expect(drafted.stdout).toMatch(/"NUMBER" +card_number +100 %/)
    expect(JSON.parse(await readFile(draft, 'utf8'))).toMatchObject({
      format: { encoding: 'iso-8859-1', delimiter: ';' },
      columns: { reference: '{CARD ID}', expiry: { from: 'VALID', form: 'MMYYYY' } },
    })
    const migrated = await migrate([file, '--from', draft, '--dry-run'])
    expect(migrated, migrated.stderr).toMatchObject({ code: 3, json: { created: 2, duplicate: 1, rejected: 1 } })
  })
})
