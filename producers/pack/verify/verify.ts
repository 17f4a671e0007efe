// Checks a sign-off pack: its own signature, its form and sums, every file that is there, the results counted anew, and
// the counterparty's signature. If a file isn't there, its check says `absent`; a file without its signature fails.
import { createHash } from 'node:crypto'
import { readFile, stat } from 'node:fs/promises'
import type { VerifyKey } from '../../detached-signature.ts'
import { checkDigest } from '../../migrate/manifest.ts'
import { canonicalText } from '../canonical.ts'
import { compareTotals } from '../comparison.ts'
import {
  type Countersignature,
  countersignaturePath,
  isCountersigned,
  readCountersignature,
} from '../countersignature.ts'
import { readDecisions } from '../decisions.ts'
import { readLeaveOut } from '../leave-out/leave-out-file.ts'
import { leftOutBy } from '../leave-out/left-out-rows.ts'
import { countResults } from '../make.ts'
import { type Pack, packText, readPack } from '../pack.ts'
import { besideManifest } from '../packed-batch.ts'
import { digestsIn } from '../paper/digests.ts'
import { contradictionOf } from '../sums.ts'
import { pdfPath } from '../write.ts'
import { type BatchChecks, batchChecks } from './batch-checks.ts'
import { isSigned, keysOfSigner, said, type Verdict } from './verdict.ts'

export const PACK_CHECKS = {
  signature: 'signature of the client',
  form: 'canonical order',
  sums: 'sums of the counts, which agree',
  results_counts: 'counts and exceptions of the results, counted anew',
  decisions_digest: 'digest of the file of decisions',
  leave_out_digest: 'digest of the file of rows to leave out',
  their_total_digest: 'digest of the counterparty’s total',
  comparison: 'comparison of the totals',
  pdf_signature: 'signature of the PDF',
  pdf_digest: 'digests in the PDF: of this pack, and of the counterparty’s signature',
  counterparty: 'signature of the counterparty',
} as const

export type PackCheck = keyof typeof PACK_CHECKS

export interface PackVerification {
  pack: Pack
  checks: Record<PackCheck, Verdict>
  batches: { batch_id: string; checks: BatchChecks }[]
  countersignature: Countersignature | undefined
  /** No check fails. */
  holds: boolean
}

/** `keys`: of the clients that may have signed pack and manifests. */
export async function verifyPack(path: string, keys: readonly VerifyKey[]): Promise<PackVerification> {
  const { pack, bytes } = await readPack(path)
  const kept = await readCountersignature(path).catch(() => 'broken' as const)
  const checks: PackVerification['checks'] = {
    signature: said(await isSigned(path, bytes, keysOfSigner(pack.signer, keys))),
    form: said(packText(pack) === bytes.toString('utf8')),
    sums: said(contradictionOf(pack) === undefined),
    results_counts: await countedAnew(path, pack),
    decisions_digest: await checkDigest(path, pack.exceptions.decisions),
    leave_out_digest: await checkDigest(path, pack.leave_out),
    their_total_digest: await checkDigest(path, pack.total?.theirs?.file),
    comparison: comparisonVerdict(pack),
    ...(await paperVerdicts(path, { bytes, kept }, keys)),
    counterparty: await counterpartyVerdict(path, { bytes, kept }, keys),
  }
  const batches = []
  for (const batch of pack.batches)
    batches.push({ batch_id: batch.manifest.batch_id, checks: await batchChecks(path, batch, keys) })
  const verdicts = [checks, ...batches.map(batch => batch.checks)].flatMap(all => Object.values(all))
  return {
    pack,
    checks,
    batches,
    countersignature: kept === 'broken' ? undefined : kept?.record,
    holds: !verdicts.includes('fails'),
  }
}

/**
 * Counts again only if all files are there: the results of each batch, the rows to leave out, and the decisions of the
 * pack if there are some.
 */
async function countedAnew(path: string, pack: Pack): Promise<Verdict> {
  const batches = pack.batches.map(({ file, manifest }) => ({ path: besideManifest(path, file.name), manifest }))
  const results = batches.map(batch => besideManifest(batch.path, batch.manifest.results.name))
  const { decisions: decided } = pack.exceptions
  const decisionsPath = decided && besideManifest(path, decided.name)
  const leaveOutPath = besideManifest(path, pack.leave_out.name)
  const there = await Promise.all([...results, leaveOutPath, ...(decisionsPath ? [decisionsPath] : [])].map(kindOf))
  if (there.includes('absent')) return 'absent'
  if (there.includes('other')) return 'fails'
  const ids = batches.map(({ manifest }) => manifest.batch_id)
  try {
    const decisions = decisionsPath ? await readDecisions(decisionsPath, { packPath: path, batches: ids }) : undefined
    const leftOut = leftOutBy(await readLeaveOut(leaveOutPath))
    const counted = await countResults(batches, { decisions, leftOut, sink: () => {} })
    const { cells, exceptions, leave_out: named, total } = pack
    const { name: _, ...leaveOut } = named
    const told = { cells, exceptions, leaveOut, leftOut: total?.vault.exceptions ?? NONE_LEFT_OUT }
    return said(canonicalText(counted) === canonicalText(told))
  } catch {
    return 'fails'
  }
}

const NONE_LEFT_OUT = { rows: 0, by_reason: {}, listed: [] }

/** What is at the path. Only a regular file is opened later: a pipe might have no end. */
async function kindOf(path: string): Promise<'file' | 'other' | 'absent'> {
  const found = await stat(path).catch(() => undefined)
  if (!found) return 'absent'
  return found.isFile() ? 'file' : 'other'
}

function comparisonVerdict({ total }: Pack): Verdict {
  if (!total?.theirs) return 'absent'
  return said(canonicalText(total.comparison) === canonicalText(compareTotals(total.vault, total.theirs)))
}

interface Signed {
  /** The content of the pack's file. */
  bytes: Buffer
  /** The record of the counterparty's signature; undefined: there is none. */
  kept: Awaited<ReturnType<typeof readCountersignature>> | 'broken'
}

/** The client has signed many PDFs: this one must be of this pack, and show the counterparty's signature if there is one. */
async function paperVerdicts(
  path: string,
  { bytes, kept }: Signed,
  keys: readonly VerifyKey[],
): Promise<Record<'pdf_signature' | 'pdf_digest', Verdict>> {
  const pdf = await readFile(pdfPath(path)).catch(() => undefined)
  if (!pdf) return { pdf_signature: 'absent', pdf_digest: 'absent' }
  const told = digestsIn(pdf)
  const isOfPack = told?.json === sha256Of(bytes)
  const isOfRecord = !kept || (kept !== 'broken' && told?.countersignature === sha256Of(kept.bytes))
  return {
    pdf_signature: said(await isSigned(pdfPath(path), pdf, keys)),
    pdf_digest: said(isOfPack && isOfRecord),
  }
}

/** Both signatures count: the counterparty's over the pack, and the client's over the record that keeps it. */
async function counterpartyVerdict(
  path: string,
  { bytes, kept }: Signed,
  keys: readonly VerifyKey[],
): Promise<Verdict> {
  if (!kept) return 'absent'
  if (kept === 'broken') return 'fails'
  const isOfPack = kept.record.pack.sha256 === sha256Of(bytes)
  const isRecorded = await isSigned(countersignaturePath(path), kept.bytes, keys)
  return said(isOfPack && isRecorded && (await isCountersigned(kept.record, bytes)))
}

const sha256Of = (bytes: Buffer) => createHash('sha256').update(bytes).digest('hex')
