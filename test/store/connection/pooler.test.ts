// A pooler in front of PostgreSQL: one in session mode works, any other is refused with one line, and the gateway acts
// as its own role under every setting.
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../../src/errors.ts'
import { openLog } from '../../../src/log.ts'
import { openStore, type Store } from '../../../src/store/pool.ts'
import { openQueuePool } from '../../../src/store/queue-pool.ts'
import { type Bench, openBench } from '../../cli/command-bench.ts'
import { type Pgbouncer, startPgbouncer } from '../../support/pgbouncer.ts'
import { findPgbouncer } from '../../support/postgres-tools.ts'
import { until } from '../../support/until.ts'

const SESSION = { pool_mode: 'session' }
const WHO = `select current_user as "user", current_setting('search_path') as path, current_setting('timezone') as zone,
  current_setting('statement_timeout') as timeout, current_setting('application_name') as application`
const REFUSED =
  'tokenmill: DATABASE_URL: a connection pooler gives a session to others after each transaction or statement; tokenmill needs sessions of its own (pgbouncer: pool_mode = session)\n'

describe.skipIf(!findPgbouncer())('behind pgbouncer', () => {
  const log = openLog('silent')
  let bench: Bench
  let pooler: Pgbouncer
  beforeAll(async () => {
    bench = await openBench()
    pooler = await startPgbouncer(bench.url, SESSION)
  })
  afterAll(async () => {
    await pooler?.stop()
    await until(
      async () => (await bench.rows(`select 1 from pg_stat_activity where datname = current_database()`)).length === 1,
    )
    await bench?.close()
  })

  const openGateway = (options: { url?: string; statementMsMax?: number } = {}): Store =>
    openStore(options.url ?? pooler.url, {
      log,
      connectionsMax: 2,
      role: 'tokenmill_gateway',
      statementMsMax: options.statementMsMax ?? 30_000,
      application: 'tokenmill gateway',
    })
  const gatewaySession = {
    user: 'tokenmill_gateway',
    path: 'tokenmill',
    zone: 'UTC',
    timeout: '30s',
    application: 'tokenmill gateway',
  }

  it('in session mode with no further setting, a session is what it is without a pooler', async () => {
    const store = openGateway()
    const { rows } = await store.query({ text: WHO })
    expect(rows).toEqual([gatewaySession])
    await store.close()
    const direct = openGateway({ url: bench.url })
    expect((await direct.query({ text: WHO })).rows).toEqual(rows)
    await direct.close()
  })

  it('in session mode a session that ended leaves nothing to the next one', async () => {
    const gateway = openGateway()
    await gateway.query({ text: 'select 1' })
    await gateway.close()
    const owner = openStore(pooler.url, { log, connectionsMax: 1 })
    const { rows } = await owner.query<{ same: boolean; scans: string }>({
      text: `select current_user = session_user as same, current_setting('enable_seqscan') as scans`,
    })
    expect(rows).toEqual([{ same: true, scans: 'off' }])
    await owner.close()
  })

  it('in session mode the schema is upgraded, commands work, and queues have their role', async () => {
    const env = { DATABASE_URL: pooler.url }
    const kek = `${bench.dataDir}/kek`
    const upgraded = await bench.cli(['schema', 'upgrade', '--make-kek', kek], { env })
    expect(upgraded, upgraded.stderr).toMatchObject({ status: 0 })
    expect(await bench.cli(['scope', 'list'], { env })).toMatchObject({ status: 0 })
    const pool = openQueuePool(pooler.url, 2)
    const { rows } = await pool.query(`select current_user as "user", current_setting('search_path') as path`)
    expect(rows).toEqual([{ user: 'tokenmill_queue', path: 'bullmq' }])
    await pool.end()
  })

  it.each(['transaction', 'statement'])('in %s mode every command ends with 78 and one line', async pool_mode => {
    await pooler.restart({ pool_mode })
    for (const words of [['client', 'list'], ['gateway'], ['schema', 'upgrade'], ['results', 'follow']]) {
      // Another text of the same URL, because this process remembers what it proved about a URL.
      const env = {
        DATABASE_URL: `${pooler.url}?${new URLSearchParams({ sslmode: 'disable', try: pool_mode + words })}`,
      }
      const { status, stderr } = await bench.cli(words, { env: { ...env, TOKENMILL_LOG_LEVEL: 'silent' } })
      expect({ words, status, stderr }).toEqual({ words, status: 78, stderr: REFUSED })
    }
  })

  it('that is put into transaction mode at run time is a store that is away, until it keeps sessions again', async () => {
    await pooler.restart(SESSION)
    const store = openGateway()
    await store.query({ text: 'select 1' })
    await pooler.restart({ pool_mode: 'transaction' })
    const refused = await until(() =>
      store.query({ text: 'select 1' }).then(
        () => undefined,
        error => (String(error.cause?.message).includes('pooler') ? error : undefined),
      ),
    )
    expect(refused).toBeInstanceOf(Fault)
    expect(refused).toMatchObject({ code: 'store_away' })
    await pooler.restart(SESSION)
    await until(() => store.query({ text: 'select 1' }).catch(() => undefined))
    expect((await store.query({ text: WHO })).rows).toEqual([gatewaySession])
    await store.close()
  })

  it('that drops start-up parameters, the gateway has its role all the same', async () => {
    await pooler.restart({ ...SESSION, ignore_startup_parameters: 'options,search_path,statement_timeout' })
    const store = openGateway()
    expect((await store.query({ text: WHO })).rows).toEqual([gatewaySession])
    await expect(store.query({ text: 'select sealed from tokenmill.token' })).rejects.toMatchObject({ code: '42501' })
    await store.close()
  })

  it('a start-up parameter of the operator’s that it refuses is named, with 78', async () => {
    await pooler.restart(SESSION)
    const env = { DATABASE_URL: `${pooler.url}?options=-c%20geqo%3Doff` }
    expect(await bench.cli(['client', 'list'], { env })).toMatchObject({
      status: 78,
      stderr: 'tokenmill: DATABASE_URL: a pooler stands before PostgreSQL and refuses the start-up parameter options\n',
    })
  })

  it('a PostgreSQL that it can not reach is a store that is away, and is told as the pooler’s trouble', async () => {
    const nowhere = await startPgbouncer('postgres://tokenmill:x@127.0.0.1:1/none', {
      ...SESSION,
      query_wait_timeout: '1',
    })
    const said = await bench.cli(['client', 'list'], { env: { DATABASE_URL: nowhere.url } })
    await nowhere.stop()
    expect(said).toMatchObject({
      status: 1,
      stderr:
        'tokenmill: The token store cannot be reached. (08P01; the connection pooler ended the connection; see its log)\n',
    })
  })
})
