// `tokenmill schema login worker`: workers and the scheduler do all their work as a database user that can't rewrite
// the audit. The queues are in the same database.
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { parseEnv } from 'node:util'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openSession, openVault } from '../../../cli/open/open.ts'
import { startScheduler } from '../../../cli/process/scheduler.ts'
import * as deliveries from '../../../src/store/event/deliveries.ts'
import * as reseals from '../../../src/store/reseal/reseals.ts'
import { ensurePartitions, sweep } from '../../../src/store/retention.ts'
import { CSV_HEADER, csvRowOf, transactionOf } from '../../producers/ingest/sample.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../support/installation.ts'
import { testPan } from '../../support/test-pan.ts'
import { until } from '../../support/until.ts'
import { openWorkers } from '../../support/workers.ts'
import { openReceiver, type Receiver } from '../../workers/webhook/receiver.ts'
import { cli as runCli } from '../command-bench.ts'

const CARDS = 300
const DAY_MS = 86_400_000

describeStore('workers and scheduler with a user of their own', engine => {
  let installation: Installation
  let receiver: Receiver
  let env: NodeJS.ProcessEnv
  const closing: (() => Promise<void>)[] = []
  beforeAll(async () => {
    installation = await openInstallation(engine, { TOKENMILL_PRIVATE_HOSTS: '127.0.0.1' })
    receiver = await openReceiver()
    const file = join(installation.dataDir, 'worker.env')
    const made = await runCli(['schema', 'login', 'worker', '--out', file], { env: installation.env })
    expect(made).toMatchObject({ status: 0, stderr: expect.stringContaining('workers, scheduler and three-ds') })
    const url = parseEnv(await readFile(file, 'utf8'))['DATABASE_URL']
    env = { ...installation.env, DATABASE_URL: url, TOKENMILL_RECEIPT_DAYS: '8' }
    const workers = await openWorkers(env, ['interactive', 'bulk'])
    closing.push(workers.close)
    const { stdin, stdout, stderr } = process
    const scheduler = openSession({ env, stdin, stdout, stderr }, 'scheduler')
    closing.push(() => scheduler.lifetime.close())
    await startScheduler(scheduler)
  })
  afterAll(async () => {
    for (const close of closing.toReversed()) await close()
    await receiver?.close()
    await installation?.vault.store.query({
      text: `do $$ declare login text; begin
  for login in select rolname from pg_roles where pg_has_role(rolname, 'tokenmill_worker', 'MEMBER')
    and rolname like 'tokenmill_worker_%' and has_database_privilege(rolname, current_database(), 'CONNECT') loop
    execute format('drop owned by %I', login);
    execute format('drop role %I', login);
  end loop;
end $$`,
    })
    await installation?.close()
  })

  const cli = (...words: string[]) => runCli(words, { env: installation.env })
  const client = () => ['--client', installation.clientFile]
  const ask = async <R>(text: string) => (await installation.vault.store.query<R>({ text })).rows

  it('work a migration, single jobs, a ledger, a report, events and a re-encryption', async () => {
    const hook = ['--to', `${receiver.origin}/hook`, '--events', 'batch.finished,report.succeeded', '--json']
    const endpoint = (await cli('events', 'add', 'first', ...hook)).json<{ secret: string }>()
    receiver.trust('/hook', endpoint.secret)

    const cards = join(installation.dataDir, 'cards.csv')
    const rows = Array.from({ length: CARDS }, (_, index) => `${testPan(index)},12,2035,Zoë`)
    await writeFile(cards, `card_number,expiry_month,expiry_year,cardholder_name\n${rows.join('\n')}\n`)
    const migrated = await cli('migrate', cards, '--scope', installation.scope, ...client(), '--json')
    expect(migrated, migrated.stderr).toMatchObject({ status: 0 })

    const sender = await installation.connect()
    const card = { cardNumber: testPan(CARDS), expiryMonth: 12, expiryYear: 2035 }
    const created = await sender.call('token-create', {
      token_scope: installation.scope,
      ...(await sender.encryptCard(card)),
    })
    expect(created.code).toBe(200)

    const ledger = join(installation.dataDir, 'ledger.csv')
    const lines = Array.from({ length: 50 }, (_, index) => csvRowOf(transactionOf(index, { entity: ENTITY })))
    await writeFile(ledger, `${[CSV_HEADER, ...lines].join('\n')}\n`)
    expect(await cli('ingest', 'transactions', ledger, ...client())).toMatchObject({ status: 0 })

    const wanted = ['--type', 'DAILY_TRANSACTION_REPORT', '--parameter', 'reportableDay=2026-01-31']
    expect(await cli('report', 'request', ...wanted, '--wait', ...client())).toMatchObject({ status: 0 })
    await until(async () => receiver.taken.some(({ body }) => body.type === 'batch.finished'), { what: 'a webhook' })
    expect(receiver.forged).toBe(0)

    expect(await cli('key', 'rotate', 'seal')).toMatchObject({ status: 0 })
    // It ends with 1 until every process holds the new key.
    await until(async () => (await cli('key', 'reseal', 'seal')).status === 0, { what: 'the key in every process' })
    await until(async () => (await reseals.find(installation.vault.store, 'seal'))?.rowsDone === CARDS + 1, {
      what: 'a re-encryption',
    })
    expect((await deliveries.list(installation.vault.store, { limit: 10 })).length).toBeGreaterThan(0)
  })

  it('number the audit, and send it; nobody but them and the owner is named', async () => {
    await until(async () => (await ask(`select from tokenmill.audit where seq is null`)).length === 0)
    const verified = await cli('audit', 'verify', '--json')
    expect(verified, verified.stdout).toMatchObject({ status: 0 })
    const checks = (await cli('doctor', '--json')).json<{ checks: { name: string; state: string }[] }>().checks
    expect(checks.find(({ name }) => name === 'worker login')).toMatchObject({ state: 'well' })
  })

  it('make the partitions of new weeks, drop old ones, and erase what is old', async () => {
    const { stdin, stdout, stderr } = process
    const session = openSession({ env, stdin, stdout, stderr }, 'test')
    try {
      const { store } = await openVault(session)
      await installation.vault.store.query({ text: `select tokenmill.make_week('outbox', '2024-01-01')` })
      const swept = await sweep(store, 8, Date.now())
      await ensurePartitions(store, Date.now() + 70 * DAY_MS)
      expect(swept.partitions).toContain('outbox_20240101')
      const weeks = await ask<{ n: number }>(
        `select count(*) as n from pg_class where relispartition and relname like 'receipt_%' and relkind = 'r'`,
      )
      expect(weeks[0]?.n).toBeGreaterThan(15)
    } finally {
      await session.lifetime.close()
    }
  })

  it('are named by doctor where they log in as the owner', async () => {
    const workers = await openWorkers(installation.env, ['bulk'])
    try {
      // On a busy machine a check may have no answer within its 3 s: then it is unknown, and doctor is asked again.
      const found = await until(async () => {
        const { checks } = (await cli('doctor', '--json')).json<{
          checks: { name: string; says: string; state: string }[]
        }>()
        return checks.find(({ name, state }) => name === 'worker login' && state !== 'unknown')
      })
      expect(found).toMatchObject({
        state: 'warning',
        says: expect.stringMatching(/workers log in as .* who can rewrite the audit/),
      })
    } finally {
      await workers.close()
    }
  })
})
