// Which Redis is fit for queues, and how one is reached.
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { ConfigError } from '../../src/config.ts'
import { isUndone } from '../../src/queue/bounded-call.ts'
import type { Queues } from '../../src/queue/engine.ts'
import { openRedis } from '../../src/queue/open-redis.ts'
import { credentialsOf, nodeOf } from '../../src/queue/redis-url.ts'
import { causeOf } from '../../src/server-error.ts'
import { TLS_POLICY } from '../../src/tls.ts'
import { findRedis, freePort, type RedisServer, startRedis } from '../support/redis.ts'
import { until } from '../support/until.ts'
import { keptLog, recorder } from './bundle.ts'

const open = (url: string | string[], prefix = '{t}') => {
  const { log, lines } = keptLog()
  return { opening: openRedis([url].flat(), { prefix, lockMs: 30_000, log }), lines }
}

describe('a Redis URL', () => {
  it('gives host, port, user, password and database', () => {
    expect(nodeOf('redis://')).toEqual({ host: '127.0.0.1', port: 6379 })
    expect(nodeOf('redis://[::1]:7000')).toEqual({ host: '::1', port: 7000 })
    expect(credentialsOf('redis://h')).toEqual({})
    expect(credentialsOf('redis://us%40er:p%2Fw@h:1/3')).toEqual({ username: 'us@er', password: 'p/w', db: 3 })
  })

  it('of rediss asks for TLS 1.2 or better, and for the name where there is one', () => {
    expect(credentialsOf('rediss://cache.example:6380').tls).toEqual({
      ...TLS_POLICY,
      servername: 'cache.example',
    })
    expect(credentialsOf('rediss://10.0.0.1').tls).toEqual({ ...TLS_POLICY })
  })
})

describe.skipIf(!findRedis())('opening Redis', () => {
  let server: RedisServer
  let admin: Redis
  beforeAll(async () => {
    server = await startRedis()
    admin = new Redis(server.url)
  })
  afterAll(async () => {
    admin.disconnect()
    await server.stop()
  })

  it('refuses a server that evicts, in one line that says what to set', async () => {
    await admin.config('SET', 'maxmemory-policy', 'allkeys-lru')
    await expect(open(server.url).opening).rejects.toThrow(ConfigError)
    await expect(open(server.url).opening).rejects.toThrow(/maxmemory-policy noeviction$/)
    await admin.config('SET', 'maxmemory-policy', 'noeviction')
  })

  it('refuses a wrong password as a setting, not as a server that is away', async () => {
    const url = server.url.replace('redis://', 'redis://nobody:wrong@')
    await expect(open(url).opening).rejects.toThrow(ConfigError)
  })

  it('fails within seconds where there is no server', async () => {
    const began = performance.now()
    await expect(open(`redis://127.0.0.1:${await freePort()}`).opening).rejects.toMatchObject({ code: 'queue_away' })
    expect(performance.now() - began).toBeLessThan(60_000)
  })

  it('warns of a server without AOF, and of no other', async () => {
    const first = open(server.url)
    await (await first.opening).close()
    expect(first.lines.join()).not.toContain('AOF')
    await admin.config('SET', 'appendonly', 'no')
    const second = open(server.url)
    await (await second.opening).close()
    expect(second.lines.join()).toContain('without AOF')
    await admin.config('SET', 'appendonly', 'yes')
  })

  it('does with the rights that docs/running.md lists: no CONFIG, no other keys', async () => {
    const rights = [
      ...['on', '>secret', '~{t}:*', 'resetchannels', '-@all', '+@connection', '+@read', '+@write', '+@blocking'],
      ...['+eval', '+evalsha', '+script', '+@transaction', '+info', '+time', '-keys', '-sort', '-sort_ro', '-migrate'],
      ...['-restore', '-rename', '-copy', '-dump', '-client', '+client|setname', '+client|list'],
      ...['+client|id', '-script|flush', '-script|kill'],
    ]
    await admin.call('ACL', 'SETUSER', 'bullmq', ...rights)
    const url = server.url.replace('redis://', 'redis://bullmq:secret@')
    const queues = await open(url).opening
    await works(queues)
    expect(await queues.workersOf('r-works')).toBe(0)
    await queues.obliterate('r-works')
    await queues.close()
  })

  it('does without the right to see other clients', async () => {
    await admin.call('ACL', 'SETUSER', 'blind', 'on', '>secret', '~*', '+@all', '-client|list', '-config')
    const queues = await open(server.url.replace('redis://', 'redis://blind:secret@')).opening
    await works(queues)
    expect(await queues.workersOf('r-works')).toBeUndefined()
    await queues.close()
  })

  it.each<[string, (on: boolean) => Promise<unknown>]>([
    ['OOM', on => admin.config('SET', 'maxmemory', on ? '1' : '0')],
    ['READONLY', on => (on ? admin.replicaof('127.0.0.1', '1') : admin.replicaof('NO', 'ONE'))],
    ['NOREPLICAS', on => admin.config('SET', 'min-replicas-to-write', on ? '1' : '0')],
    [
      'NOPERM',
      on => admin.call('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '+@all', on ? '-@scripting' : '+@scripting'),
    ],
    ['MISCONF', on => failSaves(admin, on)],
  ])('that answers %s is refusing, in its own word, until it takes a write again', async (code, set) => {
    await admin.call('ACL', 'SETUSER', 'narrow', 'on', '>secret', '~*', '+@all')
    const { opening, lines } = open(server.url.replace('redis://', 'redis://narrow:secret@'), '{refuses}')
    const queues = await opening
    try {
      await queues.ping()
      await set(true)
      const refusal = (error: unknown) => causeOf(error)?.code === code && isUndone(error)
      const refused = () =>
        queues.add('r-refused', { id: 'j_1', data: {} }).then(
          () => false,
          error => refusal(error),
        )
      // A connection to a replica is opened anew now and then, and meanwhile nothing is sent.
      await until(refused, { what: `a refusal with ${code}` })
      for (let times = 0; times < 50; times += 1) await queues.add('r-refused', { id: 'j_1', data: {} }).catch(() => {})
      await until(() => queues.ping().then(() => false, refusal), { what: 'a ping that says it, too' })
      expect(queues.trouble()).toMatchObject({ code, server: 'Redis', since: expect.any(Number) })
      const told = lines.filter(line => line.includes('a server refuses'))
      expect(told).toHaveLength(1)
      expect(told[0]).toContain(code === 'MISCONF' ? 'MISCONF' : code)
      await set(false)
      await until(() =>
        queues.ping().then(
          () => true,
          () => false,
        ),
      )
      // A right may be lacked for another command than the one that tries writes.
      if (code !== 'NOPERM') expect(queues.trouble()).toBeUndefined()
      await queues.add('r-refused', { id: 'j_1', data: {} })
      await queues.obliterate('r-refused')
    } finally {
      await set(false)
      await queues.close()
    }
  })

  it('that loads its data, or has no connection left, says so to one who asks whether it can be used', async () => {
    const queues = await open(server.url, '{loads}').opening
    try {
      await admin.config('SET', 'maxclients', '1')
      // Every connection of these queues is ended, and no other is admitted.
      await admin.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
      const code = () =>
        queues.ping().then(
          () => undefined,
          error => causeOf(error)?.code,
        )
      await until(async () => (await code()) === 'MAXCLIENTS')
      await admin.config('SET', 'maxclients', '1000')
      await until(async () => (await code()) === undefined)
    } finally {
      await admin.config('SET', 'maxclients', '1000')
      await queues.close()
    }
  })

  it('is read from once for many jobs that are added in one turn of the event loop', async () => {
    const queues = await open(server.url, '{turn}').opening
    const job = (index: number) => queues.add('token-create', { id: `j_${index}`, data: {} })
    const reads = async () => Number(/total_reads_processed:(\d+)/.exec(await admin.info('stats'))?.[1])
    await job(0)
    const before = await reads()
    await Promise.all(Array.from({ length: 40 }, (_, index) => job(index + 1)))
    expect((await reads()) - before).toBeLessThan(20)
    expect(await queues.depth('token-create')).toMatchObject({ waiting: 41 })
    await queues.close()
  })

  it('keeps few events of a busy queue', async () => {
    const queues = await open(server.url, '{events}').opening
    const { seen, handler } = recorder()
    const worker = queues.work('r-events', handler, { concurrency: 10 })
    for (let i = 0; i < 5; i++) {
      await queues.addBulk(
        'r-events',
        Array.from({ length: 200 }, (_, k) => ({ id: `j_${i}_${k}`, data: {} })),
      )
    }
    await until(() => seen.length === 1_000)
    await worker.close(1_000)
    // Streams are trimmed by whole nodes of a hundred entries.
    expect(await admin.xlen('{events}:r-events:events')).toBeLessThan(300)
    await queues.close()
  })
})

describe.skipIf(!findRedis())('a Redis that loads its data', () => {
  it('says so to one who asks whether it can be used', async () => {
    // It answers once in 1,024 commands that it reads, and reads for 16 s: a busy machine may connect late.
    const server = await startRedis({ args: ['--key-load-delay', '500', '--aof-use-rdb-preamble', 'no'] })
    const queues = await open(server.url, '{loads}').opening
    try {
      const admin = new Redis(server.url)
      await Promise.all(Array.from({ length: 32_768 }, (_, n) => admin.set(`k${n}`, 'x')))
      admin.disconnect()
      const restarted = server.restart()
      const codes = new Set<string | undefined>()
      await until(async () => {
        await queues.ping().catch(error => codes.add(causeOf(error)?.code))
        return codes.has('LOADING')
      })
      await restarted
      await until(() =>
        queues.ping().then(
          () => true,
          () => false,
        ),
      )
    } finally {
      await queues.close()
      await server.stop()
    }
  })
})

describe.skipIf(!findRedis())('a Redis Cluster', () => {
  let server: RedisServer
  beforeAll(async () => {
    server = await startRedis({ args: ['--cluster-enabled', 'yes', '--cluster-announce-ip', '127.0.0.1'] })
    const admin = new Redis(server.url)
    await admin.call('CLUSTER', 'ADDSLOTSRANGE', '0', '16383')
    await until(async () => /cluster_state:ok/.test(String(await admin.call('CLUSTER', 'INFO'))))
    admin.disconnect()
  })
  afterAll(() => server.stop())

  // `x{}y{a}` is hashed whole: Redis looks at the first braces alone.
  it.each(['tokenmill', 'x{}y{a}', '{}', 'a}{b', '}{'])(
    'needs a prefix with a hash tag, which %s has not',
    async prefix => {
      await expect(open([server.url, server.url], prefix).opening).rejects.toThrow(/TOKENMILL_PREFIX/)
    },
  )

  it('works, named by several of its nodes or by one', async () => {
    for (const urls of [[server.url, server.url], [server.url]]) {
      const queues = await open(urls).opening
      await works(queues)
      await queues.close()
    }
  })

  it('hands back the jobs of a process that has ended', async () => {
    const queues = await open(server.url).opening
    const first = recorder(() => new Promise(() => {}))
    const next = recorder()
    const workers = [queues.work('r-back', first.handler, { concurrency: 1, processId: 'p1' })]
    await queues.add('r-back', { id: 'j_1', data: {} })
    await until(() => first.seen.length === 1)
    expect(await queues.handBack('r-back', 'p1')).toBe(1)
    workers.push(queues.work('r-back', next.handler, { concurrency: 1, processId: 'p2' }))
    await until(async () => next.seen.length === 1 && !(await queues.has('r-back', 'j_1')))
    expect(next.seen[0]).toMatchObject({ attempt: 1, stalled: 1 })
    await Promise.all(workers.map(worker => worker.close(0)))
    await queues.close()
  })

  it('tells how many workers listen', async () => {
    const queues = await open(server.url).opening
    const worker = queues.work('r-listen', recorder().handler, { concurrency: 1 })
    await worker.ready
    await until(async () => (await queues.workersOf('r-listen')) === 1)
    await worker.close(1_000)
    await queues.close()
  })
})

/** Lets Redis fail to save: what it would write its file to is a folder. */
async function failSaves(admin: Redis, on: boolean): Promise<void> {
  const [, dir = ''] = (await admin.config('GET', 'dir')) as string[]
  const place = join(dir, 'dump.rdb')
  if (on) {
    mkdirSync(place, { recursive: true })
    await admin.config('SET', 'save', '3600 1')
  } else {
    rmSync(place, { recursive: true, force: true })
  }
  await admin.bgsave()
  await until(async () => {
    const info = await admin.info('persistence')
    return /rdb_bgsave_in_progress:0/.test(info) && info.includes(`rdb_last_bgsave_status:${on ? 'err' : 'ok'}`)
  })
  if (!on) await admin.config('SET', 'save', '')
}

async function works(queues: Queues): Promise<void> {
  const { seen, handler } = recorder(() => (seen.length === 1 ? { retryInMs: 1 } : { done: true }))
  const worker = queues.work('r-works', handler, { concurrency: 2 })
  await queues.addBulk(
    'r-works',
    [1, 2, 3].map(n => ({ id: `j_${n}`, data: {} })),
  )
  await queues.add('r-works', { id: 'j_4', data: {} })
  await until(() => seen.length === 5)
  await until(async () => !(await queues.has('r-works', 'j_1')))
  expect(await queues.claimInstallation('one')).toBe('one')
  await worker.close(1_000)
}
