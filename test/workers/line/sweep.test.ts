// The sweep of the outbox: a row that can't be published keeps no other back, and none is published again because of it.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openInstallationKey } from '../../../cli/open/installation-key.ts'
import { systemClock } from '../../../src/clock.ts'
import { resultsQueue } from '../../../src/job/catalogue.ts'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { deliveryId, resultId as resultIdOf } from '../../../src/job/envelope/ids.ts'
import { openRegistry } from '../../../src/metrics.ts'
import * as outbox from '../../../src/store/job/outbox.ts'
import { openAnnouncer } from '../../../workers/answer/announce.ts'
import { openWorkerMetrics } from '../../../workers/metrics/metrics.ts'
import { CODER } from '../../store/coder.ts'
import { describeOnRedis } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'

const ROWS = 45
const BAD = 21

describeOnRedis('results that wait in the outbox', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  it('are published once each, but for one whose text cannot be made', async () => {
    const { session, vault, queues, credentials } = installation
    const { clientId } = credentials.signingKey
    const key = await openInstallationKey(vault.store, vault.halves)
    const puts: string[] = []
    const noted: typeof queues = {
      ...queues,
      async add(queue, job) {
        puts.push(job.id)
        await queues.add(queue, job)
      },
      async addBulk(queue, jobs) {
        puts.push(...jobs.map(({ id }) => id))
        await queues.addBulk(queue, jobs)
      },
    }
    const rows = await Promise.all(
      Array.from({ length: ROWS }, async (_, index) => {
        const receiptId = randomUUID()
        const resultId = resultIdOf(receiptId, 1)
        const body = index === BAD ? null : JSON.stringify({ type: 'result', result_id: resultId })
        const row = { clientId, replyTo: null, resultId, receiptId, revision: 1, body }
        return { resultId, outboxId: await outbox.insert(vault.store, CODER, row) }
      }),
    )
    const announcer = openAnnouncer({
      store: vault.store,
      queues: noted,
      clock: systemClock,
      log: session.log,
      signing: () => ({ key, newKeys: [] }),
      metrics: openWorkerMetrics(openRegistry({ role: 'test' }), CATALOGUE),
      bodyOf: async ({ body }) => {
        if (body !== null) return { body, inColumns: false }
        throw new Error('its receipt has another revision')
      },
    })
    expect(await announcer.sweep(-1_000)).toBe(ROWS - 1)
    expect(await announcer.sweep(-1_000)).toBe(0)
    const expected = rows.toSpliced(BAD, 1).map(({ resultId, outboxId }) => deliveryId(resultId, outboxId))
    expect(puts.toSorted()).toEqual(expected.toSorted())
    await announcer.close()
    await queues.obliterate(resultsQueue(clientId, null))
  })
})
