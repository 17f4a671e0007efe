// `tokenmill key rotate signing` on a whole installation: what readers of results get while the key turns.
import { existsSync } from 'node:fs'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readCredentials } from '../../../producers/client/client-file.ts'
import { newKeysPath } from '../../../producers/client/trusted-keys.ts'
import { type Client, type Credentials, connect, type Delivery } from '../../../producers/client.ts'
import { signAsk } from '../../../producers/envelope.ts'
import { NOTHING_ACKNOWLEDGED } from '../../../producers/results.ts'
import { beginWhenDue } from '../../../src/acts/signing-turn.ts'
import { isRefusal } from '../../../src/errors.ts'
import { ResultData } from '../../../src/job/answer/result.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import { readUnverified } from '../../../src/job/envelope/installation-jws.ts'
import * as signingKeyReaders from '../../../src/store/access/signing-key-readers.ts'
import * as signingKeys from '../../../src/store/access/signing-keys.ts'
import { jwksOf } from '../../../src/vault/key-statement.ts'
import { describeEngines } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import type { OpenedWorkers } from '../../support/workers.ts'
import { cli } from '../command-bench.ts'

const TOKEN = 't01jd3x8z7q2m4n6p8r0s2t4v6w'
const LIFECYCLE = { id: TOKEN, action: 'SUSPEND' } as const

describeEngines('key rotate signing', engine => {
  let installation: Installation
  let workers: OpenedWorkers
  let client: Client
  /** Credentials as they were before any rotation. */
  let before: Credentials
  const clients: Client[] = []
  let jobs = 0

  beforeAll(async () => {
    installation = await openInstallation(engine)
    workers = await installation.openWorkers()
    before = installation.credentials
    client = await open({ clientFile: installation.clientFile, replyTo: 'reader' })
  })
  afterAll(async () => {
    for (const one of clients) await one.close()
    await installation?.close()
  })

  /** On Redis a pure producer: it has its own connection to the queue server and nothing else. */
  async function open(options: { clientFile?: string; credentials?: Credentials; replyTo: string }): Promise<Client> {
    const { queues } = installation
    const place = engine.redisUrls ? { redisUrl: engine.redisUrls.join(), prefix: engine.prefix } : { queues }
    const opened = await connect({ ...place, ...options })
    clients.push(opened)
    return opened
  }
  const rotate = (...words: string[]) => cli(['key', 'rotate', 'signing', ...words], { env: installation.env })
  const keys = () => signingKeys.findPublic(installation.vault.store)
  const states = async () => Object.fromEntries((await keys()).map(({ kid, state }) => [kid, state]))
  const queueOf = (replyTo: string) => resultsQueue(before.signingKey.clientId, replyTo)
  async function ask(): Promise<void> {
    jobs += 1
    await client.call('token-lifecycle', LIFECYCLE)
  }
  /** Makes the announced key due. */
  const makeDue = () =>
    installation.vault.store.query({
      text: "update tokenmill.signing_key set active_at = now() where state = 'ANNOUNCED'",
    })
  async function send(replyTo: string, jti: string): Promise<void> {
    const asked = { kind: 'token-lifecycle', request: LIFECYCLE } as const
    const signed = await signAsk(before, asked, { jti, replyTo }, Date.now())
    if (isRefusal(signed)) throw new Error(signed.reason)
    await installation.queues.add('token-lifecycle', signed)
  }
  /** Has a job answered on a queue that nobody reads; returns the key that signed the answer. */
  async function leave(replyTo: string): Promise<string> {
    const waiting = () => installation.queues.list(queueOf(replyTo), ['waiting'], 0, 99)
    const { length } = await waiting()
    await send(replyTo, `${replyTo}-${length}`)
    const last = await until(async () => (await waiting())[length], { what: 'the result' })
    return readUnverified(ResultData.parse(last.data).jws, 'tokenmill-result+jwt')?.kid ?? ''
  }
  async function readAll(reader: Client, count: number): Promise<Delivery[]> {
    const seen: Delivery[] = []
    reader.results(delivery => {
      seen.push(delivery)
    })
    await until(() => seen.length === count, { what: `${count} results` })
    return seen
  }

  /** Has the results of a queue published again, and reads them. */
  async function replay(reader: Client, count: number): Promise<void> {
    const words = ['results', 'replay', '--client', installation.clientFile, '--reply-to', 'unread']
    const replayed = await cli([...words, '--since', '2000-01-01', '--json'], { env: installation.env })
    expect(replayed.json()).toEqual({ replayed: count })
    await until(() => reader.counts().taken === 2 * count)
    expect(reader.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: 2 * count })
  }

  it('announces a key; results tell it to every reader and are still signed by the one before', async () => {
    const [first] = await keys()
    expect(await leave('unread')).toBe(first?.kid)
    const { status, json } = await rotate('--json', '--reason', 'yearly')
    expect(status).toBe(0)
    const { kid, from } = json<{ kid: string; from: string }>()
    expect(Date.parse(from) - Date.now()).toBeGreaterThan(6.9 * 86_400_000)
    expect((await rotate()).stdout).toContain(`${kid} is announced already`)
    const file = newKeysPath(installation.clientFile)
    await until(() => ask().then(() => existsSync(file)))
    expect(await states()).toEqual({ [first?.kid ?? '']: 'ACTIVE', [kid]: 'ANNOUNCED' })
    expect(await leave('unread')).toBe(first?.kid)
    // A client file that is made now holds both keys.
    const added = await installation.addClient('added')
    expect([...added.credentials.installationKeys.keys()]).toEqual([kid, first?.kid])
    expect(jwksOf(await keys()).keys).toMatchObject([
      { kid, state: 'ANNOUNCED', from, statement: expect.any(String) },
      { kid: first?.kid, state: 'ACTIVE' },
    ])
  })

  it.runIf(engine.redisUrls)(
    'begins at once when every connected reader knows the key, and else asks for --yes',
    async () => {
      const kid = (await keys())[0]?.kid ?? ''
      const said = () => signingKeyReaders.list(installation.vault.store, kid)
      await until(() => ask().then(async () => (await said()).length === 1))
      const silent = await open({ credentials: before, replyTo: 'silent' })
      silent.results(() => {})
      await until(async () => (await installation.queues.workersOf(queueOf('silent'))) === 1)
      await send('silent', 'silent-1')
      await until(() => silent.counts().taken === 1)
      const refused = await rotate('--now')
      expect(refused).toMatchObject({ status: 64, stderr: expect.stringContaining('Say so with --yes.') })
      expect(refused.stderr).toContain('1 of 2 connected readers of results know the key.')
      expect(refused.stderr).toContain(`Perhaps not: ${queueOf('silent')}`)
      expect(refused.stderr).toContain('Readers that are not connected cannot be asked.')
      expect((await states())[kid]).toBe('ANNOUNCED')
      await silent.close()
      await until(async () => (await installation.queues.workersOf(queueOf('silent'))) === 0)
      const { status, json } = await rotate('--now', '--json')
      expect(status).toBe(0)
      expect(json()).toEqual({ kid, state: 'ACTIVE', readers: { know_it: [queueOf('reader')], unsure: [] } })
    },
  )

  it('lets the key sign when its time has come, and no reader loses a result', async () => {
    const kid = (await keys())[0]?.kid ?? ''
    if (!engine.redisUrls) await makeDue()
    await until(async () => (await leave('unread')) === kid)
    await ask()
    await until(() => client.counts().taken === jobs)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: jobs })
    const [active, retired] = await keys()
    expect([active, retired].map(key => key?.state)).toEqual(['ACTIVE', 'RETIRED'])
    expect(jwksOf(retired ? [retired] : []).keys).toMatchObject([{ until: expect.any(String) }])
    const left = await installation.vault.store.query<{ private: Buffer | null }>({
      text: 'select wrapped_private as private from tokenmill.signing_key where kid = $1',
      values: [retired?.kid],
    })
    expect(left.rows).toEqual([{ private: null }])
    const acts = await installation.vault.store.query<{ action: string; detail: { reason?: string } }>({
      text: 'select action, detail from tokenmill.audit where subject = $1 order by at, action',
      values: [kid],
    })
    expect(acts.rows).toMatchObject([
      { action: 'signing-key.announce', detail: { reason: 'yearly' } },
      { action: 'signing-key.begin', detail: { retired: retired?.kid } },
    ])
    // A reader that wasn't connected before reads results by both keys, and results that are published again.
    const late = await open({ credentials: before, replyTo: 'unread' })
    const unread = (await installation.queues.depth(queueOf('unread'))).waiting
    await readAll(late, unread)
    expect(late.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: unread })
    // Replays are tested on Redis only: they don't depend on the engine, and wait for a sweep.
    if (engine.redisUrls) await replay(late, unread)
    await late.close()
  })

  it('goes on after every worker ended in between: one of many begins, and the oldest client file still reads', async () => {
    expect((await rotate('--json')).status).toBe(0)
    await workers.close()
    const kid = (await keys())[0]?.kid ?? ''
    const { store } = installation.vault
    expect(await beginWhenDue(store, kid)).toBe(false)
    await makeDue()
    const begun = await Promise.all(Array.from({ length: 4 }, () => beginWhenDue(store, kid)))
    expect(begun.filter(Boolean)).toEqual([true])
    expect(Object.values(await states())).toEqual(['ACTIVE', 'RETIRED', 'RETIRED'])
    workers = await installation.openWorkers({ roles: ['interactive'] })
    expect(await leave('oldest')).toBe(kid)
    const oldest = await open({ credentials: before, replyTo: 'oldest' })
    await readAll(oldest, 1)
    await ask()
    await until(() => client.counts().taken === jobs)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: jobs })
    expect((await readCredentials(installation.clientFile)).installationKeys.size).toBe(3)
  })

  it('takes an announcement back: the key never signs, nobody is told of it any more, and the next one may come', async () => {
    const { store } = installation.vault
    const none = await rotate('--cancel')
    expect(none).toMatchObject({ status: 1, stderr: expect.stringContaining('no key is announced') })
    const { kid } = (await rotate('--json')).json<{ kid: string }>()
    expect((await rotate('--cancel', '--now')).status).toBe(64)
    const cancelled = await rotate('--cancel', '--reason', 'not now', '--json')
    expect(cancelled).toMatchObject({ status: 0, stderr: expect.stringContaining('go on trusting it') })
    expect(cancelled.json()).toEqual({ kid, state: 'CANCELLED' })
    expect(await states()).not.toHaveProperty(kid)
    expect((await signingKeys.findState(store, 90 * 86_400_000)).announced).toBeUndefined()
    expect(await beginWhenDue(store, kid)).toBe(false)
    const acts = await store.query<{ action: string; detail: { reason?: string } }>({
      text: "select action, detail from tokenmill.audit where subject = $1 and action = 'signing-key.cancel'",
      values: [kid],
    })
    expect(acts.rows).toMatchObject([{ detail: { reason: 'not now' } }])
    await ask()
    await until(() => client.counts().taken === jobs)
    expect(client.counts()).toEqual({ ...NOTHING_ACKNOWLEDGED, taken: jobs })
    const next = (await rotate('--json')).json<{ kid: string }>()
    expect(next.kid).not.toBe(kid)
    expect((await rotate('--cancel')).status).toBe(0)
  })

  it('refuses a ninth announcement within 90 days, and says when the oldest ends', async () => {
    const { store } = installation.vault
    const stated = async () => (await signingKeys.findState(store, 90 * 86_400_000)).statements.length
    await store.query({
      text: `insert into tokenmill.signing_key (kid, alg, public_jwk, state, statement, active_at, retired_at)
select 'earlier-' || n, 'Ed25519', '{}', 'RETIRED', 'statement', now() - make_interval(days => 80 + n), now()
from generate_series(1, $1::int) n`,
      values: [8 - (await stated())],
    })
    try {
      expect(await stated()).toBe(8)
      const refused = await rotate()
      expect(refused.status).toBe(1)
      const ends = new Date(Date.now() + 4 * 86_400_000).toISOString().slice(0, 10)
      expect(refused.stderr).toMatch(/8 keys were announced within 90 days/)
      expect(refused.stderr).toContain(ends)
      expect(Object.values(await states())).not.toContain('ANNOUNCED')
      await store.query({
        text: "update tokenmill.signing_key set active_at = now() - interval '91 days' where kid = 'earlier-1'",
      })
      expect((await rotate()).status).toBe(0)
    } finally {
      await store.query({ text: "delete from tokenmill.signing_key where kid like 'earlier-%' or state = 'ANNOUNCED'" })
    }
  })

  it('results that failed by an unknown key come again once results replay asks for them', async () => {
    for (let n = 0; n < 2; n += 1) await leave('unproved')
    const failing = installation.queues.work(
      queueOf('unproved'),
      async () => ({ failed: true, code: 'unknown_key', keep: true }),
      { concurrency: 1 },
    )
    const failed = () => installation.queues.list(queueOf('unproved'), ['failed'], 0, 9)
    await until(async () => (await failed()).length === 2)
    await failing.close(1_000)
    const words = ['results', 'replay', '--client', installation.clientFile, '--reply-to', 'unproved']
    const replayed = await cli([...words, '--since', '2000-01-01', '--json'], { env: installation.env })
    expect(replayed.json()).toEqual({ replayed: 2 })
    expect(await readAll(await open({ clientFile: installation.clientFile, replyTo: 'unproved' }), 2)).toHaveLength(2)
    expect(await failed()).toEqual([])
  })
})
