// The whole verification: the chain in the store, and the segments outside.
import type { InstallationKeys } from '../job/envelope/installation-jws.ts'
import * as auditChain from '../store/access/audit-chain.ts'
import type { Db } from '../store/pool.ts'
import { distinct, type Finding } from './finding.ts'
import type { AuditPlace } from './place.ts'
import type { Macs } from './row-mac.ts'
import { verifyChain } from './verify-chain.ts'
import { compareSegments } from './verify-segments.ts'

interface Sources {
  ring: Macs
  place: Pick<AuditPlace, 'list' | 'read'>
  /** The installation's keys, which sign heads. */
  keys: InstallationKeys
  /** ms since the epoch: retention may remove what is old by then. */
  now: number
  /** Every host sends its segments to this place. If not, segments may be on another host. */
  isComplete: boolean
}

export interface Verified {
  findings: Finding[]
  rows: number
  /** The number of the last row when the verification began. */
  to: number
  segments: number
  /** The number of the last row that a segment holds. */
  rowsOutside: number
}

function sentOf({ segment, unsentFrom }: auditChain.Chain): number {
  return unsentFrom === null ? segment : segment - 1
}

export async function verifyAudit(db: Db, { ring, ...outside }: Sources): Promise<Verified> {
  // Workers extend the audit meanwhile. So this reads first which segments were sent, then lists the segments, and then
  // reads the rows: so every segment that was sent is in the list, and the rows that are read reach to the end of the
  // last segment or beyond.
  const sent = sentOf(await auditChain.find(db))
  const names = await outside.place.list()
  const verified = await verifyChain(db, ring)
  const compared = await compareSegments(db, { ...outside, ring, names, sent, verified })
  return {
    findings: distinct([...verified.findings, ...compared.findings]),
    rows: verified.rows,
    to: verified.chain.seq,
    segments: compared.segments,
    rowsOutside: compared.to,
  }
}
