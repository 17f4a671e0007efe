// A person's access to data of cards or their owners, such as an export. Its row is in the audit before anything is
// handed out; where AUDIT_URL is set, also outside.
import { setTimeout as pause } from 'node:timers/promises'
import { ConfigError } from '../config.ts'
import * as auditChain from '../store/access/audit-chain.ts'
import * as audits from '../store/access/audits.ts'
import type { Db } from '../store/pool.ts'
import { recordEnd } from './act.ts'

/** Records the tokens of the rows that are handed out next. */
export type HandsOut = (tokenIds: readonly string[]) => Promise<void>

const OUTSIDE_MS_MAX = 30_000
const LOOK_MS = 100

/**
 * Records the access, then does it. `waits`: not before its row is outside. An access that is refused or fails leaves a
 * row that says so.
 */
export async function withAccess<T>(
  db: Db,
  access: audits.Audit,
  { waits }: { waits: boolean },
  work: (handsOut: HandsOut) => Promise<T>,
): Promise<T> {
  try {
    const auditId = await audits.insert(db, access)
    if (waits) await untilOutside(db, auditId)
    const action = `${access.action}.rows`
    return await work(async tokenIds => {
      await audits.insert(db, { ...access, action, detail: { token_ids: tokenIds } })
    })
  } catch (error) {
    await recordEnd(db, access, error)
    throw error
  }
}

/** Waits until the segment with this row was sent. Throws `ConfigError` if that takes too long. */
export async function untilOutside(db: Db, auditId: number): Promise<void> {
  const deadline = performance.now() + OUTSIDE_MS_MAX
  for (;;) {
    const seq = await audits.findNumber(db, auditId)
    const { cutSeq, unsentFrom } = await auditChain.find(db)
    const isCut = seq !== undefined && seq <= cutSeq
    if (isCut && (unsentFrom === null || seq < unsentFrom)) return
    if (!isCut) await auditChain.want(db)
    if (performance.now() > deadline)
      throw new ConfigError(
        `AUDIT_URL: the row of this act was not outside after ${OUTSIDE_MS_MAX / 1_000} s; check that a worker runs and reaches AUDIT_URL (tokenmill doctor)`,
      )
    await pause(LOOK_MS)
  }
}
