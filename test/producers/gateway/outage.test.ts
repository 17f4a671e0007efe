// The answers while the queue server is away, and the work that is done once it is back.
import { Redis } from 'ioredis'
import pg from 'pg'
import { afterEach, beforeEach, expect, it } from 'vitest'
import { describeRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { freshDatabase } from '../../support/postgres.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'
import { type Caller, openGatewayFor } from './bundle.ts'

const VISA = { cardNumber: '4111111111111111', expiryMonth: 12, expiryYear: 2030 }

describeRedis('a queue server that is away', () => {
  let redis: RedisServer
  let database: Awaited<ReturnType<typeof freshDatabase>>
  let installation: Installation
  let caller: Caller
  const open = async (seconds: string) => {
    installation = await openInstallation({
      name: 'redis',
      prefix: '{outage}',
      redisUrls: [redis.url],
      databaseUrl: database.url,
    })
    caller = await openGatewayFor(installation, { TOKENMILL_GATEWAY_TIMEOUT_SECONDS: seconds })
  }
  beforeEach(async () => {
    redis = await startRedis()
    database = await freshDatabase()
  })
  afterEach(async () => {
    await caller?.close()
    await installation?.close()
    await redis?.stop()
    await database?.drop()
  })

  it('makes it 500 with NONE for what it never had, and nothing of it comes later', async () => {
    await open('1')
    let away = false
    caller.gateway.deps.queues.on('away', () => {
      away = true
    })
    await redis.kill9()
    await until(() => away)
    const answer = await caller.put(VISA)
    expect([answer.status, answer.body['reversal_status']]).toEqual([500, 'NONE'])
    expect((await caller.call('GET', '/readyz')).status).toBe(503)
    await redis.restart()
    await until(async () => (await caller.call('GET', '/readyz')).status === 200)
    expect(await installation.queues.depth('token-create')).toMatchObject({ waiting: 0 })
  })

  it('makes it 500 with REQUIRED for what it had, and the reversal is queued once it is back', async () => {
    await open('2')
    const pending = caller.put(VISA)
    await until(async () => (await installation.queues.depth('token-create')).waiting === 1)
    await redis.kill9()
    const answer = await pending
    expect([answer.status, answer.body['reversal_status']]).toEqual([500, 'REQUIRED'])
    await redis.restart()
    await until(async () => (await installation.queues.depth('reversal').catch(() => undefined))?.waiting === 1)
    await until(() => caller.gateway.deps.requestReply.inFlight() === 0)
  })

  it('keeps no reversal from outliving its gateway: the next one queues it', async () => {
    await open('2')
    const pending = caller.put(VISA)
    await until(async () => (await installation.queues.depth('token-create')).waiting === 1)
    await redis.kill9()
    const answer = await pending
    expect([answer.status, answer.body['reversal_status']]).toEqual([500, 'REQUIRED'])
    await caller.close()
    await redis.restart()
    caller = await openGatewayFor(installation, { TOKENMILL_GATEWAY_TIMEOUT_SECONDS: '20' })
    await until(async () => (await installation.queues.depth('reversal').catch(() => undefined))?.waiting === 1)
    await installation.startWorkers({ roles: ['interactive'] })
    const { store } = installation.vault
    const undone = {
      text: `select from tokenmill.receipt where kind = 'reversal' and outcome = 'COMPLETED'`,
      values: [],
    }
    await until(async () => (await store.query(undone)).count === 1)
    const { rows } = await store.query<{ live: number }>({
      text: `select count(*) as live from tokenmill.token where status <> 'DELETED'`,
      values: [],
    })
    expect(rows[0]?.live).toBe(0)
  })

  // The gateway would wait for two minutes for a server that is silent.
  it('that refuses jobs makes it 500 with NONE soon, and says why; nothing of it comes later', async () => {
    await open('120')
    const admin = new Redis(redis.url)
    await admin.config('SET', 'maxmemory', '1')
    const began = performance.now()
    const answer = await caller.put(VISA)
    expect([answer.status, answer.body['reversal_status']]).toEqual([500, 'NONE'])
    expect(performance.now() - began).toBeLessThan(60_000)
    const ready = await fetch(`http://127.0.0.1:${caller.gateway.opsPort}/readyz`)
    expect([ready.status, await ready.text()]).toEqual([503, expect.stringContaining('OOM command not allowed')])
    await admin.config('SET', 'maxmemory', '0')
    await until(async () => (await caller.call('GET', '/readyz')).status === 200)
    expect(await installation.queues.depth('token-create')).toMatchObject({ waiting: 0 })
    expect(await installation.queues.depth('reversal')).toMatchObject({ waiting: 0 })
    admin.disconnect()
  })

  it.each<[string, string, string]>([
    [
      'becomes read-only',
      'alter database DB set default_transaction_read_only = on',
      'alter database DB reset default_transaction_read_only',
    ],
    [
      'has no room for tokens',
      `create function public.fill() returns trigger language plpgsql as 'begin raise exception using errcode = ''disk_full''; end';
       create trigger fill before insert on tokenmill.token execute function public.fill()`,
      'drop trigger fill on tokenmill.token',
    ],
    [
      'denies workers a right',
      'revoke insert on tokenmill.token from tokenmill_worker',
      'grant insert on tokenmill.token to tokenmill_worker',
    ],
  ])('a store that %s makes it 500 with REQUIRED soon, and what was asked for is undone', async (_, set, reset) => {
    await open('120')
    const name = new URL(database.url).pathname.slice(1)
    const admin = new pg.Client({ connectionString: database.url })
    await admin.connect()
    const run = async (text: string) => {
      await admin.query(text.replace('DB', `"${name}"`))
      await admin.query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
        [name],
      )
    }
    await admin.query('set default_transaction_read_only = off')
    const pending = caller.put(VISA)
    await until(async () => (await installation.queues.depth('token-create')).waiting === 1)
    await run(set)
    // What a small write doesn't show workers find out. None can start on a store that is read-only.
    if (!set.includes('read_only')) await installation.startWorkers({ roles: ['interactive'] })
    const answer = await pending
    expect([answer.status, answer.body['reversal_status']]).toEqual([500, 'REQUIRED'])
    await run(reset)
    if (set.includes('read_only')) await installation.startWorkers({ roles: ['interactive'] })
    const done = async (text: string) => (await admin.query<{ n: number }>(text)).rows[0]?.n
    await until(
      async () => (await done(`select count(*)::int as n from tokenmill.receipt where outcome = 'COMPLETED'`)) === 1,
    )
    expect(await done(`select count(*)::int as n from tokenmill.token where status <> 'DELETED'`)).toBe(0)
    await admin.end()
  })

  it('that has lost a job gets it again, so that it is answered', async () => {
    await open('120')
    const pending = caller.put(VISA)
    await until(async () => (await installation.queues.depth('token-create')).waiting === 1)
    await redis.flush()
    await installation.startWorkers({ roles: ['interactive'] })
    expect((await pending).status).toBe(200)
  })
})
