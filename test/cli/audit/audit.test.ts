// `tokenmill audit`: what the commands print while a worker numbers rows.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../../support/postgres.ts'
import { startCommand } from '../../support/process.ts'
import { until } from '../../support/until.ts'
import { cli as runCli } from '../command-bench.ts'

describe('audit', () => {
  let database: FreshDatabase
  let installation: Installation
  beforeAll(async () => {
    database = await freshDatabase()
    installation = await openInstallation({
      name: 'postgres',
      prefix: '{cliaudit}',
      redisUrls: undefined,
      databaseUrl: database.url,
    })
    await installation.openWorkers({ roles: ['interactive'] })
  })
  afterAll(async () => {
    await installation?.close()
    await database?.drop()
  })

  const cli = (...words: string[]) => runCli(words, { env: installation.env })
  const list = async (...words: string[]) =>
    (await cli('audit', 'list', '--json', ...words)).json<
      {
        seq: number | null
        actor: string
        host: string
        action: string
        subject: string
        outcome: string
        detail: unknown
      }[]
    >()
  const numbered = () => until(async () => (await list()).every(({ seq }) => seq !== null))

  it('list says who did what, from where, on what, and how it ended; newest first', async () => {
    await numbered()
    const rows = await list('--action', 'client.*')
    expect(rows.map(({ action }) => action)).toContain('client.add')
    expect(rows.every(({ host, outcome, actor }) => host !== '' && outcome === 'done' && actor !== '')).toBe(true)
    const [newest] = await list('--limit', '1')
    expect(await list('--subject', newest?.subject ?? '')).toContainEqual(newest)
    expect(await list('--until', '2020-01-01')).toEqual([])
    expect((await cli('audit', 'list', '--limit', '1')).stdout).toMatch(
      /^SEQ +AT +ACTOR +HOST +ACTION +SUBJECT +OUTCOME\n/,
    )
    expect(await cli('audit', 'list', '--outcome', 'lost')).toMatchObject({ status: 64 })
  })

  it('has a row for an operator who was refused', async () => {
    const words = ['events', 'remove', '11111111-2222-4333-8444-555555555555']
    expect(await cli(...words, '--operator', installation.clientFile)).toMatchObject({ status: 78 })
    expect(await cli(...words)).toMatchObject({ status: 1 })
    const rows = await list('--action', 'events.remove', '--outcome', 'refused')
    expect(rows.map(({ detail }) => detail)).toEqual([
      { why: 'no_endpoint' },
      { operator: installation.clientFile, why: expect.stringMatching(/lacks the role ADMIN$/) },
    ])
  })

  it('follow prints a row as it gets its number', async () => {
    await numbered()
    const following = startCommand(['audit', 'follow', '--json'], { env: installation.env })
    const row = following.line(/"action":"audit.export".*/)
    await until(async () => {
      await cli('audit', 'export', '--from', '2020-01-01')
      return Promise.race([row.then(() => true), new Promise<boolean>(resolve => setTimeout(resolve, 1_500, false))])
    })
    following.signal('SIGINT')
    expect(await following.exit).toMatchObject({ code: 130 })
  })

  it('export writes every numbered row of its time once, with hash and MAC', async () => {
    await numbered()
    const { stdout, stderr } = await cli('audit', 'export', '--from', '2020-01-01', '--to', '2100-01-01')
    const rows = stdout
      .trimEnd()
      .split('\n')
      .map(line => JSON.parse(line) as { seq: number; hash: string; mac: string })
    expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, index) => index + 1))
    expect(rows.every(({ hash, mac }) => /^[0-9a-f]{64}$/.test(hash) && /^[0-9a-f]{64}$/.test(mac))).toBe(true)
    expect(stderr).toContain(`${rows.length} rows`)
    expect(await cli('audit', 'export', '--from', '2020-01-01', '--to', '2020-01-02')).toMatchObject({ stdout: '' })
  })

  it('show says all of one row, and whether the signature that it keeps is right', async () => {
    const { store } = installation.vault
    const { clientFile, credentials } = await installation.addClient('operator', { roles: ['ADMIN'] })
    await store.query({
      text: `insert into tokenmill.batch (client_id, batch_id, record_kind, chunk_records, layout, accepted_at)
values ($1, 'to-pause', 'token-create', 1000, '{}', now())`,
      values: [credentials.signingKey.clientId],
    })
    expect(await cli('batch', 'pause', 'to-pause', '--operator', clientFile)).toMatchObject({ status: 0 })
    await numbered()
    const [row] = await list('--action', 'batch.pause', '--limit', '1')
    const show = (...more: string[]) => cli('audit', 'show', String(row?.seq), ...more)
    expect((await show()).stdout).toMatch(/^proved +yes: by key \S+ of client \S+$/m)
    expect((await show('--json')).json()).toMatchObject({ ...row, proved: { proof: 'right' } })
    expect((await cli('audit', 'show', '1')).stdout).toMatch(/^proved +no: the row keeps no signature$/m)
    await store.query({ text: `update tokenmill.audit set subject = 'another' where seq = $1`, values: [row?.seq] })
    expect((await show()).stdout).toMatch(/^proved +WRONG: it is of another act$/m)
    await store.query({
      text: `update tokenmill.audit set subject = $2 where seq = $1`,
      values: [row?.seq, row?.subject],
    })
    expect(await cli('audit', 'show', '999999999')).toMatchObject({ status: 1 })
    expect(await cli('audit', 'show', 'x')).toMatchObject({ status: 64 })
  })

  it('verify ends 0 for a sound audit, and 1 with the row that was changed', async () => {
    await numbered()
    expect(await cli('audit', 'verify')).toMatchObject({
      status: 0,
      stdout: expect.stringMatching(/^The audit is sound/),
    })
    const { store } = installation.vault
    const verdict = async () => (await list('--action', 'audit.verify', '--limit', '1'))[0]
    expect(await verdict()).toMatchObject({ outcome: 'done', detail: { findings: 0, to: expect.any(Number) } })
    const denied = 'alter table tokenmill.audit add constraint no_verdict check (action <> $$audit.verify$$) not valid'
    await store.query({ text: denied })
    const unwritten = await cli('audit', 'verify')
    await store.query({ text: 'alter table tokenmill.audit drop constraint no_verdict' })
    expect(unwritten).toMatchObject({ status: 0, stderr: expect.stringContaining('was not written into the audit: ') })
    expect(unwritten.stderr).not.toContain('this user may not write there')
    expect(unwritten.stderr).toContain('segments may be elsewhere')
    await store.query({ text: `update tokenmill.audit set actor = 'nobody' where seq = 3` })
    const said = await cli('audit', 'verify')
    expect(await verdict()).toMatchObject({ outcome: 'failed', detail: { findings: 1 } })
    expect(said).toMatchObject({ status: 1, stderr: expect.stringContaining('the audit is not sound: 1 finding') })
    expect(said.stdout).toMatch(/^row 3 was changed \(/)
    // A public key that can't be read doesn't stop the verification.
    await store.query({ text: `update tokenmill.signing_key set public_jwk = '{"kty":"none"}'` })
    expect((await cli('audit', 'verify')).stdout).toMatch(/^row 3 was changed \(/m)
  })
})
