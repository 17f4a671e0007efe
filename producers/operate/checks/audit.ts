// Whether the audit leaves the store, and for where.
import * as auditChain from '../../../src/store/access/audit-chain.ts'
import type { Db } from '../../../src/store/pool.ts'
import { duration } from '../../../src/units.ts'
import { critical, type Verdict, warning, well } from '../check.ts'

export interface AuditSources {
  store(): Promise<Db>
  /** PostgreSQL is embedded: whoever owns it owns this host, too. */
  embedded: boolean
  auditUrl: string | undefined
}

/** A segment with rows leaves about once a minute. */
const LATE_MS = 5 * 60_000

export async function askAudit({ store, embedded, auditUrl }: AuditSources): Promise<Verdict> {
  const { sentMs, awayMs } = await auditChain.find(await store())
  if (awayMs !== null) {
    const says = `the place of the audit has taken nothing for ${duration(awayMs)}`
    const next = 'bring the place of AUDIT_URL back; see docs/on-call.md, TokenmillAuditDoesNotLeave'
    return awayMs < auditChain.AWAY_MS_MAX
      ? warning(says, next)
      : critical(`${says}: acts on keys and exports are refused`, next)
  }
  if (auditUrl === undefined && !embedded)
    return warning(
      'AUDIT_URL is not set here: segments of the audit stay on the host of a worker',
      'set AUDIT_URL on every host to a place that the database’s owner can not change',
    )
  if (sentMs > LATE_MS)
    return warning(`the last segment of the audit left ${duration(sentMs)} ago`, 'look whether a worker runs')
  return well(`the last segment of the audit left ${duration(Math.max(0, sentMs))} ago`)
}
