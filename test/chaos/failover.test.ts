// The store fails over during a migration: its primary is killed, its standby is promoted, and the old primary comes
// back and takes writes. DATABASE_URL names both hosts throughout.
import { connect, createServer } from 'node:net'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { Fault } from '../../src/errors.ts'
import { openLog } from '../../src/log.ts'
import { openStore } from '../../src/store/pool.ts'
import { openInstallation } from '../support/installation.ts'
import { type PostgresPair, startPair } from '../support/postgres-pair.ts'
import { findServer } from '../support/postgres-tools.ts'
import { startScript } from '../support/process.ts'
import { until } from '../support/until.ts'
import { type Chaos, childrenRunning, newScope, QUICK } from './bundle.ts'
import { disturb, expectExactlyOnce, newFile, startMigrate } from './migration.ts'

/** Longer than a process waits that has worked on the store before. */
const ANSWER_MS = 2_500
const CHUNK = 60
const ROWS = 40 * CHUNK
const COUNTS = `select (select count(*)::int from tokenmill.token) as tokens,
  (select count(*)::int from tokenmill.receipt) as receipts, (select count(*)::int from bullmq.job) as jobs`

describe.skipIf(!findServer())('a store of two hosts', () => {
  const chaos = { engine: 'postgres' } as Chaos
  let pair: PostgresPair
  const file = async (rows: number, chunk: number) => ({
    ...(await newFile(chaos.installation.dataDir, await newScope(chaos), rows)),
    chunk,
  })

  beforeAll(async () => {
    pair = await startPair()
    const servers = { name: 'postgres', prefix: '{pair}', redisUrls: undefined, databaseUrl: pair.url } as const
    const installation = await openInstallation(servers, QUICK)
    const { env, clientFile, vault } = installation
    const ask = async <R>(text: string, values: unknown[] = []) => (await vault.store.query<R>({ text, values })).rows
    Object.assign(chaos, { installation, env, clientFile, ask })
    await installation.startWorkers({ roles: ['bulk'], processes: 2 })
  })

  afterAll(async () => {
    await chaos.installation?.close()
    await pair?.remove()
  })

  it('loses and doubles no row of a migration though the primary is killed and the standby promoted', async () => {
    const workers = childrenRunning('worker-process')
    const runs = await disturb(chaos, await file(ROWS, CHUNK), async () => {
      await pair.primary.kill9()
      await pair.promote()
    })
    expect(runs).toBe(1)
    expect(childrenRunning('worker-process')).toEqual(workers)
    expect(await chaos.ask('select timeline from tokenmill.cluster')).toEqual([{ timeline: 2 }])
  })

  it('gives nothing to the old primary that comes back and takes writes, and raises an alarm', async () => {
    await pair.primary.start()
    await pair.primary.ask('alter system reset synchronous_standby_names')
    await pair.primary.ask('select pg_reload_conf()')
    const isAlone = async () =>
      (await pair.primary.ask(`select 1 where current_setting('synchronous_standby_names') = ''`)).length === 1
    await until(isAlone)
    await pair.primary.ask('create table public.written_to ()')
    const before = await pair.primary.ask(COUNTS)
    const cards = await file(10 * CHUNK, CHUNK)
    const ended = await startMigrate(chaos, cards).end()
    expect(ended, ended.stderr).toMatchObject({ code: 3 })
    await expectExactlyOnce(chaos, cards, ended.json)
    expect(await pair.primary.ask(COUNTS)).toEqual(before)
    await until(() => chaos.installation.vault.store.writableServers() === 2)
  })

  // A process that stands still for seconds rightly goes to the other server; one of too little patience always does.
  it('is on the later timeline for a process that has just begun, though that server answers late', {
    retry: 2,
  }, async () => {
    const late = createServer(client => {
      const forward = () => client.pipe(connect(pair.standby.port, '127.0.0.1').once('error', () => client.destroy()))
      client.once('error', () => undefined)
      setTimeout(() => forward().pipe(client), ANSWER_MS)
    })
    await new Promise<void>(resolve => late.listen(0, '127.0.0.1', resolve))
    const { port } = late.address() as { port: number }
    const begun = startScript('test/chaos/witness.ts', [pair.url.replace(`:${pair.standby.port}`, `:${port}`)])
    await begun.line(/on \d+\n/)
    begun.write()
    expect(await begun.exit).toMatchObject({ code: 0 })
    expect(begun.stdout()).toMatch(new RegExp(`^on ${pair.standby.port}\n`))
    late.close()
  })

  it('is away while only the old primary answers, though that takes writes', async () => {
    const { store } = chaos.installation.vault
    await pair.standby.stop()
    const refused = await store.query({ text: 'select 1' }).catch(error => error)
    expect(refused).toBeInstanceOf(Fault)
    expect(refused).toMatchObject({ code: 'store_away' })
    // Connects to the old primary's own address, to which a name for the primary could lead.
    const alone = openStore(pair.primary.url, { log: openLog('silent'), connectionsMax: 1 })
    const left = await alone.query({ text: 'select 1' }).catch(error => error.cause?.message)
    expect(left).toBe('this server was left behind: its timeline is 1, 2 was seen')
    await alone.close()
  })

  it('leaves the old primary, though every connection to it is well, once the later timeline is seen', async () => {
    // A process that hasn't seen the later timeline.
    const witness = startScript('test/chaos/witness.ts', [pair.url])
    await witness.line(new RegExp(`on ${pair.primary.port}\n`))
    await pair.standby.start()
    await witness.line(new RegExp(`on ${pair.standby.port}\n`))
    await witness.line(/two PostgreSQL servers take writes/, { stream: 'stderr' })
    witness.write()
    expect(await witness.exit).toMatchObject({ code: 0 })
    expect(await chaos.ask('select pg_is_in_recovery() as standby')).toEqual([{ standby: false }])
  })
})
