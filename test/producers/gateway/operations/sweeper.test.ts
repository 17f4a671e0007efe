// Operations whose time is over end, and lose what they hold, also while the queue server takes none of the others.

import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { readSystemKey } from '../../../../cli/open/system-clients.ts'
import { openSweeper } from '../../../../producers/gateway/operations/sweeper.ts'
import { Fault } from '../../../../src/errors.ts'
import { CATALOGUE } from '../../../../src/job/composition.ts'
import * as operations from '../../../../src/store/job/operations.ts'
import { describeStore } from '../../../support/engines.ts'
import { ENTITY, type Installation, openInstallation } from '../../../support/installation.ts'

const MINUTE_MS = 60_000

describeStore('the sweeper of operations', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  it('ends those whose time is over first', async () => {
    const { vault, session, dataDir } = installation
    const { store } = vault
    const accept = async (expiresAt: number) => {
      const [receiptId, refusalId] = [randomUUID(), randomUUID()]
      await operations.accept(store, {
        receiptId,
        refusalId,
        clientId: 'c',
        entityId: ENTITY,
        kind: 'token-create',
        jobId: `j_${receiptId}`,
        requestDigest: Buffer.alloc(32),
        jws: 'x',
        acceptedAt: Date.now() - 5 * MINUTE_MS,
        expiresAt,
        dueAt: 0,
      })
      return receiptId
    }
    const live = await accept(Date.now() + 10 * MINUTE_MS)
    const over = await accept(Date.now() - 2 * MINUTE_MS)
    let refused = 0
    const sweeper = await openSweeper({
      store,
      catalogue: CATALOGUE,
      clock: Date.now,
      log: session.log,
      settings: { resendMs: MINUTE_MS, receiptDays: 90 } as never,
      signingKey: await readSystemKey(dataDir, 'gateway'),
      trusted: { keys: installation.credentials.installationKeys } as never,
      queues: {
        ...installation.queues,
        async add() {
          refused += 1
          throw new Fault('queue_away')
        },
      },
    })
    await expect.poll(() => refused).toBeGreaterThan(0)
    await sweeper.close()
    const { rows } = await store.query({
      text: 'select receipt_id, state, jws from tokenmill.operation where receipt_id = any($1::uuid[]) order by state',
      values: [`{${live},${over}}`],
    })
    expect(rows).toEqual([
      { receipt_id: over, state: 'EXPIRED', jws: null },
      { receipt_id: live, state: 'QUEUED', jws: 'x' },
    ])
  })
})
