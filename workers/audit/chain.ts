// Gives audit rows their numbers, hashes and MACs, and cuts segments: in one transaction that holds the chain's row, so
// that two processes that both believe to have the lease do no harm.

import { type Head, numberRows, ROWS_MAX } from '../../src/audit/numbers.ts'
import { findPruned } from '../../src/audit/prune-mark.ts'
import { NO_HASH } from '../../src/audit/row-hash.ts'
import { isMac } from '../../src/audit/row-mac.ts'
import { digestOf, signHead } from '../../src/audit/segment.ts'
import { HEAD_MOVED, WENT_BACK } from '../../src/audit/verify-chain.ts'
import type { Signing } from '../../src/job/answer/result.ts'
import * as auditChain from '../../src/store/access/audit-chain.ts'
import * as audits from '../../src/store/access/audits.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/ring/key-ring.ts'

export interface ChainDeps {
  store: Store
  ring: Pick<KeyRing, 'auditMac' | 'auditMacBy'>
  /** The key that signs heads now. */
  signing: () => Pick<Signing, 'key'>
  installationId: string
}

/** The most rows of a segment. */
export const SEGMENT_ROWS = ROWS_MAX
export const SEGMENT_MS = 60_000

/**
 * Numbers the rows that have no number, and cuts a segment if one is due. `known`: the head that this process left
 * behind. `moved`: the store's head is older, or isn't a row of the audit; a row says so.
 */
export function extendChain(
  deps: ChainDeps,
  known: Head | undefined,
): Promise<{ head: Head; isMore: boolean; moved: string | undefined }> {
  return deps.store.transaction(async db => {
    const chain = await auditChain.lock(db)
    const moved = await findMove(db, chain, known, deps.ring)
    if (moved !== undefined) await tellMoved(db, moved, chain, known)
    const { head, isMore } = await numberRows(db, chain, deps.ring)
    if (isCutDue(chain, head)) await cut(db, { chain, head, isMore }, deps)
    return { head, isMore, moved }
  })
}

/** How the head was moved by somebody else than a worker: the name of the row that says so. */
async function findMove(
  db: Db,
  chain: Head,
  known: Head | undefined,
  ring: ChainDeps['ring'],
): Promise<string | undefined> {
  if (known && chain.seq === known.seq && chain.hash.equals(known.hash)) return undefined
  // Another process may have moved the head forward. Then the audit has both rows.
  if (known && (chain.seq <= known.seq || !(await isHeadOfRow(db, known, ring)))) return WENT_BACK
  return (await isHeadOfRow(db, chain, ring)) ? undefined : HEAD_MOVED
}

async function isHeadOfRow(db: Db, { seq, hash }: Head, ring: ChainDeps['ring']): Promise<boolean> {
  if (seq === 0) return hash.equals(NO_HASH)
  const [row] = await audits.listChained(db, { after: seq - 1, to: seq, limit: 1 })
  if (row) return row.hash.equals(hash) && isMac(ring, row)
  const pruned = await findPruned(db, ring)
  return pruned.seq === seq && pruned.hash.equals(hash)
}

async function tellMoved(db: Db, action: string, chain: Head, known: Head | undefined): Promise<void> {
  const detail = { from: known?.seq ?? null, to: chain.seq, hash: known?.hash.toString('hex') ?? null }
  const subject = String(known?.seq ?? chain.seq)
  await audits.insert(db, { actor: 'worker', action, subject, detail, outcome: 'failed' })
}

function isCutDue({ unsentFrom, cutSeq, cutMs, wanted }: auditChain.Chain, { seq }: Head): boolean {
  if (unsentFrom !== null) return false
  return wanted || cutMs >= SEGMENT_MS || seq - cutSeq >= SEGMENT_ROWS
}

async function cut(
  db: Db,
  { chain, head, isMore }: { chain: auditChain.Chain; head: Head; isMore: boolean },
  { signing, installationId }: ChainDeps,
): Promise<void> {
  const from = chain.cutSeq + 1
  const to = Math.max(chain.cutSeq, Math.min(head.seq, chain.cutSeq + SEGMENT_ROWS))
  const hash = to === chain.cutSeq ? chain.cutHash : to === head.seq ? head.hash : await hashOf(db, to)
  const segment = chain.segment + 1
  const signed = signHead(
    {
      installation_id: installationId,
      segment,
      previous: chain.cutHead === null ? null : digestOf(chain.cutHead),
      from,
      to,
      hash_before: chain.cutHash.toString('hex'),
      hash: hash.toString('hex'),
      iat: Math.floor(Date.now() / 1_000),
    },
    signing().key,
  )
  const wanted = chain.wanted && (isMore || to < head.seq)
  await auditChain.cut(db, { segment, from, seq: to, hash, head: signed, wanted })
}

/** The hash of a row; `NO_HASH` if the row is missing, so that a reader of the segment finds the gap. */
async function hashOf(db: Db, seq: number): Promise<Buffer> {
  const [row] = await audits.listChained(db, { after: seq - 1, to: seq, limit: 1 })
  return row?.hash ?? NO_HASH
}
