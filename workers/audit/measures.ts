// How old the newest segment of the audit is that left the store.
import * as auditChain from '../../src/store/access/audit-chain.ts'
import type { OpenMeasures } from '../process/installation-metrics.ts'

export const auditMeasures: OpenMeasures = ({ gauge, one, all }) => {
  const segmentAge = gauge('audit_segment_age_seconds', 'Time since the last segment of the audit left the store.')
  return [one(auditChain.find, ({ sentMs }) => segmentAge.set(Math.max(0, sentMs) / 1000), all(segmentAge))]
}
