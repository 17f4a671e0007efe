// What is old enough to be deleted is decided by the store's clock, not by that of the scheduler's host.

import { afterAll, beforeAll, expect, it } from 'vitest'
import { CATALOGUE } from '../../../src/job/composition.ts'
import { startHousekeeping } from '../../../workers/process/housekeeping.ts'
import { describeStore } from '../../support/engines.ts'
import { type Installation, openInstallation } from '../../support/installation.ts'

const DAY_MS = 86_400_000

describeStore('housekeeping', engine => {
  let installation: Installation
  beforeAll(async () => {
    installation = await openInstallation(engine)
  })
  afterAll(() => installation?.close())

  it('on a host whose clock is nine days ahead deletes nothing too early', async () => {
    const { vault, queues, session, scope } = installation
    await vault.store.query({
      text: `insert into tokenmill.guess (client_id, token_scope, digits, misses, since)
select 'c', $1, n::text, 1, now() - n * interval '10 hours' from generate_series(1, 4) as n`,
      values: [scope],
    })
    const left = async () => {
      const { rows } = await vault.store.query<{ digits: string }>({
        text: 'select digits from tokenmill.guess where token_scope = $1 order by digits',
        values: [scope],
      })
      return rows.map(({ digits }) => digits)
    }
    const ahead = () => Date.now() + 9 * DAY_MS
    const deps = { store: vault.store, queues, clock: ahead, log: session.log, catalogue: CATALOGUE }
    const stop = startHousekeeping(deps, [], { receiptDays: 90, reportDays: 400, firstMs: 10 })
    await expect.poll(left).not.toEqual(['1', '2', '3', '4'])
    await stop()
    expect(await left()).toEqual(['1', '2'])
  })
})
