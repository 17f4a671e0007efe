// The answers while the queue server is away, and the work that is done once it is back.
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

  it('that has lost a job gets it again, so that it is answered', async () => {
    await open('120')
    const pending = caller.put(VISA)
    await until(async () => (await installation.queues.depth('token-create')).waiting === 1)
    await redis.flush()
    await installation.startWorkers({ roles: ['interactive'] })
    expect((await pending).status).toBe(200)
  })
})
