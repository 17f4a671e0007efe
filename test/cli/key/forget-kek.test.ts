// The settings that name key-encryption keys, and the end of one: `tokenmill key make kek` and `key forget kek`.
import { randomUUID } from 'node:crypto'
import { chmod, readFile, stat, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as keks from '../../../src/store/access/keks.ts'
import * as processes from '../../../src/store/access/processes.ts'
import { PURPOSES } from '../../../src/vault/ring/key-ring.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { cli } from '../command-bench.ts'
import { openTwoOperators, type TwoOperators } from './two-operators.ts'

const LIST = ['capture-key', 'add', 'probe', '--entity', '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b']

describeStore('key-encryption keys', engine => {
  let installation: Installation
  let list: string
  let files: { first: string; second: string }
  let ids: { first: string; second: string }
  let operators: TwoOperators
  beforeAll(async () => {
    installation = await openInstallation(engine)
    operators = await openTwoOperators(installation)
    list = join(installation.dataDir, 'keks')
    files = { first: join(installation.dataDir, 'kek'), second: join(installation.dataDir, 'second') }
  })
  afterAll(() => installation?.close())

  const run = (words: string[], env: Record<string, string> = {}) =>
    cli(words, { env: { ...installation.env, TOKENMILL_KEK_FILE: '', TOKENMILL_KEK: list, ...env } })
  /** Runs the command after the second operator has confirmed it. */
  const runConfirmed = async (words: string[], env: Record<string, string> = {}) => {
    const own = { ...installation.env, TOKENMILL_KEK_FILE: '', TOKENMILL_KEK: list, ...env }
    await operators.confirm(words, own)
    return run([...words, ...operators.signed], env)
  }
  const name = (...uris: string[]) => writeFile(list, `${uris.join('\n')}\n`, { mode: 0o600 })
  const audits = async () => {
    const { rows } = await installation.vault.store.query<{ actor: string; action: string; subject: string }>({
      text: `select actor, action, subject from tokenmill.audit where action like 'kek.%' and outcome = 'done' order by audit_id`,
    })
    return rows
  }

  it('are made in files for their owner alone, which are never overwritten', async () => {
    const made = await run(['key', 'make', 'kek', files.second, '--json'])
    expect(made).toMatchObject({ status: 0, stderr: expect.stringContaining('add its URI to TOKENMILL_KEK') })
    const { kek_id: second, uri } = made.json<{ kek_id: string; uri: string }>()
    expect(uri).toBe(`file:${files.second}`)
    expect((await stat(files.second)).mode & 0o777).toBe(0o600)
    expect(await run(['key', 'make', 'kek', files.second])).toMatchObject({ status: 78 })
    const text = await readFile(files.second, 'utf8')
    expect(`${made.stdout}${made.stderr}`).not.toContain(text.split('\n')[1])
    ids = { first: installation.vault.keks.current.id, second }
  })

  describe('in the settings', () => {
    it.each([
      ['two settings', { TOKENMILL_KEK_FILE: '/kek' }, /^tokenmill: TOKENMILL_KEK: TOKENMILL_KEK_FILE is set, too/],
      [
        'a token',
        { TOKENMILL_KEK: 'pkcs11:token=t?pin-value=77' },
        /^tokenmill: TOKENMILL_KEK: .*pin-value= is not accepted/,
      ],
      ['AWS KMS', { TOKENMILL_KEK: 'aws-kms:arn:aws:kms:x' }, /^tokenmill: TOKENMILL_KEK: .*not the ARN of a key/],
      ['no file', { TOKENMILL_KEK: 'file:/nowhere/kek' }, /^tokenmill: TOKENMILL_KEK: cannot read .*ENOENT/],
      ['no list', { TOKENMILL_KEK: '/nowhere/keks' }, /^tokenmill: cannot read the list .*\/nowhere\/keks \(ENOENT\)/],
    ])('that are %s end with 78', async (_, env, message) => {
      const { status, stderr } = await run(LIST, env)
      expect(status).toBe(78)
      expect(stderr).toMatch(message)
      expect(stderr).not.toContain('77')
    })

    it('may be one URI or a list; the one that wraps the store’s keys must be among them', async () => {
      await name(`file:${files.second}`, 'file:/nowhere/kek')
      const lacking = await run(LIST)
      expect(lacking.status).toBe(78)
      expect(lacking.stderr).toMatch(
        new RegExp(
          `^tokenmill: TOKENMILL_KEK: .* wrapped by ${ids.first}, .*keks doesn't name .*${ids.second}.*ENOENT`,
        ),
      )
      const other = await run(LIST, { TOKENMILL_KEK: `file:${files.second}` })
      expect(other.stderr).toMatch(
        new RegExp(`^tokenmill: TOKENMILL_KEK: .*second holds ${ids.second}, but .*${ids.first}`),
      )
      await name(`file:${files.first}`, `file:${files.second}`)
      await chmod(list, 0o644)
      expect(await run(LIST)).toMatchObject({ status: 78, stderr: expect.stringContaining('chmod 600') })
      await chmod(list, 0o600)
      expect((await run(LIST)).status).toBe(0)
      expect((await run(['schema', 'upgrade'])).stdout).toBe('up to date\n')
      expect((await run(['schema', 'upgrade'], { TOKENMILL_KEK: `file:${files.first}` })).stdout).toBe('up to date\n')
    })

    it('that can not be opened are named by status', async () => {
      await name(`file:${files.first}`, 'file:/nowhere/kek')
      const { checks } = (await run(['status', '--json'])).json<{ checks: { name: string }[] }>()
      expect(checks.find(check => check.name === 'vault keys')).toMatchObject({
        state: 'warning',
        says: expect.stringMatching(`${ids.first} opens .* not usable here: /nowhere/kek: .*ENOENT`),
      })
      await name(`file:${files.first}`, `file:${files.second}`)
    })
  })

  describe('that are to be forgotten', () => {
    it.each([
      ['the current one', () => ids.first, /is the current key/],
      ['unknown', () => ids.second, /is no key-encryption key of this installation/],
    ])('are refused where they are %s', async (_, id, message) => {
      const { status, stderr } = await run(['key', 'forget', 'kek', id(), ...operators.signed])
      expect(status).toBe(1)
      expect(stderr).toMatch(message)
    })

    it('are kept while a key is wrapped by them, and until no backup needs them; each act is recorded', async () => {
      const operator = [...operators.signed, '--reason', 'yearly']
      const stranger = ['--operator', installation.clientFile]
      const rotate = ['key', 'rotate', 'kek', '--to', `file:${files.second}`]
      expect(await run([...rotate, ...stranger])).toMatchObject({
        status: 78,
        stderr: expect.stringContaining('ADMIN'),
      })
      expect(await audits()).toEqual([])
      expect(await runConfirmed([...rotate, '--reason', 'yearly'])).toMatchObject({ status: 0 })

      expect((await run(['key', 'list', 'kek', '--json'])).json()).toMatchObject([
        { kek_id: ids.first, state: 'RETIRED', keys_wrapped: 0, on_this_host: true, processes: 0 },
        { kek_id: ids.second, state: 'ACTIVE', keys_wrapped: PURPOSES.length, backups_need_it_until: null },
      ])

      const forget = ['key', 'forget', 'kek', ids.first]
      const inTime = await run([...forget, ...operator])
      expect(inTime.status).toBe(1)
      expect(inTime.stderr).toMatch(/may be kept until 20\d\d-.*TOKENMILL_BACKUP_DAYS.*--backups-are-gone/)
      await installation.vault.store.query({
        text: `alter table tokenmill.data_key disable trigger user;
          insert into tokenmill.data_key (purpose, version, kek_id, wrapped, state)
          values ('left', 1, '${ids.first}', '\\x00', 'DECRYPT_ONLY')`,
      })
      expect(await run([...forget, '--backups-are-gone', ...operator])).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('still wraps 1 keys'),
      })
      await installation.vault.store.query({
        text: `delete from tokenmill.data_key where purpose = 'left';
          alter table tokenmill.data_key enable trigger user`,
      })
      expect(await runConfirmed([...forget, '--backups-are-gone'])).toMatchObject({ status: 0 })
      expect(await run([...forget, ...operator])).toMatchObject({
        status: 1,
        stderr: expect.stringContaining('forgotten before'),
      })
      const { clientId } = operators
      expect(await audits()).toEqual([
        { actor: `client:${clientId}`, action: 'kek.add', subject: ids.second },
        { actor: `client:${clientId}`, action: 'kek.rotate', subject: ids.second },
        { actor: `client:${clientId}`, action: 'kek.forget', subject: ids.first },
      ])
      await name(`file:${files.second}`)
      expect((await run(['capture-key', 'add', 'after', ...LIST.slice(3)])).status).toBe(0)
    })

    it('go at once if no rotation to them ended', async () => {
      const pending = { kekId: 'kek-00000000deadbeef', state: 'PENDING', probe: Buffer.from('probe') } as const
      await keks.insert(installation.vault.store, pending)
      expect(await runConfirmed(['key', 'forget', 'kek', pending.kekId])).toMatchObject({ status: 0 })
    })

    it('end a rotation to them that waits for a process, with a line that says so', async () => {
      const { store } = installation.vault
      const anew = join(installation.dataDir, 'third')
      const { kek_id: third } = (await run(['key', 'make', 'kek', anew, '--json'])).json<{ kek_id: string }>()
      await name(`file:${files.second}`, `file:${anew}`)
      const process = {
        processId: randomUUID(),
        role: 'bulk',
        host: 'attic',
        version: '1.0.0',
        connections: 1,
      } as const
      await processes.see(store, { ...process, kinds: [], features: [], keys: ['seal/1'] })
      const rotate = ['key', 'rotate', 'kek', '--to', third]
      await operators.confirm(rotate, { ...installation.env, TOKENMILL_KEK_FILE: '', TOKENMILL_KEK: list })
      const waiting = run([...rotate, ...operators.signed])
      await until(async () => (await keks.list(store)).some(({ kekId }) => kekId === third))
      expect(await runConfirmed(['key', 'forget', 'kek', third])).toMatchObject({ status: 0 })
      expect(await waiting).toMatchObject({ status: 1, stderr: expect.stringContaining(`${third} was forgotten by`) })
      await processes.leave(store, process)
    })

    it('may be forgotten by days alone where no backups are kept', async () => {
      await name(`file:${files.first}`, `file:${files.second}`)
      // Two runs at the same time both end well.
      const rotate = ['key', 'rotate', 'kek', '--to', ids.first]
      await operators.confirm(rotate, { ...installation.env, TOKENMILL_KEK_FILE: '', TOKENMILL_KEK: list })
      const both = await Promise.all([1, 2].map(() => run([...rotate, ...operators.signed])))
      expect(both).toMatchObject([{ status: 0 }, { status: 0 }])
      const days = { TOKENMILL_BACKUP_DAYS: '0' }
      expect(await runConfirmed(['key', 'forget', 'kek', ids.second], days)).toMatchObject({ status: 0 })
    })
  })
})
