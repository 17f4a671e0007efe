// The client behaves the same on both queue engines.
import { afterEach, beforeEach, expect, it } from 'vitest'
import { type Client, connect } from '../../producers/client.ts'
import { type Opened, openEngine } from '../queue/bundle.ts'
import { describeEngines } from '../support/engines.ts'
import { type FakeWorker, fakeWorker, lifecycle, makeParties, silent } from './bundle.ts'

describeEngines('client', engine => {
  let opened: Opened
  let worker: FakeWorker
  let client: Client

  beforeEach(async () => {
    opened = await openEngine(engine)
    const parties = await makeParties()
    worker = fakeWorker(opened.queues, parties, ['token-lifecycle'])
    client = await connect({ queues: opened.queues, credentials: parties.credentials, replyTo: 'own', log: silent })
  })
  afterEach(async () => {
    await client.close()
    await worker.close()
    await opened.close()
  })

  it('answers a call, and answers it again under the same jti', async () => {
    const first = await client.call('token-lifecycle', lifecycle(), { jti: 'a' })
    expect(await client.call('token-lifecycle', lifecycle(), { jti: 'a' })).toMatchObject({
      result_id: first.result_id,
    })
    expect(worker.seen).toHaveLength(2)
  })

  it('answers every item of a bulk once, among interactive calls', async () => {
    const items = Array.from({ length: 300 }, (_, i) => ({
      kind: 'token-lifecycle' as const,
      request: lifecycle(),
      jti: `n${i}`,
    }))
    const answered = new Set<string>()
    const bulk = (async () => {
      for await (const { result } of client.bulk(items, { inFlight: 100 })) answered.add(result.jti)
    })()
    const call = await client.call('token-lifecycle', lifecycle())
    await bulk
    expect(call.status).toBe('SUCCEEDED')
    expect([answered.size, worker.seen.length]).toEqual([300, 301])
  })
})
