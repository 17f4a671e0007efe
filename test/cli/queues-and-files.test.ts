import { createHash } from 'node:crypto'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openQueues, openSession, openVault } from '../../cli/open/open.ts'
import { readCredentials } from '../../producers/client/client-file.ts'
import { signDetached } from '../../producers/detached-signature.ts'
import { type Manifest, writeManifest } from '../../producers/migrate/manifest.ts'
import { noFileCounts } from '../../producers/rows/file-outcome.ts'
import { RESULT_COLUMNS } from '../../producers/rows/outcome/result-row.ts'
import { BATCH_STATES } from '../../src/job/choices.ts'
import { noCounts } from '../../src/job/outcome.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { failedList, moveToFailed } from '../../src/queue/failed.ts'
import * as batches from '../../src/store/batch/batches.ts'
import type { Store } from '../../src/store/pool.ts'
import { describeEngines } from '../support/engines.ts'
import { cli as runCli, type Said } from './command-bench.ts'

const ENTITY = '6a1f6f0e-3a52-4c3b-9a57-0c1d2e3f4a5b'

describeEngines('commands over queues and files', engine => {
  let dataDir: string
  let env: NodeJS.ProcessEnv
  let session: ReturnType<typeof openSession>
  let store: Store
  let queues: Queues
  const cli = (...words: string[]): Promise<Said> => runCli(words, { env })
  const audited = async (action: string) =>
    (
      await store.query<{ subject: string }>({
        text: 'select subject from tokenmill.audit where action = $1',
        values: [action],
      })
    ).rows

  beforeAll(async () => {
    dataDir = await mkdtemp(join(tmpdir(), 'tokenmill-cli-'))
    env = {
      DATABASE_URL: engine.databaseUrl,
      REDIS_URL: engine.redisUrls?.join(','),
      TOKENMILL_PREFIX: engine.prefix,
      TOKENMILL_DATA_DIR: dataDir,
      TOKENMILL_KEK_FILE: join(dataDir, 'kek'),
    }
    await cli('schema', 'upgrade', '--make-kek', join(dataDir, 'kek'))
    session = openSession({ env, stdin: process.stdin, stdout: process.stdout, stderr: process.stderr })
    const vault = await openVault(session)
    store = vault.store
    queues = await openQueues(session, vault.database)
  })
  afterAll(async () => {
    await session.lifetime.close()
    await rm(dataDir, { recursive: true, force: true })
  })

  it('failed list and retry speak of an empty set', async () => {
    expect((await cli('failed', 'list', '--json')).json<unknown[]>()).toEqual([])
    expect(await cli('failed', 'retry')).toMatchObject({ status: 0, stdout: '0 sent again\n' })
    expect(await cli('failed', 'retry', 'f_x')).toMatchObject({ status: 1 })
  })

  it('failed retry sends a job again under its own id, and asks to submit again what held card data', async () => {
    const copy = { code: 'contention', attempt: 8, failedAt: 1_700_000_000_000, clientId: 'c1' }
    const jws = 'a.b.c'
    const add = (kind: string, jobId: string, data: { jws: string }) =>
      moveToFailed(queues, kind, { id: jobId, enqueuedAt: 1 }, { ...copy, ...data, kind, jobId })
    const kept = await add('token-lifecycle', 'j_kept', { jws })
    const emptied = await add('token-create', 'j_emptied', { jws: '' })
    const listed = await cli('failed', 'list', '--json')
    expect(listed.stdout).not.toContain(jws)
    expect(listed.json<unknown[]>()).toEqual([
      expect.objectContaining({ id: emptied, kind: 'token-create', card_data_removed: true }),
      expect.objectContaining({ id: kept, kind: 'token-lifecycle', card_data_removed: false, attempt: 8 }),
    ])
    const { status, stderr, json } = await cli('failed', 'retry', '--json')
    expect(status).toBe(3)
    expect(stderr).toContain(`${emptied}: its card data were removed after 15 minutes; submit it again.`)
    expect(json()).toEqual({
      retried: [kept],
      submit_again: [emptied],
      left: [{ id: emptied, why: 'card_data_removed' }],
    })
    expect((await queues.get('token-lifecycle', 'j_kept'))?.data).toEqual({ jws })
    expect(await failedList(queues, 'token-lifecycle')).toEqual([])
    expect(await audited('failed.retry')).toEqual([{ subject: kept }])
  })

  it('batch list, show and cancel', async () => {
    const open = (clientId: string, batchId: string) =>
      batches.open(store, {
        clientId,
        batchId,
        entityId: null,
        recordKind: 'token-create',
        tokenScope: ENTITY,
        chunkRecords: 500,
        layout: {},
        acceptedAt: 1_700_000_000_000,
      })
    await open('gateway', 'b-1')
    await open('gateway', 'b-2')
    await open('scheduler', 'b-2')
    const listed = (await cli('batch', 'list', '--limit', '2', '--json')).json<
      { batch_id: string; client_id: string }[]
    >()
    expect(listed.map(batch => `${batch.client_id} ${batch.batch_id}`)).toEqual(['scheduler b-2', 'gateway b-2'])
    expect((await cli('batch', 'show', 'b-1', '--json')).json()).toMatchObject({
      batch_id: 'b-1',
      state: 'OPEN',
      chunks_done: 0,
      records_done: 0,
      counts: noCounts(),
    })
    for (const state of BATCH_STATES)
      expect((await cli('batch', 'list', '--state', state, '--json')).json()).toHaveLength(state === 'OPEN' ? 3 : 0)
    expect((await cli('batch', 'show', 'none')).stderr).toContain('There is no such batch')
    expect((await cli('batch', 'cancel', 'b-2')).stderr).toContain('name one with --client')
    expect(await cli('batch', 'cancel', 'b-2', '--client', 'gateway')).toMatchObject({ status: 64, stdout: '' })
    expect(await cli('batch', 'cancel', 'b-2', '--client', 'gateway', '--yes')).toMatchObject({
      status: 0,
      stderr: 'How many rows are left undone is not known: no chunk said how many there are.\n',
    })
    expect((await cli('batch', 'cancel', 'b-2', '--client', 'gateway')).stderr).toBe('It was cancelled before.\n')
    expect(await audited('batch.cancel')).toEqual([{ subject: 'b-2' }])
  })

  it('bin-table import takes all of a file or nothing, and the same file again changes nothing', async () => {
    const file = join(dataDir, 'bins.csv')
    const put = (...lines: string[]) =>
      writeFile(file, `prefix,brand,issuer_name,issuer_country,type\n${lines.join('\n')}\n`)
    const count = async () =>
      (await store.query<{ n: number }>({ text: 'select count(*) as n from tokenmill.bin_range' })).rows[0]?.n
    await put('45717360,VISA,"Bank, the first",DNK,DEBIT', '4571,VISA,Bank,QQQ,DEBIT')
    const wrong = await cli('bin-table', 'import', file)
    expect(wrong).toMatchObject({ status: 1, stdout: '' })
    expect(wrong.stderr).toMatch(/line 3, issuer_country: /)
    expect(await count()).toBe(0)
    await put('45717360,VISA,"Bank, the first",DNK,DEBIT', '4571,VISA,,,')
    const result = (await cli('bin-table', 'import', file, '--json')).json()
    expect(result).toEqual({ ranges: 2, written: 2, unchanged: 0 })
    expect((await cli('bin-table', 'import', file, '--json')).json()).toMatchObject({ written: 0, unchanged: 2 })
    await put('4571,VISA,A bank,DNK,CREDIT')
    expect((await cli('bin-table', 'import', file, '--json')).json()).toMatchObject({ written: 1 })
    expect(await count()).toBe(2)
    await put('4571,VISA,,,', '4571,VISA,,,')
    expect((await cli('bin-table', 'import', file)).stderr).toContain('line 3: the prefix 4571 occurs twice')
    expect((await cli('bin-table', 'import', join(dataDir, 'none.csv'))).stderr).toContain('does not exist')
  })

  it("manifest verify holds a manifest against its client's signature and its files", async () => {
    const words = ['client', 'add', 'shop', '--entity', ENTITY, '--roles', 'TOKEN_WRITE']
    expect((await cli(...words)).status).toBe(0)
    const clientFile = join(dataDir, 'clients', 'shop', 'client.json')
    const { signingKey } = await readCredentials(clientFile)
    const results = `${RESULT_COLUMNS.join(',')}\n${RESULT_COLUMNS.map(name => (name === 'outcome' ? 'CREATED' : '')).join(',')}\n`
    const path = join(dataDir, 'cards.csv.manifest.json')
    await writeFile(join(dataDir, 'cards.csv.results.csv'), results)
    const manifest: Manifest = {
      v: 1,
      reasons: {},
      repairs: {},
      operator: { client_id: 'c' },
      pgp_keys: null,
      batch_id: 'b-1',
      dry_run: false,
      input: { name: 'cards.csv', sha256: 'a'.repeat(64), bytes: 1 },
      results: {
        name: 'cards.csv.results.csv',
        sha256: createHash('sha256').update(results).digest('hex'),
        bytes: Buffer.byteLength(results),
      },
      options: {},
      rows: 1,
      counts: { ...noFileCounts(), CREATED: 1 },
      started_at: '2030-01-01T00:00:00Z',
      ended_at: '2030-01-01T00:00:01Z',
    }
    await writeManifest(path, manifest, bytes => signDetached(bytes, signingKey))
    const verify = (...more: string[]) => cli('manifest', 'verify', path, '--client', clientFile, '--json', ...more)
    const good = await verify()
    expect(good).toMatchObject({ status: 0 })
    expect(good.json()).toMatchObject({ holds: true, checks: { signature: 'holds', input_digest: 'absent' } })
    await writeFile(join(dataDir, 'cards.csv.results.csv'), results.replace('CREATED', 'UPDATED'))
    const changed = await verify()
    expect(changed).toMatchObject({ status: 1 })
    expect(changed.json()).toMatchObject({ holds: false, checks: { signature: 'holds', results_digest: 'fails' } })
    await cli('client', 'add', 'other', '--entity', ENTITY, '--roles', 'TOKEN_WRITE')
    const foreign = await verify('--client', join(dataDir, 'clients', 'other', 'client.json'))
    expect(foreign.json()).toMatchObject({ checks: { signature: 'fails' } })
    expect(await cli('manifest', 'verify', join(dataDir, 'none.json'), '--client', clientFile)).toMatchObject({
      status: 64,
    })
  })
})
