// A scheduler whose host's clock is wrong: the store's clock decides when a day is over.
import { randomUUID } from 'node:crypto'
import { expect, it } from 'vitest'
import { openSession } from '../../../cli/open/open.ts'
import { startSchedule } from '../../../cli/process/scheduler.ts'
import { openScheduleMetrics } from '../../../producers/schedule/metrics.ts'
import { dateOf, dayAfter } from '../../../src/job/schedule/business-dates.ts'
import { openRegistry } from '../../../src/metrics.ts'
import * as schedules from '../../../src/store/report/schedules.ts'
import { openUngrantedCounter } from '../../../src/vault/ring/ungranted.ts'
import { describeStore } from '../../support/engines.ts'
import { ENTITY, openInstallation } from '../../support/installation.ts'
import { until } from '../../support/until.ts'
import { silent } from '../bundle.ts'
import { backdate, runsOf } from './bundle.ts'

const DAY_MS = 86_400_000

describeStore('a scheduler whose clock is fast', engine => {
  it('sends no report of a day that has not ended by the store’s clock', async () => {
    const installation = await openInstallation(engine)
    const { stdin, stdout, stderr } = process
    const session = openSession({ env: installation.env, stdin, stdout, stderr }, 'scheduler')
    try {
      const { vault, queues, credentials } = installation
      const scheduleId = randomUUID()
      await schedules.insert(vault.store, {
        scheduleId,
        clientId: credentials.signingKey.clientId,
        entityId: ENTITY,
        parameters: {},
        reportType: 'DAILY_TRANSACTION_REPORT',
        mimeType: 'text/csv',
        time: '00:00',
        zone: 'UTC',
      })
      await backdate(installation, scheduleId, 1)
      const yesterday = dayAfter(dateOf(Date.now()), -1)
      await startSchedule(session, {
        store: vault.store,
        queues,
        log: silent,
        clock: () => Date.now() + DAY_MS,
        metrics: openScheduleMetrics(openRegistry({ role: 'scheduler' })),
        ungranted: openUngrantedCounter(openRegistry({ role: 'scheduler' })),
      })
      const found = await until(
        async () => {
          const runs = await runsOf(installation, scheduleId)
          return runs.some(run => run.state === 'QUEUED') && runs
        },
        { what: 'the run of last night' },
      )
      expect(found.map(run => run.businessDate)).toEqual([yesterday])
    } finally {
      await session.lifetime.close()
      await installation.close()
    }
  })
})
