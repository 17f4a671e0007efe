// Which keys should turn, or be replaced.
import { listDueLines } from '../../src/acts/capture-turning.ts'
import { listExpiring } from '../../src/acts/key/expiring-keys.ts'
import type { OpenMeasures } from '../process/installation-metrics.ts'

export const keyMeasures: OpenMeasures = ({ gauge, clock, one, all }) => {
  const captureInUse = gauge(
    'capture_keys_in_use',
    'Capture keys that do not turn by themselves as they should: replaced and still used, or due in a line that is full.',
  )
  const expiring = gauge('keys_expiring', 'Keys that should be replaced: within 30 days, or already.', {
    stage: ['soon', 'over'],
  })
  return [
    one(
      db => listDueLines(db, clock()),
      ({ inUse, full }) => captureInUse.set(inUse.length + full.length),
      all(captureInUse),
    ),
    one(
      db => listExpiring(db, clock()),
      keys => {
        expiring.set({ stage: 'soon' }, keys.filter(({ stage }) => stage === 'SOON').length)
        expiring.set({ stage: 'over' }, keys.filter(({ stage }) => stage === 'OVER').length)
      },
      all(expiring),
    ),
  ]
}
