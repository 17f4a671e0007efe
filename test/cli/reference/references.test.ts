// `tokenmill references`, and releases from a file: what is exported, and which cards are missing.
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import type { Client } from '../../../producers/client.ts'
import type { OwnerRequest } from '../../../src/job/on-file.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { cli as runCli, type Said } from '../command-bench.ts'

const ACME = { provider: 'acme', provider_account: 'acct-1' }

describeStore('references', engine => {
  let installation: Installation
  let client: Client
  let folder: string
  beforeAll(async () => {
    installation = await openInstallation(engine)
    await installation.openWorkers()
    client = await installation.connect()
    folder = await mkdtemp(join(tmpdir(), 'tokenmill-references-'))
  })
  afterAll(async () => {
    await installation?.close()
    await rm(folder, { recursive: true, force: true })
  })

  const cli = async (...words: string[]): Promise<Said> => {
    const said = await runCli(words, { env: installation.env })
    // A command sets the exit status of this process.
    const status = said.status || Number(process.exitCode ?? 0)
    process.exitCode = undefined
    return { ...said, status }
  }
  const write = async (name: string, lines: readonly string[]) => {
    const path = join(folder, name)
    await writeFile(path, `${lines.join('\n')}\n`)
    return path
  }
  let last = 0
  /** Makes a new token for one owner, or for none. */
  async function made(onFile?: OwnerRequest & Record<string, unknown>, scope = installation.scope): Promise<string> {
    last += 1
    const card = await client.encryptCard({ cardNumber: testPan(last), expiryMonth: 12, expiryYear: 2031 })
    const { record } = await client.call('token-create', {
      token_scope: scope,
      ...card,
      ...(onFile ? { on_file: onFile } : {}),
    })
    return String(record?.['reuse_token'])
  }
  const scopeOption = () => ['--scope', installation.scope]
  const csvOf = ({ stdout }: Said) => stdout.trimEnd().split('\n')

  it('export is oldest first, whole, and guarded in CSV only', async () => {
    const { scope } = await installation.addClient('exported')
    const b = await made({ ...ACME, customer_id: 'ben', card_id: '=2+2', is_default: true }, scope)
    const a = await made(
      { ...ACME, customer_id: 'anna', card_id: 'a,1', network_transaction_id: 'MCC1', transaction_link_id: 'x' },
      scope,
    )
    const ids = { network_transaction_id: '-CC1', transaction_link_id: '-fq8_Zn-01234567890abc' }
    const c = await made({ ...ACME, card_id: '-1', ...ids }, scope)
    const formulas = { network_transaction_id: '=1', transaction_link_id: '-1+1' }
    const d = await made({ ...ACME, card_id: '-d', ...formulas }, scope)
    await made({ ...ACME, card_id: 'elsewhere' })
    const said = await cli('references', 'export', '--scope', scope)
    expect(said.stdout).toBe(
      [
        'provider,provider_account,customer_id,card_id,reuse_token,network_transaction_id,transaction_link_id,is_default',
        `acme,acct-1,ben,'=2+2,${b},,,true`,
        `acme,acct-1,anna,"a,1",${a},MCC1,x,`,
        `acme,acct-1,,'-1,${c},-CC1,-fq8_Zn-01234567890abc,`,
        `acme,acct-1,,'-d,${d},'=1,'-1+1,`,
        '',
      ].join('\n'),
    )
    expect(said.stderr).toContain('4 references')
    expect(said.stdout + said.stderr).not.toMatch(/411111/)
    const out = join(folder, 'out.ndjson')
    const other = await cli('references', 'export', '--scope', scope, '--format', 'ndjson', '--out', out)
    expect(other).toMatchObject({ status: 0, stdout: '' })
    const lines = (await readFile(out, 'utf8'))
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as unknown)
    expect(lines).toEqual([
      { ...ACME, customer_id: 'ben', card_id: '=2+2', reuse_token: b, is_default: true },
      {
        ...ACME,
        customer_id: 'anna',
        card_id: 'a,1',
        reuse_token: a,
        network_transaction_id: 'MCC1',
        transaction_link_id: 'x',
      },
      { ...ACME, card_id: '-1', reuse_token: c, ...ids },
      { ...ACME, card_id: '-d', reuse_token: d, ...formulas },
    ])
    const { rows } = await installation.vault.store.query<{ subject: string }>({
      text: `select subject from tokenmill.audit where action = 'references.export'`,
    })
    expect(rows).toEqual([{ subject: scope }, { subject: scope }])
  })

  it('export names no reuse token of a token that is for analytics only', async () => {
    const { scope } = await installation.addClient('analytic')
    const card = await client.encryptCard({ cardNumber: testPan(900_100), expiryMonth: 12, expiryYear: 2031 })
    const asked = { token_scope: scope, token_type: 'ANALYTICS', ...card, on_file: { ...ACME, card_id: 'counted' } }
    expect(await client.call('token-create', asked)).toMatchObject({ code: 200 })
    const said = await cli('references', 'export', '--scope', scope)
    expect(csvOf(said).slice(1)).toEqual(['acme,acct-1,,counted,,,,'])
  })

  it('export of more than a page has each owner once, though pages of other scopes lie between', async () => {
    const { scope } = await installation.addClient('paged')
    const { scope: other } = await installation.addClient('between')
    const token = await made({ ...ACME, card_id: 'first' }, scope)
    const foreign = await made({ ...ACME, card_id: 'first' }, other)
    await installation.vault.store.query({
      text: `insert into tokenmill.source_reference (token_scope, provider, provider_account, customer_id, card_id, token_id,
  on_file, version, created_at, updated_at, last_receipt)
select token_scope, provider, provider_account, 'c' || n % 7, 'card-' || n, token_id, on_file, 1, now(), now(), last_receipt
from tokenmill.source_reference cross join generate_series(1, 12000) as n
where token_scope = case when n between 200 and 11800 then $2::uuid else $1::uuid end and card_id = 'first' order by n`,
      values: [scope, other],
    })
    const lines = csvOf(await cli('references', 'export', '--scope', scope)).slice(1)
    expect(lines).toHaveLength(400)
    expect(new Set(lines).size).toBe(400)
    expect(lines.every(line => line.includes(token) && !line.includes(foreign))).toBe(true)
  })

  it('export of a scope that is none says so', async () => {
    expect(await cli('references', 'export', '--scope', '11111111-2222-4333-8444-555555555555')).toMatchObject({
      status: 64,
      stdout: '',
    })
  })

  it('missing says of each card that has no token why', async () => {
    const owner = { ...ACME, customer_id: 'anna' }
    await made({ ...owner, card_id: 'has-one' })
    await made({ ...owner, card_id: 'was-released' })
    const release = { token_scope: installation.scope, ...owner, card_id: 'was-released', action: 'RELEASE' }
    await client.call('reference', release)
    const deleted = await made({ ...owner, card_id: 'was-deleted' })
    await client.call('token-lifecycle', { id: deleted, action: 'DELETE' })
    await made({ provider: 'acme', card_id: 'other-account' })
    const cards = await write('cards.csv', [
      'reference,card_number,expiry',
      'was-rejected,4111111111111112,12/31',
      `was-kept-by-nobody,${testPan(900_001)},12/31`,
      'was-released,4111111111111112,12/31',
    ])
    const run = await cli('migrate', cards, '--client', installation.clientFile, ...scopeOption())
    expect({ status: run.status, stderr: run.stderr }).toMatchObject({ status: 3 })
    const names = ['has-one', 'was-released', 'was-deleted', 'other-account', 'was-rejected', 'was-kept-by-nobody']
    const expected = await write('expected.txt', ['reference', ...names, 'never'])
    const options = [...scopeOption(), '--provider', 'acme', '--provider-account', 'acct-1']
    const said = await cli('references', 'missing', expected, ...options, '--json')
    expect(said.status).toBe(3)
    const at = expect.stringMatching(/^\d{4}-.*Z$/)
    const batch_id = expect.any(String)
    expect(said.json()).toEqual([
      // Its last row came after its release.
      { card_id: 'was-released', why: 'rejected', at, reason: 'pan_luhn', batch_id, line: 4 },
      { card_id: 'was-deleted', why: 'released', at, reason: 'token_deleted' },
      { card_id: 'other-account', why: 'never_came' },
      { card_id: 'was-rejected', why: 'rejected', at, reason: 'pan_luhn', batch_id, line: 2 },
      { card_id: 'was-kept-by-nobody', why: 'not_kept', at, batch_id, line: 3 },
      { card_id: 'never', why: 'never_came' },
    ])
    const text = await cli('references', 'missing', expected, ...options)
    expect(csvOf(text)[0]).toBe('card_id,why,at,reason,batch_id,line,file')
    expect(csvOf(text)).toContain('never,never_came,,,,,')
    expect(text.stdout + text.stderr).not.toMatch(/411111/)
    const all = await write('all.txt', ['has-one'])
    expect(await cli('references', 'missing', all, ...options)).toMatchObject({ status: 0, stdout: '' })
    expect(await cli('references', 'missing', join(folder, 'none.txt'), ...options)).toMatchObject({ status: 64 })
  })

  it('missing tells by the results of several parts which cards were skipped, and which part has their last row', async () => {
    const scoped = scopeOption()
    const header = 'reference,card_number,expiry'
    const one = await write('part-1.csv', [header, '=wave-2,4111111111111112,12/31', 'late,4111111111111112,12/31'])
    const two = await write('part-2.csv', [header, 'late,4111111111111111,13/31', '=left-out,4111111111111112,12/31'])
    const only = await write('wave.txt', ['late'])
    const named = ['--migration', 'spring', '--client', installation.clientFile, ...scoped]
    const ended = await cli('migrate', one, two, ...named, '--only', only)
    expect(ended, ended.stderr).toMatchObject({ status: 3 })
    const results = [one, two].flatMap(file => ['--results', `${file}.results.csv`])
    const expected = await write('parts.txt', ['=wave-2', 'late', '=left-out', 'nowhere'])
    const options = [...scoped, '--provider', 'acme', '--provider-account', 'acct-1', '--json']
    const said = await cli('references', 'missing', expected, ...options, ...results)
    expect(said.json(), said.stderr).toMatchObject([
      { card_id: '=wave-2', why: 'skipped', reason: 'not_listed', line: 2, file: `${one}.results.csv` },
      // The store knows which row was the last one.
      { card_id: 'late', why: 'rejected', reason: 'expiry_format', line: 2, batch_id: expect.any(String) },
      { card_id: '=left-out', why: 'skipped', reason: 'not_listed', line: 3, file: `${two}.results.csv` },
      { card_id: 'nowhere', why: 'never_came' },
    ])
    expect(await cli('references', 'missing', expected, ...options, '--results', one)).toMatchObject({
      status: 64,
      stderr: expect.stringContaining('is no results file'),
    })
  })

  it('are released by a file, in its order', async () => {
    const owner = { ...ACME, customer_id: 'file' }
    const [one, other] = [await made({ ...owner, card_id: 'file-1' }), await made({ ...owner, card_id: 'file-2' })]
    const file = await write('release.csv', [
      'reference,provider,provider_account,customer_id,card_id,action,on_orphan',
      'r1,acme,acct-1,file,file-1,RELEASE,delete',
      'r2,acme,acct-1,file,file-1,RELEASE,',
      'r3,acme,acct-1,file,unknown,RELEASE,',
      'r4,acme,acct-1,file,file-2,SUSPEND,',
    ])
    const options = [
      '--record-kind',
      'reference',
      '--chunk',
      '1',
      '--client',
      installation.clientFile,
      ...scopeOption(),
    ]
    const results = join(folder, 'release.results.csv')
    expect(await cli('migrate', file, ...options, '--results', results)).toMatchObject({ status: 3 })
    const rows = (await readFile(results, 'utf8')).trimEnd().split('\n').slice(1)
    expect(rows.map(row => row.split(',').slice(1, 5).join())).toEqual([
      `r1,UPDATED,200,${one}`,
      'r2,UNCHANGED,200,',
      'r3,REJECTED,404,',
      'r4,REJECTED,400,',
    ])
    expect(rows[2]).toContain('reference_unknown')
    const exported = await cli('references', 'export', ...scopeOption())
    expect(exported.stdout).toContain(other)
    expect(exported.stdout).not.toContain(one)
  })

  it('are released by submit', async () => {
    const owner = { ...ACME, card_id: 'submitted' }
    const id = await made(owner)
    const request = { token_scope: installation.scope, ...owner, action: 'RELEASE' }
    const file = await write('work.ndjson', [JSON.stringify({ kind: 'reference', request })])
    const said = await cli('submit', file, '--client', installation.clientFile)
    expect(said.status).toBe(0)
    expect(JSON.parse(said.stdout)).toMatchObject({
      line: 1,
      code: 200,
      record: { outcome: 'UPDATED', reuse_token: id, token_status: 'ACTIVE' },
    })
  })
})
