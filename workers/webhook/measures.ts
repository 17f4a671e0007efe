// How many deliveries to URLs wait, and which endpoints don't take them.
import * as deliveries from '../../src/store/event/deliveries.ts'
import * as endpoints from '../../src/store/event/endpoints.ts'
import type { OpenMeasures } from '../process/installation-metrics.ts'

const TROUBLES = ['disabled', 'failing'] as const

export const webhookMeasures: OpenMeasures = ({ gauge, clock, one, all, age }) => {
  const waiting = gauge('webhook_deliveries', 'Deliveries to URLs that are not made yet.')
  const oldest = gauge('webhook_due_oldest_seconds', 'Time since the oldest of them became due.')
  const troubled = gauge('webhook_endpoints_troubled', 'Endpoints of webhooks that do not take them.', {
    state: TROUBLES,
  })
  return [
    one(
      deliveries.measure,
      measured => {
        waiting.set(measured.rows)
        oldest.set(age(measured))
      },
      all(waiting, oldest),
    ),
    one(
      db => endpoints.listTroubled(db, { ...endpoints.TROUBLE, failedSince: clock() - endpoints.TROUBLE.failedMs }),
      found => {
        for (const state of TROUBLES) troubled.set({ state }, found.filter(one => one.state === state).length)
      },
      all(troubled),
    ),
  ]
}
