// Results by keys that the client's file doesn't have: the library takes over an announced key and keeps it, and neither
// believes nor acknowledges a result by a key that nobody announced.
import { mkdtemp, readFile, rm, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, afterEach, beforeAll, expect, it } from 'vitest'
import { newKeysPath, openTrustedKeys, readNewKeys } from '../../../producers/client/trusted-keys.ts'
import { type Client, connect } from '../../../producers/client.ts'
import { NOTHING_ACKNOWLEDGED, openInbox } from '../../../producers/results.ts'
import { sealLiveKeys } from '../../../src/job/answer/live-keys.ts'
import { type InstallationKey, openResult, sealResult } from '../../../src/job/answer/result.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import type { Queues } from '../../../src/queue/engine.ts'
import { openPostgres } from '../../../src/queue/open-postgres.ts'
import { openRedis } from '../../../src/queue/open-redis.ts'
import { openQueuePool } from '../../../src/store/queue-pool.ts'
import { describeEngines } from '../../support/engines.ts'
import { until } from '../../support/until.ts'
import { makeNextKey, makeParties, type Parties, silent } from '../bundle.ts'

describeEngines('results by a new key', engine => {
  let queues: Queues
  let parties: Parties
  let dir: string
  const closers: (() => Promise<unknown>)[] = []
  let count = 0

  beforeAll(async () => {
    parties = await makeParties()
    dir = await mkdtemp(join(tmpdir(), 'trusted-keys-'))
    const options = { prefix: engine.prefix, lockMs: 30_000, log: silent }
    if (engine.redisUrls) {
      queues = await openRedis(engine.redisUrls, options)
    } else {
      const pool = openQueuePool(engine.databaseUrl, 8)
      queues = await openPostgres(pool, options)
      closers.push(() => pool.end())
    }
  })
  const opened: Client[] = []
  afterEach(async () => {
    for (const client of opened.splice(0)) await client.close()
  })
  afterAll(async () => {
    await queues?.close()
    for (const close of closers) await close()
    await rm(dir, { recursive: true, force: true })
  })

  const queue = () => resultsQueue(parties.credentials.signingKey.clientId)
  /** Puts a result on the queue, signed by `key`; returns its job's id. */
  async function put(key: InstallationKey, newKeys: string[] = []): Promise<string> {
    const { clientId } = parties.credentials.signingKey
    count += 1
    const id = `r_${count}`
    const body = JSON.stringify({ type: 'result', result_id: id, receipt_id: id, revision: 1, jti: id })
    await queues.add(queue(), { id, data: sealResult(body, { clientId, resultId: id, revision: 1 }, key, newKeys) })
    return id
  }
  async function listen(file: string, tell?: (line: string) => void) {
    const statements = await readNewKeys(file)
    const credentials = { ...parties.credentials, newKeys: { file, statements } }
    const client = await connect({ queues, credentials, log: silent, resendMs: 600, ...(tell ? { tell } : {}) })
    opened.push(client)
    const seen: string[] = []
    client.results(delivery => {
      seen.push(delivery.result_id)
    })
    return { client, seen }
  }

  it('are read from the announcement on, by a reader that was away meanwhile, and after a restart', async () => {
    const file = join(dir, 'read.new-keys.json')
    const next = makeNextKey(parties)
    const first = await listen(file)
    const announced = await put(parties.installation, [next.statement])
    await until(() => first.seen.includes(announced))
    expect((await stat(file)).mode & 0o777).toBe(0o600)
    expect(JSON.parse(await readFile(file, 'utf8'))).toEqual({ new_keys: [next.statement] })
    const plain = await put(next.key)
    await until(() => first.seen.includes(plain))
    await first.client.close()
    const again = await listen(file)
    const later = await put(next.key)
    await until(() => again.seen.includes(later))
    await again.client.close()
    // This client didn't see the announcement; the result carries it.
    const late = await listen(join(dir, 'late.new-keys.json'))
    const own = await put(next.key, [next.statement])
    await until(() => late.seen.includes(own))
    await until(() => late.client.counts().taken === 1)
    expect(late.client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 1 })
  })

  it('wait on the queue until the key is known, and hold up no others', async () => {
    const next = makeNextKey(parties)
    const lines: string[] = []
    const { client, seen } = await listen(join(dir, 'wait.new-keys.json'), line => lines.push(line))
    const early = await put(next.key)
    await until(async () => (await queues.stateOf(queue(), early)) === 'delayed')
    const other = await put(parties.installation)
    await until(() => client.counts().taken === 1)
    expect(seen).toEqual([other])
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 1 })
    expect(lines).toEqual([expect.stringContaining('signed by a key that the client file does not have')])
    await put(parties.installation, [next.statement])
    await until(() => client.counts().taken === 3)
    expect(seen).toContain(early)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 3 })
  })

  it('put off a result that waited for its reader for long, too, and say what to do', async () => {
    const next = makeNextKey(parties)
    const trusted = openTrustedKeys(parties.credentials, silent)
    const { clientId } = parties.credentials.signingKey
    await put(next.key)
    const putAt = Date.now()
    await until(() => Date.now() - putAt > 1_100)
    const lines: string[] = []
    const openedAt = Date.now()
    const inbox = openInbox(queues, { clientId, ...trusted }, async () => 'taken', {
      concurrency: 5,
      log: silent,
      retryMs: 10,
      unprovedMs: 1_000,
      tell: line => lines.push(line),
    })
    await until(() => inbox.counts.unproved === 1)
    expect(Date.now() - openedAt).toBeGreaterThanOrEqual(1_000)
    expect(lines).toEqual([expect.stringContaining('Get a new client file')])
    await inbox.close(1_000)
  })

  it('are not believed if only a stranger announces the key, and end in the failed set with their reason', async () => {
    const stranger = await makeParties()
    const forged = makeNextKey({ ...stranger, credentials: parties.credentials })
    const trusted = openTrustedKeys(parties.credentials, silent)
    const { clientId } = parties.credentials.signingKey
    const seen: string[] = []
    const inbox = openInbox(
      queues,
      { clientId, ...trusted },
      async delivery => {
        seen.push(delivery.result_id)
        return 'taken'
      },
      { concurrency: 5, log: silent, retryMs: 10, unprovedMs: 100 },
    )
    const id = await put(forged.key, [forged.statement])
    const good = await put(parties.installation)
    await until(() => inbox.counts.unproved === 1)
    await until(async () => (await queues.stateOf(queue(), id)) === 'failed')
    expect(await queues.get(queue(), id)).toMatchObject({ failedReason: 'unknown_key' })
    await until(() => inbox.counts.taken === 1)
    expect(seen).toEqual([good])
    expect(inbox.counts).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 1, unproved: 1 })
    expect([...trusted.keys.keys()]).toEqual(['inst-1'])
    await inbox.close(1_000)
  })
})

it('a list of live keys brings the announcement, before and after the new key signs', async () => {
  const parties = await makeParties()
  const next = makeNextKey(parties)
  const list = { aud: 'tokenmill', iat: 1, seq: 1, features: [], new_keys: [next.statement] }
  for (const signer of [parties.installation, next.key]) {
    const trusted = openTrustedKeys(parties.credentials, silent)
    expect(trusted.announced(Date.now())).toBeUndefined()
    expect(await trusted.openList(sealLiveKeys(list, signer))).toMatchObject({ seq: 1 })
    expect(trusted.announced(Date.now())).toBe(next.key.kid)
    expect(trusted.announced(Date.now() + 120_000)).toBeUndefined()
  }
  const trusted = openTrustedKeys(parties.credentials, silent)
  expect(await trusted.openList(sealLiveKeys({ ...list, new_keys: [] }, next.key))).toBeUndefined()
})

it('reads a result and a list with however many statements, and looks only at the newest 64', async () => {
  const parties = await makeParties()
  const next = makeNextKey(parties)
  const many = [...Array.from({ length: 64 }, (_, at) => `old-${at}`), next.statement]
  const body = JSON.stringify({ result_id: 'r_many' })
  const result = sealResult(body, { clientId: 'c', resultId: 'r_many', revision: 1 }, parties.installation, many)
  const trusted = openTrustedKeys(parties.credentials, silent)
  expect(openResult(result, 'c', trusted.keys)).toMatchObject({ refused: undefined, newKeys: many.slice(1) })
  const list = { aud: 'tokenmill', iat: 1, seq: 1, features: [], new_keys: many }
  expect(await trusted.openList(sealLiveKeys(list, next.key))).toMatchObject({ seq: 1 })
})

it('a file that cannot be written costs no result, and a damaged one is told', async () => {
  const parties = await makeParties()
  const next = makeNextKey(parties)
  const newKeys = { file: join(tmpdir(), 'no-such-folder', 'client.new-keys.json'), statements: [] }
  const trusted = openTrustedKeys({ ...parties.credentials, newKeys }, silent)
  await trusted.renew([next.statement])
  expect(trusted.keys.has(next.key.kid)).toBe(true)
  const dir = await mkdtemp(join(tmpdir(), 'trusted-keys-'))
  const file = newKeysPath(join(dir, 'client.json'))
  expect(file).toBe(join(dir, 'client.new-keys.json'))
  expect(await readNewKeys(file)).toEqual([])
  await writeFile(file, '{"new_keys": 1}')
  await expect(readNewKeys(file)).rejects.toThrow('is not as this library writes it')
  await rm(dir, { recursive: true })
})
