// Runs the audit's chain in a worker process: any process may take the lease. One loop numbers rows, about once a
// second; the other sends segments, and may wait for a place that is away.
import { randomUUID } from 'node:crypto'
import type { Head } from '../../src/audit/numbers.ts'
import type { AuditPlace } from '../../src/audit/place.ts'
import { AUDIT_DAYS, markPruned, PRUNE } from '../../src/audit/prune-mark.ts'
import { segmentLines } from '../../src/audit/segment.ts'
import { findMisfit } from '../../src/audit/verify-chain.ts'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as auditChain from '../../src/store/access/audit-chain.ts'
import * as audits from '../../src/store/access/audits.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'
import { type ChainDeps, extendChain, SEGMENT_ROWS } from './chain.ts'

export interface SequencerDeps extends ChainDeps {
  ring: Pick<KeyRing, 'auditMac' | 'auditMacBy'>
  place: AuditPlace
  log: Logger
}

const LOOK_MS = 1_000
const LEASE_MS = 5_000
const PRUNE_MS = 3_600_000
const DAY_MS = 86_400_000

/** Starts the loops, which look every `lookMs`; returns a function that stops them and gives the lease back. */
export function startSequencer(deps: SequencerDeps, { lookMs = LOOK_MS } = {}): () => Promise<void> {
  const { store, log } = deps
  const holder = randomUUID()
  const claim = () => auditChain.claim(store, holder, LEASE_MS)
  let stopped = false
  let known: Head | undefined
  const number = async () => {
    for (let isMore = true; isMore && !stopped; ) {
      if (!(await claim())) {
        known = undefined
        return
      }
      const extended = await extendChain(deps, known)
      if (extended.moved !== undefined)
        log.error({ seq: extended.head.seq, row: extended.moved }, 'the head of the audit was moved; run audit verify')
      known = extended.head
      isMore = extended.isMore
    }
  }
  const send = async () => {
    while (!stopped && (await claim()) && (await sendSegment(deps)));
  }
  const prune = async () => {
    if (!(await claim())) return
    const { misfit } = await pruneRows(deps, Date.now() - AUDIT_DAYS * DAY_MS)
    if (misfit) log.error({ seq: misfit }, 'a row of the audit was changed; no row is removed; run audit verify')
  }
  const stops = [
    every(lookMs, number, { log, firstMs: 0 }),
    every(lookMs, send, { log }),
    every(PRUNE_MS, prune, { log }),
  ]
  return async () => {
    stopped = true
    await Promise.all(stops.map(stop => stop()))
    await auditChain.release(store, holder)
  }
}

/** Sends the segment that was cut. True if it was full: the next one may be due. */
export async function sendSegment({ store, place }: Pick<SequencerDeps, 'store' | 'place'>): Promise<boolean> {
  const { unsentFrom, cutSeq, cutHead, segment, awayMs } = await auditChain.find(store)
  if (awayMs !== null && !place.isOutside) await auditChain.clearAway(store)
  if (unsentFrom === null || cutHead === null) return false
  const rows = await audits.listChained(store, { after: unsentFrom - 1, to: cutSeq, limit: SEGMENT_ROWS })
  try {
    await place.put(segment, segmentLines(cutHead, rows))
  } catch (error) {
    if (place.isOutside) await auditChain.markAway(store)
    throw error
  }
  await auditChain.sent(store, segment, place)
  return rows.length === SEGMENT_ROWS
}

/**
 * Removes rows that are older than `before` and were sent; a row of the audit says so. If one of them isn't as it was
 * written, all stay: its time may be forged. `misfit`: its number.
 */
export function pruneRows(
  { store, ring }: Pick<SequencerDeps, 'store' | 'ring'>,
  before: number,
): Promise<{ rows: number; misfit?: number }> {
  return store.transaction(async db => {
    const { cutSeq, unsentFrom } = await auditChain.lock(db)
    const last = await audits.findPrunable(db, { to: unsentFrom === null ? cutSeq : unsentFrom - 1, before })
    if (!last) return { rows: 0 }
    const pruning = { actor: 'retention', action: PRUNE, subject: String(last.seq) }
    const misfit = await findMisfit(db, ring, last.seq)
    if (misfit !== undefined) {
      await audits.insert(db, { ...pruning, detail: { misfit }, outcome: 'failed' })
      return { rows: 0, misfit }
    }
    const rows = await audits.prune(db, last.seq)
    await audits.insert(db, { ...pruning, detail: markPruned(ring, last) })
    return { rows }
  })
}
