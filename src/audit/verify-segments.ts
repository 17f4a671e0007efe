// Compares the audit rows of the store, row by row, with the segments that have left it.
import { canonical } from '../job/envelope/digest.ts'
import type { InstallationKeys } from '../job/envelope/installation-jws.ts'
import * as audits from '../store/access/audits.ts'
import type { Db } from '../store/pool.ts'
import { changed, type Finding, removed, segmentSays } from './finding.ts'
import type { AuditPlace } from './place.ts'
import { AUDIT_DAYS, findPruned } from './prune-mark.ts'
import { shownRow } from './row-hash.ts'
import type { Macs } from './row-mac.ts'
import { readSegment, type Segment, textOf } from './segment.ts'
import type { VerifiedChain } from './verify-chain.ts'

interface Compared {
  findings: Finding[]
  segments: number
  /** The number of the last row that a segment holds. */
  to: number
}

interface CompareOptions {
  ring: Macs
  place: Pick<AuditPlace, 'read'>
  /** The names of the segments by their numbers. */
  names: ReadonlyMap<number, readonly string[]>
  /** The number of segments that were sent, at least, when they were listed. */
  sent: number
  now: number
  keys: InstallationKeys
  verified: Pick<VerifiedChain, 'chain' | 'prunedTo'>
  /** Every host sends its segments to this place. If not, segments may be on another host. */
  isComplete: boolean
}

/** Rows that retention removes are older than this; it is a day less than AUDIT_DAYS, because clocks differ. */
const YOUNGEST_MS = (AUDIT_DAYS - 1) * 86_400_000

export async function compareSegments(db: Db, options: CompareOptions): Promise<Compared> {
  const { place, names, keys } = options
  const findings: Finding[] = []
  let before: { number: number; heads: Segment[] } = { number: 0, heads: [] }
  let to = 0
  for await (const { number, texts } of readAhead(names, place)) {
    if (options.isComplete && number > before.number + 1) findings.push(missing(before.number + 1, number - 1))
    if (texts.length > 1)
      findings.push(
        segmentSays(number, `there are ${texts.length}: the store went back to an older copy, and on from there`),
      )
    const heads: Segment[] = []
    for (const text of texts) {
      const segment = readSegment(text, keys)
      if (segment.broken !== undefined) findings.push(segmentSays(number, segment.broken))
      if (!('head' in segment)) continue
      heads.push(segment)
      to = Math.max(to, segment.head.to)
      findings.push(...judgeLink(segment, number, before), ...(await compareRows(db, segment, options)))
    }
    before = { number, heads }
  }
  findings.push(...judgeEnd(before, options))
  return { findings, segments: names.size, to }
}

/** There is a segment for each minute: one after the other, those of a year would take hours to come from a bucket. */
const AHEAD = 16

async function* readAhead(
  names: CompareOptions['names'],
  place: CompareOptions['place'],
): AsyncGenerator<{ number: number; texts: string[] }> {
  const all = [...names]
  const ahead: Promise<string[]>[] = []
  for (const [index, [number]] of all.entries()) {
    for (const [, files] of all.slice(index + ahead.length, index + AHEAD)) {
      const read = Promise.all(files.map(name => place.read(name)))
      // It is thrown where it is awaited.
      read.catch(() => {})
      ahead.push(read)
    }
    yield { number, texts: (await ahead.shift()) ?? [] }
  }
}

function judgeLink(
  { head }: Segment,
  number: number,
  before: { number: number; heads: readonly Segment[] },
): Finding[] {
  if (head.segment !== number) return [segmentSays(number, `its head is that of segment ${head.segment}`)]
  if (before.number !== number - 1 || before.heads.length === 0) return []
  const isLinked = before.heads.some(
    one => one.digest === head.previous && one.head.hash === head.hash_before && one.head.to + 1 === head.from,
  )
  return isLinked ? [] : [segmentSays(number, `it does not follow segment ${before.number}`)]
}

async function compareRows(
  db: Db,
  { head, rows }: Segment,
  { ring, verified, now }: CompareOptions,
): Promise<Finding[]> {
  if (rows.length === 0) return []
  const stored = await audits.listChained(db, { after: head.from - 1, to: head.to, limit: rows.length + 1 })
  const bySeq = new Map(stored.map(row => [row.seq, row]))
  const isWhole = rows.every(({ seq }) => seq <= verified.prunedTo || bySeq.has(seq))
  // Retention may have removed rows since the chain was read.
  const prunedTo = isWhole ? verified.prunedTo : (await findPruned(db, ring)).seq
  return rows.flatMap(row => {
    const own = bySeq.get(row.seq)
    if (!own) {
      const isPruned = row.seq <= prunedTo && Date.parse(row.at) < now - YOUNGEST_MS
      return isPruned ? [] : [removed(row.seq, row.seq, ` from the store (segment ${head.segment})`)]
    }
    const isSame = own.hash.toString('hex') === row.hash && canonical(shownRow(own)) === canonical(textOf(row))
    return isSame ? [] : [changed(row.seq, `is not the row of segment ${head.segment}`)]
  })
}

function judgeEnd(
  last: { number: number; heads: readonly Segment[] },
  { verified: { chain }, isComplete, sent }: CompareOptions,
): Finding[] {
  const isBehind = last.number > chain.segment || last.heads.some(({ head }) => head.to > chain.seq)
  if (isBehind)
    return [
      {
        found: 'went-back',
        says: `the store knows segments up to ${chain.segment}, and ${last.number} are outside: the store is an older copy`,
      },
    ]
  return isComplete && last.number < sent ? [missing(last.number + 1, sent)] : []
}

function missing(from: number, to: number): Finding {
  return segmentSays(from, from === to ? 'it is not here' : `it and those up to ${to} are not here`)
}
