// Reply queues that processes leave behind when they end.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import * as outbox from '../../src/store/job/outbox.ts'
import * as replyQueues from '../../src/store/job/reply-queues.ts'
import { removeEmpty, removeUnread } from '../../workers/reply-queues.ts'
import { CODER } from '../store/coder.ts'
import { type Installation, openInstallation } from '../support/installation.ts'
import { type FreshDatabase, freshDatabase } from '../support/postgres.ts'
import { openSystemDesk, type SystemDesk } from '../support/system-requests.ts'
import { until } from '../support/until.ts'

const AGE_MS = 120_000

describe('reply queues', () => {
  let database: FreshDatabase
  let installation: Installation
  let desk: SystemDesk
  beforeAll(async () => {
    database = await freshDatabase()
    const place = { prefix: '{replies}', redisUrls: undefined, databaseUrl: database.url }
    installation = await openInstallation({ name: 'postgres', ...place })
    desk = await openSystemDesk(installation, 'gateway', 'living')
  })
  afterAll(async () => {
    await desk?.close()
    await installation?.close()
    await database?.drop()
  })

  const names = async () => (await replyQueues.list(installation.vault.store)).map(({ replyTo }) => replyTo).sort()
  /** Puts a result into a reply queue, as if it had been there for two minutes. */
  async function leave(clientId: string, replyTo: string): Promise<void> {
    const { queues, vault } = installation
    const queue = `results-${clientId}-${replyTo}`
    await replyQueues.register(vault.store, clientId, replyTo)
    await queues.add(queue, { id: 'left-behind', data: {} })
    await vault.store.query({
      text: 'update bullmq.job set added_at_ms = added_at_ms - $2 where queue = $1',
      values: [queue, AGE_MS],
    })
  }

  it('of a gateway that is gone are removed with what lies there; those of clients and of the living stay', async () => {
    const { queues, vault, credentials } = installation
    const { store } = vault
    const { clientId } = credentials.signingKey
    await leave('gateway', 'gone')
    await leave(clientId, 'slow')
    await replyQueues.register(store, 'gateway', 'living')
    for (const [of, replyTo] of [
      ['gateway', 'gone'],
      ['gateway', 'gone'],
      ['gateway', 'living'],
      [clientId, 'slow'],
    ] as const)
      await outbox.insert(store, CODER, {
        clientId: of,
        replyTo,
        resultId: randomUUID(),
        receiptId: randomUUID(),
        revision: 0,
        body: '{}',
      })
    expect(await removeUnread({ store, queues })).toEqual(['results-gateway-gone'])
    expect(await names()).toEqual(['living', 'slow'])
    // What waited for room there would fill it again.
    const pending = await outbox.pendingAnswers(store)
    expect(pending.map(({ replyTo, rows }) => `${replyTo} ${rows}`).sort()).toEqual(['living 1', 'slow 1'])
    const wanted = { clientId: 'gateway', replyTo: 'gone', since: Date.now() - AGE_MS }
    const pages: number[] = []
    for (let after: number | undefined = 0; after !== undefined; ) {
      const page = await outbox.replay(store, wanted, { after, page: 3 })
      pages.push(page.replayed)
      after = page.next
    }
    expect(pages).toEqual([2, 0])
    expect(await outbox.giveUp(store, 'gateway', 'gone', 10)).toBe(2)
    await leave('gateway', 'gone')
    await removeEmpty({ store, queues }, 'gateway', Date.now() + AGE_MS)
    await until(async () => (await names()).join() === 'slow')
  })
})
