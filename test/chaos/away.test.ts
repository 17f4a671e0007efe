// Servers that are away for a while: jobs wait for them and use up no attempts.
import { beforeAll, expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import type { Client } from '../../producers/client.ts'
import { until } from '../support/until.ts'
import { volume } from '../support/volume.ts'
import { type Chaos, describeChaos, newScope } from './bundle.ts'
import { CHUNK, expectExactlyOnce, newFile, quickStoring, slowStoring, startMigrate, untilMiddle } from './migration.ts'

const ROWS = volume(40, 100) * CHUNK
const TOKENS = 20
const JOBS = volume(300, 600)
const AWAY_MS = 5_000

async function makeTokens(client: Client, scope: string): Promise<string[]> {
  const calls = Array.from({ length: TOKENS }, async (_, index) => {
    const card = { cardNumber: panOf(index, 9), expiryMonth: 12, expiryYear: 2031 }
    const request = { token_scope: scope, ...(await client.encryptCard(card)) }
    return String((await client.call('token-create', request)).record?.['reuse_token'])
  })
  return Promise.all(calls)
}

const startWorkers = ({ installation }: Chaos) =>
  installation.startWorkers({ roles: ['interactive', 'bulk'], processes: 1 })

/**
 * Migrates a file and works single jobs while a server goes away and comes back. No attempt is used up, and no job is
 * lost.
 */
async function expectPatience(chaos: Chaos, server: { leave(): Promise<void>; come(): Promise<void> }): Promise<void> {
  const { installation } = chaos
  const client = await installation.connect({ resendMs: 2_000 })
  const tokens = await makeTokens(client, await newScope(chaos))
  const file = await newFile(installation.dataDir, await newScope(chaos), ROWS)
  await slowStoring(chaos)
  const run = startMigrate(chaos, file)
  await untilMiddle(chaos, file, run)
  const names = Array.from({ length: JOBS }, (_, index) => ({
    kind: 'token-update' as const,
    request: { id: tokens[index % TOKENS], card_holder_name: `HOLDER ${index}` },
  }))
  const results: { code: number; attempt: number }[] = []
  let outage: Promise<void> | undefined
  for await (const { result } of client.bulk(names, { inFlight: 100 })) {
    results.push({ code: result.code, attempt: result.attempt })
    if (results.length === JOBS / 4) outage = away(server)
  }
  await outage
  const isQuick = () =>
    quickStoring(chaos).then(
      () => true,
      () => false,
    )
  await until(isQuick, { what: 'the store' })
  expect(results).toHaveLength(JOBS)
  expect(results.filter(({ code, attempt }) => code !== 200 || attempt !== 1)).toEqual([])
  const ended = await run.end()
  expect(ended, ended.stderr).toMatchObject({ code: 3 })
  await expectExactlyOnce(chaos, file, ended.json)
  const attempts = await chaos.ask('select distinct attempt, failed_records as failed from tokenmill.receipt')
  expect(attempts).toEqual([{ attempt: 1, failed: 0 }])
  await client.close()
}

async function away({ leave, come }: { leave(): Promise<void>; come(): Promise<void> }): Promise<void> {
  await leave()
  const left = performance.now()
  await until(() => performance.now() - left > AWAY_MS)
  await come()
}

describeChaos('work waits, using no attempt up,', 'redis', chaos => {
  beforeAll(() => startWorkers(chaos))

  it('while PostgreSQL is away', async () => {
    await expectPatience(chaos, { leave: () => chaos.postgres.stop(), come: () => chaos.postgres.start() })
  })

  it('while Redis is away', async () => {
    await expectPatience(chaos, { leave: () => chaos.redis.kill9(), come: () => chaos.redis.restart() })
  })
})

describeChaos('work waits, using no attempt up,', 'postgres', chaos => {
  beforeAll(() => startWorkers(chaos))

  it('while PostgreSQL, store and queues in one, is away', async () => {
    await expectPatience(chaos, { leave: () => chaos.postgres.stop(), come: () => chaos.postgres.start() })
  })
})
