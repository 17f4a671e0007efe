// Each setting that causes trouble is really set; `doctor` names it and exits with 1.

import { randomUUID } from 'node:crypto'
import { chmod } from 'node:fs/promises'
import { join } from 'node:path'
import { Client } from 'pg'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { warnOfConnections } from '../../../cli/open/connections.ts'
import type { Check } from '../../../producers/operate/check.ts'
import { judgeDurability } from '../../../producers/operate/checks/durability.ts'
import { judgeOwner } from '../../../producers/operate/checks/owner.ts'
import { judgeCompression, judgeTimeout, judgeWalSize } from '../../../producers/operate/checks/wal.ts'
import { judgeConnections, judgePadded } from '../../../producers/operate/doctor.ts'
import { judgeRoom } from '../../../producers/operate/redis-memory.ts'
import { openLook } from '../../../producers/operate/watch.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { startBeat } from '../../../src/store/access/beat.ts'
import * as processes from '../../../src/store/access/processes.ts'
import * as seenNow from '../../../src/store/console/now.ts'
import { openStore } from '../../../src/store/pool.ts'
import { listHolders } from '../../../src/store/watch/lock-waits.ts'
import { cli } from '../../cli/command-bench.ts'
import { describeRedis, describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { startCommand } from '../../support/process.ts'
import { type RedisServer, startRedis } from '../../support/redis.ts'
import { until } from '../../support/until.ts'

const examine = async (env: NodeJS.ProcessEnv) => {
  const said = await cli(['doctor', '--json'], { env })
  const { hurts, checks } = said.json<{ hurts: boolean; checks: Check[] }>()
  expect(said.status).toBe(hurts ? 1 : 0)
  return Object.fromEntries(checks.map(check => [check.name, check]))
}

describeStore('doctor', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
    // The installation of a test writes this file with another mode.
    await chmod(installation.clientFile, 0o600)
  })
  afterAll(() => installation?.close())

  it('names a PostgreSQL that may lose what it has written, and says what it asks of one', async () => {
    const checks = await examine(installation.env)
    // The server of a test run doesn't wait for its disk.
    expect(checks['postgres durability']).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/^fsync\b.* off: /),
    })
    expect(checks['postgres max_wal_size']?.says).toMatch(/^\d+(\.\d)? [GM]iB/)
    expect(checks['postgres checkpoint_timeout']).toMatchObject({ state: 'well', says: '30 min' })
    expect(checks['postgres wal_compression']).toMatchObject({ state: 'well' })
    expect(checks['key files']).toMatchObject({ state: 'well' })
    expect(checks['redis memory']).toMatchObject({ state: 'well' })
    expect(checks['releases']).toMatchObject({ state: 'unknown' })
  })

  it('says what an owner of the database could do here', async () => {
    const checks = await examine(installation.env)
    expect(checks['owner of the database']?.says).toMatch(/ owns the tables.* can read names.*removing its receipt/)
    const owner = { owner: 'vault', isSuperuser: false, alike: [], working: [] }
    expect(judgeOwner(owner)).toMatchObject({
      state: 'well',
      says: expect.stringMatching(/^vault owns the tables and /),
    })
    expect(judgeOwner({ ...owner, alike: ['postgres'] })).toMatchObject({
      state: 'well',
      says: expect.stringContaining('in effect postgres'),
    })
    expect(judgeOwner({ ...owner, isSuperuser: true })).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/^the owner is a superuser/),
    })
    const working = ['tokenmill worker bulk', 'tokenmill gateway', 'tokenmill worker interactive']
    expect(judgeOwner({ ...owner, working })).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/^gateway, workers can do what the owner can/),
      next: expect.stringContaining('schema login'),
    })
  })

  it('names a role that works as the owner of the database', async () => {
    const { log } = installation.session
    const own = openStore(engine.databaseUrl, { log, connectionsMax: 1, application: 'tokenmill gateway' })
    await own.query({ text: 'select 1' })
    const checks = await examine(installation.env)
    await own.close()
    expect(checks['owner of the database']).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/^gateway can do what the owner can/),
    })
  })

  it('counts tokens of numbers with zeros in front, and says what to do', async () => {
    expect((await examine(installation.env))['padded numbers']).toMatchObject({ state: 'well' })
    const { store } = installation.vault
    await store.query({
      text: `insert into tokenmill.token (token_id, token_scope, status, token_type, cards, bin, last_four, created_at, updated_at, version)
select gen_random_uuid(), $1, 'ACTIVE', 'REUSE', array[gen_random_uuid()], bin, '1111', now(), now(), 1
from unnest(array['00041111', '000000', '41111111']) as bin`,
      values: [installation.scope],
    })
    expect((await examine(installation.env))['padded numbers']).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/^2 tokens of card numbers with zeros in front/),
      next: expect.stringContaining('token-update'),
    })
    expect(judgePadded({ tokens: 3, sampled: 200_000 }).says).toContain('among 200,000 tokens')
  })

  it('ends 1 and says so where PostgreSQL is away', async () => {
    const said = await cli(['doctor', '--json'], {
      env: { ...installation.env, DATABASE_URL: 'postgres://nobody:nothing@127.0.0.1:1/none' },
    })
    expect(said).toMatchObject({ status: 1, stderr: expect.stringContaining('store') })
    const { checks } = said.json<{ checks: Check[] }>()
    expect(checks.find(({ name }) => name === 'store')).toMatchObject({ state: 'critical', says: 'the store is away' })
    expect(checks.find(({ name }) => name === 'postgres durability')).toMatchObject({ state: 'unknown' })
  })

  it.each([
    ['101', 'critical', 'Redis is full and refuses jobs (101 B of 100 B, r:1)'],
    ['90', 'warning', 'Redis is nearly full (90 B of 100 B, r:1)'],
    ['89', undefined, undefined],
  ])('judges a Redis of which %s of 100 bytes are used', (used, state, says) => {
    const fields = new Map([
      ['used_memory', used],
      ['maxmemory', '100'],
    ])
    const verdict = judgeRoom({ server: 'r:1', fields })
    expect({ state: verdict?.state, says: verdict?.says }).toEqual({ state, says })
  })

  it.each([
    ['a max_wal_size of 16 GiB', () => judgeWalSize(16 * 2 ** 30), 'well', '16 GiB'],
    ['one of a MiB less', () => judgeWalSize(16 * 2 ** 30 - 2 ** 20), 'warning', /^16 GiB: a large migration/],
    ['a checkpoint_timeout of half an hour', () => judgeTimeout(1_800_000), 'well', '30 min'],
    ['PostgreSQL’s own', () => judgeTimeout(300_000), 'warning', /^5 min: after each checkpoint every page/],
  ])('judges %s', (_, judge, state, says) => {
    expect(judge()).toMatchObject({ state, says: typeof says === 'string' ? says : expect.stringMatching(says) })
  })

  it.each([
    ['lz4', ['pglz', 'lz4', 'on', 'off'], 'well', 'lz4'],
    ['zstd', ['pglz', 'lz4', 'zstd', 'on', 'off'], 'well', 'zstd'],
    ['off', ['pglz', 'lz4', 'zstd', 'on', 'off'], 'warning', 'off, though this server has lz4 and zstd'],
    ['pglz', ['pglz', 'lz4', 'on', 'off'], 'warning', 'pglz, though this server has lz4'],
    ['off', ['pglz', 'on', 'off'], 'well', 'off; this server has neither lz4 nor zstd'],
    ['pglz', ['pglz', 'on', 'off'], 'warning', 'pglz: pglz takes more processor time than the smaller WAL saves'],
    ['off', null, 'well', 'off; this server has neither lz4 nor zstd'],
    ['on', null, 'warning', 'on: pglz takes more processor time than the smaller WAL saves'],
  ])('judges wal_compression %s of a server that offers %j', (value, choices, state, says) => {
    expect(judgeCompression({ value, choices })).toMatchObject({ state, says })
  })

  it.each([
    ['on', 'well', 'fsync and full_page_writes are on, synchronous_commit is on'],
    ['remote_apply', 'well', 'fsync and full_page_writes are on, synchronous_commit is remote_apply'],
    ['remote_write', 'warning', /^synchronous_commit is remote_write: a standby that takes over/],
    ['local', 'warning', /^synchronous_commit is local: a standby that takes over/],
    ['off', 'warning', /^synchronous_commit off: a crash/],
  ])('judges a synchronous_commit of %s', (commit, state, says) => {
    const settings = { fsync: 'on', full_page_writes: 'on', synchronous_commit: commit }
    const verdict = judgeDurability(new Map(Object.entries(settings).map(([name, value]) => [name, { value }])))
    expect(verdict).toMatchObject({ state, says: typeof says === 'string' ? says : expect.stringMatching(says) })
  })

  it('names a file of keys that others may read', async () => {
    const path = join(installation.dataDir, 'system', 'gateway.jwk')
    await chmod(path, 0o644)
    const said = await cli(['doctor'], { env: installation.env })
    expect(said).toMatchObject({ status: 1, stderr: expect.stringContaining('key files') })
    expect(said.stdout).toContain(`others may read ${path} (644)`)
    await chmod(path, 0o600)
  })

  it('compares the pools of all processes with the connections that the server admits', async () => {
    const { store } = installation.vault
    const processId = randomUUID()
    const known = {
      processId,
      role: 'three-ds',
      host: 'a',
      version: '0.0.1',
      kinds: [],
      features: [],
      keys: [],
    } as const
    await processes.see(store, { ...known, connections: 10 })
    expect((await examine(installation.env))['postgres connections']).toMatchObject({
      state: 'well',
      says: expect.stringContaining('the pools of 1 process open at most 10 connections'),
    })
    await processes.leave(store, known)
    const greedy = randomUUID()
    await processes.see(store, { ...known, processId: greedy, connections: 100_000 })
    const checks = await examine(installation.env)
    await processes.leave(store, { ...known, processId: greedy })
    expect(checks['postgres connections']?.state).toBe('warning')
    expect(checks['releases']).toMatchObject({ state: 'well' })
  })

  it('names the limit of a user whose processes may open more', async () => {
    const { log } = installation.session
    // Only the processes of this user count against its limit.
    const limited = new Client({ connectionString: engine.databaseUrl })
    await limited.connect()
    const login = `limited_${randomUUID().slice(0, 8)}`
    await limited.query(
      `create role ${login} login password 'x' connection limit 5; grant tokenmill_gateway to ${login}`,
    )
    const url = new URL(engine.databaseUrl)
    url.username = login
    url.password = 'x'
    const own = openStore(url.href, {
      log,
      connectionsMax: 7,
      role: 'tokenmill_gateway',
      application: 'tokenmill gateway',
    })
    const leave = await startBeat({ store: own, log }, { role: 'gateway', processId: randomUUID() })
    try {
      const check = (await examine(installation.env))['postgres connections']
      expect(check).toMatchObject({ state: 'warning', says: expect.stringMatching(`the user ${login} may open 5`) })
      expect(check?.next).toMatch(new RegExp(`^.alter role ${login} connection limit \\d+`))
      const lines: string[] = []
      const hearing = { ...log, warn: (line: string) => lines.push(line) } as unknown as typeof log
      // A role that starts says the same, and goes on.
      await warnOfConnections({ log: hearing }, { store: own, embedded: false }, 12)
      expect(lines).toEqual([
        expect.stringMatching(
          new RegExp(`may open \\d+ connections to PostgreSQL, but the user ${login} may open 5 .*alter role ${login}`),
        ),
      ])
      await limited.query(`alter role ${login} connection limit -1`)
      await warnOfConnections({ log: hearing }, { store: own, embedded: false }, 12)
      expect(lines).toHaveLength(1)
      expect((await examine(installation.env))['postgres connections']?.says).not.toContain(login)
    } finally {
      await leave()
      await own.close()
      await limited.query(`drop owned by ${login}; drop role ${login}`)
      await limited.end()
    }
  })

  it('says by role what processes may open, and which limit is too low', () => {
    const all = [30, 30].map(connections => ({ role: 'bulk' as const, connections, host: 'a', login: 'u' }))
    const gateway = { role: 'gateway' as const, connections: 14, host: 'b', login: 'g' }
    const limits = { most: 100, ofServer: 97, ofDatabase: undefined, ofUsers: new Map() }
    const told = judgeConnections([...all, gateway], limits)
    expect(told).toMatchObject({
      state: 'well',
      says: 'the pools of 3 processes open at most 76 connections (bulk 60, gateway 14, workers 2), the server admits 97',
    })
    expect(judgeConnections([...all, gateway], { ...limits, ofDatabase: 80 })).toMatchObject({
      state: 'warning',
      says: expect.stringMatching(/this database admits 80$/),
      next: expect.stringContaining('connection limit 86'),
    })
  })

  it('names a gateway that logs in as a user who can read cards, and such a gateway can not pass for a worker', async () => {
    const { log } = installation.session
    const store = openStore(engine.databaseUrl, {
      log,
      connectionsMax: 1,
      role: 'tokenmill_gateway',
      application: 'tokenmill gateway',
    })
    const leave = await startBeat({ store, log }, { role: 'gateway' })
    expect((await examine(installation.env))['gateway login']).toMatchObject({ state: 'warning' })
    await expect(startBeat({ store, log }, { role: 'bulk', kinds: ['token-batch'] })).rejects.toMatchObject({
      code: '42501',
    })
    await expect(processes.removeSilent(store, 0)).rejects.toMatchObject({ code: '42501' })
    await leave()
    await store.close()
    expect((await processes.list(installation.vault.store)).some(({ role }) => role === 'gateway')).toBe(false)
  })
})

/** What another session does and keeps, what then waits, and the table that is named. */
const HELD = [
  ['an administrator’s LOCK TABLE', 'lock table tokenmill.token', 'select 1 from tokenmill.token limit 1', 'token'],
  [
    'a row of a transaction that was left open',
    `update tokenmill.scope set par = par`,
    `update tokenmill.scope set par = par`,
    'scope',
  ],
  [
    'a reader before which a change of the schema waits',
    'select 1 from tokenmill.batch limit 1',
    'alter table tokenmill.batch alter column batch_id drop default',
    'batch',
  ],
  [
    'an index that is being made',
    'lock table tokenmill.card in share mode',
    `delete from tokenmill.card where false`,
    'card',
  ],
] as const

describeStore('while another session holds what others wait for', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  it.each(HELD)(
    'status, doctor, explain and the console say who holds what since when: %s',
    async (_, hold, wait, table) => {
      const { vault, queues, env } = installation
      const [holder, waiter] = ['psql of a colleague', 'waits'].map(
        name => new Client({ connectionString: engine.databaseUrl, application_name: name }),
      ) as [Client, Client]
      let waited: Promise<unknown> = Promise.resolve()
      try {
        await Promise.all([holder.connect(), waiter.connect()])
        const { rows } = await holder.query('select pg_backend_pid() as pid, session_user::text as "user"')
        const { pid, user } = rows[0] as { pid: number; user: string }
        await holder.query('begin')
        await holder.query(hold)
        waited = waiter.query(wait).catch(() => undefined)
        await until(async () => (await listHolders(vault.store, 3_000)).length > 0)
        const who = new RegExp(
          `process ${pid} of PostgreSQL \\(user ${user}, psql of a colleague\\) has held tokenmill\\.${table} \\(.*idle in transaction\\) for \\d+ (s|min); \\d+ sessions? waits? for it, the first for \\d+ (s|min)`,
        )
        const named = (said: Awaited<ReturnType<typeof cli>>) =>
          said.json<{ checks: Check[] }>().checks.find(({ name }) => name === 'locks')
        const told = { says: expect.stringMatching(who), next: expect.stringContaining(`pg_terminate_backend(${pid})`) }
        expect(named(await cli(['status', '--json'], { env }))).toMatchObject(told)
        expect(named(await cli(['doctor', '--json'], { env }))).toMatchObject(told)
        // The explanation itself may wait for the lock: the line comes meanwhile, or with it.
        const explained = startCommand(['explain', 't00000000000000000000000000'], { env })
        await explained.line(who, { stream: 'stderr' })
        await openLook({
          store: vault.store,
          queues,
          catalogue: CATALOGUE,
          redis: undefined,
          scheduleLateMs: 900_000,
          clock: Date.now,
        })()
        const shown = await seenNow.listChecks({ sees: 'all' } as never, vault.store)
        expect(shown.find(({ name }) => name === 'locks')).toMatchObject(told)
        await holder.query('rollback')
        await explained.exit
      } finally {
        await holder.end()
        await waited
        await waiter.end()
      }
    },
  )
})

describeRedis('doctor of a Redis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis({ args: ['--appendonly', 'no', '--maxmemory-policy', 'allkeys-lru'] })
  })
  afterAll(() => redis?.stop())
  describeStore('that may lose jobs', engine => {
    let installation: Installation
    beforeAll(async () => {
      installation = await openInstallation(engine)
    })
    afterAll(() => installation?.close())

    it('is named by its policy and its AOF, though no role would start on it', async () => {
      const checks = await examine({ ...installation.env, REDIS_URL: redis.url })
      expect(checks['redis memory']).toMatchObject({ state: 'warning', says: expect.stringContaining('allkeys-lru') })
      expect(checks['redis AOF']).toMatchObject({ state: 'warning' })
      expect(checks['redis version']?.state).toBe('well')
    })

    it('that is away is unknown', async () => {
      const checks = await examine({ ...installation.env, REDIS_URL: 'redis://127.0.0.1:1' })
      expect(checks['redis AOF']).toMatchObject({ state: 'unknown', says: 'the queue server is away' })
    })
  })
})

describeRedis('a full Redis', () => {
  let redis: RedisServer
  beforeAll(async () => {
    redis = await startRedis({ args: ['--maxmemory', '100kb'] })
  })
  afterAll(() => redis?.stop())
  describeStore('that refuses jobs', engine => {
    let installation: Installation
    beforeAll(async () => {
      installation = await openInstallation(engine)
    })
    afterAll(() => installation?.close())

    it('is critical for doctor and for status, though it answers', async () => {
      const env = { ...installation.env, REDIS_URL: redis.url }
      const full = { state: 'critical', says: expect.stringContaining('Redis is full and refuses jobs') }
      expect((await examine(env))['redis memory']).toMatchObject(full)
      const { checks } = (await cli(['status', '--json'], { env })).json<{ checks: Check[] }>()
      expect(checks.find(({ name }) => name === 'queues')).toMatchObject({
        ...full,
        next: expect.stringContaining('a results queue that nobody reads'),
      })
    })

    it.each(['workers', 'gateway'])(
      'ends %s that start with what to do, and with the status that an absent one gives',
      async role => {
        const end = async (url: string) => {
          const child = startCommand([role], { env: { ...installation.env, REDIS_URL: url, TOKENMILL_HTTP_PORT: '0' } })
          const { code } = await child.exit
          return { code, stderr: child.stderr() }
        }
        const [full, absent] = await Promise.all([end(redis.url), end('redis://127.0.0.1:1')])
        expect(full.stderr).toMatch(
          /^tokenmill: Redis is full and refuses jobs: OOM command not allowed .*Next: raise maxmemory; or look for .*; then try again$/m,
        )
        expect(full.stderr).not.toContain('cannot be reached')
        expect(absent.stderr).toContain('The queue server cannot be reached')
        expect([full.code, absent.code]).toEqual([1, 1])
      },
    )
  })
})
