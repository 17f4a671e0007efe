// A segment of the audit: a file of NDJSON whose first line is the head, a JWS of the installation that names the
// segment before it, and whose other lines are rows with their hashes and MACs. A segment may have no rows: it says that
// nothing happened.
import { createHash } from 'node:crypto'
import { z } from 'zod'
import type { InstallationKey } from '../job/answer/result.ts'
import { canonical } from '../job/envelope/digest.ts'
import { signText } from '../job/envelope/envelope.ts'
import { type InstallationKeys, openSigned } from '../job/envelope/installation-jws.ts'
import type { ChainedRow } from '../store/access/audits.ts'
import { hashText, shownRow } from './row-hash.ts'

const TYP = 'tokenmill-audit+jws'

const hex = () => z.string().regex(/^[0-9a-f]{64}$/)

export const SegmentHead = z.strictObject({
  installation_id: z.string(),
  segment: z.int().positive(),
  /** SHA-256 of the head of the segment before; null in the first. */
  previous: hex().nullable(),
  /** The first row, and the last; `to` is `from` - 1 if there is none. */
  from: z.int().positive(),
  to: z.int().min(0),
  /** The hash of the row before `from`, and of the row `to`. */
  hash_before: hex(),
  hash: hex(),
  /** When it was cut, seconds since the epoch. */
  iat: z.int(),
})
export type SegmentHead = z.infer<typeof SegmentHead>

const SegmentRow = z.looseObject({
  seq: z.int(),
  audit_id: z.int(),
  at: z.string(),
  hash: hex(),
  mac: hex(),
  key_version: z.int(),
})
export type SegmentRow = z.infer<typeof SegmentRow>

export function signHead(head: SegmentHead, key: InstallationKey): string {
  return signText(canonical(head), key, TYP)
}

export function digestOf(head: string): string {
  return createHash('sha256').update(head, 'utf8').digest('hex')
}

export function* segmentLines(head: string, rows: readonly ChainedRow[]): Generator<string> {
  yield `${JSON.stringify({ head })}\n`
  for (const row of rows) yield `${rowLine(row)}\n`
}

/** A row with its hash and its MAC, as one line. */
export function rowLine(row: ChainedRow): string {
  const proof = { hash: row.hash.toString('hex'), mac: row.mac.toString('hex'), key_version: row.keyVersion }
  return canonical({ ...shownRow(row), ...proof })
}

const NAME = /^audit_(\d{12})\.[0-9a-f]{12}\.ndjson$/

/** The name holds a part of the file's digest: a segment that differs never replaces another. */
export function segmentName(segment: number, sha256: string): string {
  return `audit_${String(segment).padStart(12, '0')}.${sha256.slice(0, 12)}.ndjson`
}

/** The number of the segment; undefined for a foreign file. */
export function segmentOf(name: string): number | undefined {
  const digits = NAME.exec(name)?.[1]
  return digits === undefined ? undefined : Number(digits)
}

export interface Segment {
  head: SegmentHead
  /** SHA-256 of the head, which the next segment names. */
  digest: string
  rows: SegmentRow[]
  /**
   * A sentence that says what is wrong if the rows don't fit the segment's head: they were changed before the segment
   * was sent, or in the segment.
   */
  broken: string | undefined
}

/** Reads a segment; a sentence instead if it can't be read or isn't signed by this installation. */
export function readSegment(text: string, keys: InstallationKeys): Segment | { broken: string } {
  try {
    const [first = '', ...lines] = text.trimEnd().split('\n')
    const { head: jws } = z.strictObject({ head: z.string() }).parse(JSON.parse(first))
    const payload = openSigned(jws, TYP, keys)
    if (!payload) return { broken: 'its head is not signed by this installation' }
    const head = SegmentHead.parse(payload)
    const rows = lines.map(line => SegmentRow.parse(JSON.parse(line)))
    return { head, digest: digestOf(jws), rows, broken: brokenBy(head, rows) }
  } catch {
    return { broken: 'it can not be read' }
  }
}

function brokenBy({ from, to, hash_before, hash }: SegmentHead, rows: SegmentRow[]): string | undefined {
  if (rows.length !== to - from + 1) return `it has ${rows.length} rows, and its head says ${to - from + 1}`
  let before: Buffer = Buffer.from(hash_before, 'hex')
  for (const [index, row] of rows.entries()) {
    const computed = hashText(before, textOf(row))
    if (row.seq !== from + index || row.hash !== computed.toString('hex'))
      return `row ${from + index} in it was changed`
    before = computed
  }
  return before.toString('hex') === hash ? undefined : 'its rows are not those of its head'
}

/** The row without its hash and MAC. */
export function textOf({ hash: _, mac: __, key_version: ___, ...shown }: SegmentRow): Record<string, unknown> {
  return shown
}
