// A client that doesn't read its results: its queue is bounded, further results wait in the store, and other clients
// are answered as usual.
import { afterAll, beforeAll, expect, it } from 'vitest'
import { panOf } from '../../bin/sample/pan.ts'
import type { Credentials } from '../../producers/client/client-file.ts'
import { type Client, connect } from '../../producers/client.ts'
import { signAsk } from '../../producers/envelope.ts'
import { openInbox } from '../../producers/results.ts'
import { isRefusal } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import { RESULTS } from '../../workers/answer/announce.ts'
import { describeEngines } from '../support/engines.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { until } from '../support/until.ts'
import { QUICK } from './bundle.ts'

/** More than a queue of results holds. */
const JOBS = 1_100
const TOKENS = 20

describeEngines('a client that does not read its results', engine => {
  let installation: Installation
  let reader: Client
  let silent: Credentials
  let queue: string
  beforeAll(async () => {
    installation = await openInstallation(engine, QUICK)
    await Promise.all([1, 2].map(() => installation.startWorkers({ roles: ['interactive'] })))
    reader = await installation.connect()
    silent = (await installation.addClient('silent')).credentials
    queue = resultsQueue(silent.signingKey.clientId)
  })
  afterAll(() => installation?.close())

  const count = async (text: string) => {
    const values = [silent.signingKey.clientId]
    return (await installation.vault.store.query<{ n: number }>({ text, values })).rows[0]?.n ?? 0
  }
  const unread = async () => {
    const { waiting, active, delayed } = await installation.queues.depth(queue)
    return waiting + active + delayed
  }

  async function makeTokens(): Promise<string[]> {
    const calls = Array.from({ length: TOKENS }, async (_, index) => {
      const card = { cardNumber: panOf(index, 3), expiryMonth: 12, expiryYear: 2031 }
      const request = { token_scope: installation.scope, ...(await reader.encryptCard(card)) }
      return String((await reader.call('token-create', request)).record?.['reuse_token'])
    })
    return Promise.all(calls)
  }

  async function askSilently(tokens: readonly string[]): Promise<void> {
    const jobs = Array.from({ length: JOBS }, async (_, index) => {
      const request = { id: tokens[index % TOKENS], action: 'ACTIVATE' }
      const signed = await signAsk(silent, { kind: 'token-lifecycle', request }, { jti: `silent-${index}` }, Date.now())
      if (isRefusal(signed)) throw new Error(signed.reason)
      return { id: signed.id, data: signed.data }
    })
    await installation.queues.addBulk('token-lifecycle', await Promise.all(jobs))
  }

  it('has all its work done, and at most 1,000 results in its queue; the rest waits, and all arrive once', async () => {
    const tokens = await makeTokens()
    await askSilently(tokens)
    let most = 0
    const worked = async () => {
      most = Math.max(most, await unread())
      return (await count('select count(*)::int as n from tokenmill.receipt where client_id = $1')) === JOBS
    }
    await until(worked, { what: 'every job of the silent client' })
    const waiting = `select count(*)::int as n from tokenmill.outbox where client_id = $1 and state = 'NEW'`
    // Another client is answered meanwhile, while the sweep runs.
    const began = performance.now()
    const isCrowded = async () => {
      const { code } = await reader.call(
        'token-lifecycle',
        { id: tokens[0], action: 'ACTIVATE' },
        { timeoutMs: 300_000 },
      )
      expect(code).toBe(204)
      most = Math.max(most, await unread())
      return performance.now() - began > 5_000
    }
    await until(isCrowded)
    expect(most).toBeLessThanOrEqual(RESULTS.unreadMax)
    expect(most).toBeGreaterThan(RESULTS.unreadMax * 0.9)
    expect(await count(waiting)).toBeGreaterThanOrEqual(JOBS - RESULTS.unreadMax)
    await expectAllOnce()
    await until(async () => (await count(waiting)) === 0, { what: 'an empty outbox' })
  })

  /** The client reads now, and gets every result once. */
  async function expectAllOnce(): Promise<void> {
    const told: string[] = []
    const client = await connect({ queues: installation.queues, credentials: silent })
    client.results(delivery => {
      if (delivery.type === 'result') told.push(delivery.jti)
    })
    await until(() => told.length >= JOBS, { what: 'every result' })
    await until(async () => (await unread()) === 0, { what: 'an empty results queue' })
    await client.close()
    expect(told.sort()).toEqual(Array.from({ length: JOBS }, (_, index) => `silent-${index}`).sort())
  }

  it('who fails on every result has no more of them in its queue', async () => {
    const before = await unread()
    expect(before).toBe(0)
    const inbox = openInbox(
      installation.queues,
      { clientId: silent.signingKey.clientId, keys: silent.installationKeys },
      () => Promise.reject(new Error('cannot')),
      { concurrency: 50, log: installation.session.log, retryMs: 60_000 },
    )
    await inbox.ready
    await installation.vault.store.query({
      text: `update tokenmill.outbox set state = 'NEW' where client_id = $1`,
      values: [silent.signingKey.clientId],
    })
    await until(async () => (await installation.queues.depth(queue)).delayed > RESULTS.unreadMax * 0.9)
    const began = performance.now()
    const isOver = async () => {
      expect(await unread()).toBeLessThanOrEqual(RESULTS.unreadMax)
      return performance.now() - began > 3_000
    }
    await until(isOver)
    await inbox.close(1_000)
  })
})
