// Verifies the audit rows of the store: that every number is there once, every hash follows from the row before, and
// every MAC was made by the vault's key. It reads the rows in pages. Only the segments show if rows were removed from
// the end together with the head.
import * as auditChain from '../store/access/audit-chain.ts'
import * as audits from '../store/access/audits.ts'
import type { Db } from '../store/pool.ts'
import { changed, type Finding, type Removed, removed } from './finding.ts'
import { findPruned, type Pruned } from './prune-mark.ts'
import { hashRow } from './row-hash.ts'
import { isMac, type Macs } from './row-mac.ts'
import { findSwaps, type Misfit } from './swaps.ts'

export interface VerifiedChain {
  findings: Finding[]
  chain: auditChain.Chain
  /** How many rows were read. */
  rows: number
  /** The number up to which retention has removed the rows. */
  prunedTo: number
}

type ChainedRow = audits.ChainedRow

const PAGE = 1_000
/** A worker writes this row when it finds the head further back than it has left it. */
export const WENT_BACK = 'audit.went-back'
/** A worker writes this row when the head isn't a row of the audit. */
export const HEAD_MOVED = 'audit.head-moved'

export async function verifyChain(db: Db, ring: Macs): Promise<VerifiedChain> {
  // Read first: rows that come meanwhile have higher numbers.
  const chain = await auditChain.find(db)
  const pruned = await findPruned(db, ring)
  const findings: Finding[] = []
  const misfits: Misfit[] = []
  let last: Pruned = pruned
  let isGap = false
  let rows = 0
  for await (const row of rowsOf(db, chain.seq)) {
    rows += 1
    isGap = row.seq !== last.seq + 1
    if (isGap && row.seq > last.seq + 1)
      findings.push(...(await judgeGap(db, ring, removed(last.seq + 1, row.seq - 1, ''))))
    findings.push(...judge(row, { before: isGap ? undefined : last.hash, ring, misfits }))
    last = row
  }
  const swaps = findSwaps(misfits)
  const named = findings.filter(one => one.found !== 'changed' || !swaps.whole.has(one.seq))
  named.push(...swaps.findings, ...(await judgeEnd(db, ring, last, chain)))
  return { findings: named, chain, rows, prunedTo: pruned.seq }
}

/** Rows by which a worker says that somebody else has moved the head. */
export const MOVES: Readonly<Record<string, string>> = {
  [WENT_BACK]: 'the head of the audit went back',
  [HEAD_MOVED]: 'the head of the audit was moved to where no row is',
}

function judge(
  row: ChainedRow,
  { before, ring, misfits }: { before: Buffer | undefined; ring: Macs; misfits: Misfit[] },
): Finding[] {
  const findings: Finding[] = []
  if (!isMac(ring, row)) findings.push(changed(row.seq, 'was added or changed: its MAC is not by this vault'))
  else if (before && !hashRow(before, row).equals(row.hash)) {
    findings.push(changed(row.seq, `was changed (${row.action} on ${row.subject} at ${row.at})`))
    misfits.push({ row, before })
  }
  const move = MOVES[row.action]
  if (move !== undefined) findings.push({ found: 'went-back', says: `row ${row.seq} says: ${move}` })
  return findings
}

/** Retention may have removed the rows since they were read. */
async function judgeGap(db: Db, ring: Macs, gap: Removed): Promise<Finding[]> {
  return gap.to <= (await findPruned(db, ring)).seq ? [] : [gap]
}

async function judgeEnd(db: Db, ring: Macs, last: Pruned, chain: auditChain.Chain): Promise<Finding[]> {
  if (last.seq < chain.seq) return judgeGap(db, ring, removed(last.seq + 1, chain.seq, ' from the end'))
  if (!last.hash.equals(chain.hash))
    return [{ found: 'went-back', says: `the head of the audit is not row ${last.seq}` }]
  const [added] = await audits.listChained(db, { after: chain.seq, to: null, limit: 1 })
  const now = added && (await auditChain.find(db))
  if (!added || !now || now.seq >= added.seq) return []
  return [{ found: 'added', seq: added.seq, says: `row ${added.seq} was added behind the head` }]
}

/** The rows after the number `after`, up to `to`. */
export async function* rowsOf(db: Db, to: number, after = 0): AsyncGenerator<ChainedRow> {
  for (;;) {
    const page = await audits.listChained(db, { after, to, limit: PAGE })
    yield* page
    const last = page.at(-1)
    if (!last || page.length < PAGE) return
    after = last.seq
  }
}

/** The number of the first row up to `to` that isn't as it was written: its number, its text, its hash or its MAC. */
export async function findMisfit(db: Db, ring: Macs, to: number): Promise<number | undefined> {
  let last = await findPruned(db, ring)
  for await (const row of rowsOf(db, to)) {
    const fits = row.seq === last.seq + 1 && isMac(ring, row) && hashRow(last.hash, row).equals(row.hash)
    if (!fits) return row.seq
    last = row
  }
  return undefined
}
