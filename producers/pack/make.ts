// Makes a sign-off pack of batches: checks their manifests, counts their results anew, and adds the decisions and the totals of
// both sides. It writes the file of rows to leave out while it reads the results; the caller writes and signs the pack.
import type { Clock } from '../../src/clock.ts'
import { tookEffect } from '../../src/job/outcome.ts'
import type { VerifyKey } from '../detached-signature.ts'
import { type Manifest, nameFrom } from '../migrate/manifest.ts'
import { FileError } from '../rows/file-error.ts'
import { openCells } from './cells.ts'
import { compareTotals, type TheirTotal } from './comparison.ts'
import { type Decisions, readDecisions } from './decisions.ts'
import { isOfSameFile } from './dry-run.ts'
import { openExceptions } from './exceptions.ts'
import { leaveOutPath, openLeaveOutText, replaceFile, type Sink } from './leave-out/leave-out-file.ts'
import { type LeftOutRows, leftOutOf } from './leave-out/left-out-rows.ts'
import type { FoundManifest } from './manifest-search.ts'
import type { Maker, Pack, Signer } from './pack.ts'
import { besideManifest, packBatch } from './packed-batch.ts'
import { openTotalExceptions, type TotalExceptions } from './packed-total.ts'
import { readResults } from './results-file.ts'
import { contradictionOf, sumsOf } from './sums.ts'
import type { MigrationTotal } from './total.ts'

export interface PackAsk {
  /** Where the pack will be written: it names files relative to that. */
  path: string
  manifests: readonly FoundManifest[]
  migration: string | undefined
  /** Manifests of dry runs that don't lie beside the files. */
  dryRuns: readonly FoundManifest[]
  /** The path of the file of decisions. */
  decisions: string | undefined
  theirs: TheirTotal | undefined
}

export interface PackDeps {
  clock: Clock
  /** The keys of the clients that may have signed the manifests. */
  keys: readonly VerifyKey[]
  signer: Signer
  madeBy: Maker
  /** Computes the vault's total; undefined: the pack has none. */
  total: ((batches: readonly string[]) => Promise<MigrationTotal>) | undefined
}

/** Throws a FileError if a check of a manifest fails, a file can't be used, or counts contradict each other. */
export async function makePack(ask: PackAsk, deps: PackDeps): Promise<Pack> {
  const { path, manifests, migration, theirs } = ask
  refuseForeignDryRuns(ask)
  const ids = manifests.map(({ manifest }) => manifest.batch_id)
  const decisions = ask.decisions && (await readDecisions(ask.decisions, { packPath: path, batches: ids }))
  const batches: Pack['batches'] = []
  for (const found of manifests) batches.push(await packBatch(found, { ...ask, packPath: path, keys: deps.keys }))
  const vault = await deps.total?.(ids)
  const leftOut = leftOutOf(vault?.exceptions ?? [])
  const file = leaveOutPath(path)
  // A pack that is refused leaves the file of an earlier one as it is.
  return replaceFile(file, async sink => {
    const counting = { decisions: decisions || undefined, leftOut, sink }
    const { cells, exceptions, ...counted } = await countResults(manifests, counting)
    return agreeing({
      pack: 1,
      ...(migration !== undefined && { migration }),
      made_at: new Date(deps.clock()).toISOString(),
      made_by: deps.madeBy,
      signer: deps.signer,
      batches,
      ...sumsOf(batches),
      cells,
      exceptions,
      leave_out: { name: nameFrom(path, file), ...counted.leaveOut },
      ...(vault && {
        total: {
          vault: { ...vault, exceptions: counted.leftOut },
          ...(theirs && { theirs, comparison: compareTotals(vault, theirs) }),
        },
      }),
    })
  })
}

function agreeing(pack: Pack): Pack {
  const contradiction = contradictionOf(pack)
  if (contradiction === undefined) return pack
  throw new FileError(
    'input',
    `The pack would contradict itself: ${contradiction} differ.`,
    'Were failed rows worked after a manifest was written? Then run migrate again for that file, and name the manifest that it writes (FILE.replay.manifest.json) in place of the file; --no-total makes a pack without the total.',
  )
}

/** Where the results of a batch are, and what the manifest says of them. */
export type CountedBatch = { path: string; manifest: Manifest }

export interface Counting {
  decisions: Decisions | undefined
  /** Which rows the total leaves out. */
  leftOut: LeftOutRows
  /** Takes the text of the file of rows to leave out. */
  sink: Sink
}

export interface CountedResults extends Pick<Pack, 'cells' | 'exceptions'> {
  leftOut: TotalExceptions
  leaveOut: { sha256: string; bytes: number }
}

/** Counts cells and exceptions. Throws a FileError if results aren't those of their manifest, or of the total. */
export async function countResults(
  batches: readonly CountedBatch[],
  { decisions, leftOut, sink }: Counting,
): Promise<CountedResults> {
  const cells = openCells()
  const exceptions = openExceptions(decisions)
  const totalExceptions = openTotalExceptions()
  const leaveOut = openLeaveOutText(sink)
  for (const { path, manifest } of batches) {
    const { batch_id: batchId } = manifest
    const results = besideManifest(path, manifest.results.name)
    const found = await readResults(results, row => {
      const reason = leftOut.reasonOf(batchId, row)
      cells.add(row)
      exceptions.add(batchId, row, reason)
      if (reason !== undefined) totalExceptions.add(batchId, row, reason)
      if (reason !== undefined || !tookEffect(row.outcome)) leaveOut.add(batchId, row, reason)
    })
    if (found.sha256 !== manifest.results.sha256)
      throw new FileError('input', `${results} is not the file of its manifest.`, 'Put back the file of migrate.')
  }
  leftOut.end()
  return {
    cells: cells.all(),
    exceptions: exceptions.all(),
    leftOut: totalExceptions.all(),
    leaveOut: leaveOut.end(),
  }
}

function refuseForeignDryRuns({ dryRuns, manifests }: PackAsk): void {
  const foreign = dryRuns.find(dryRun => !manifests.some(({ manifest }) => isOfSameFile(manifest, dryRun.manifest)))
  if (foreign)
    throw new FileError(
      'usage',
      `${foreign.path} is no manifest of a dry run over a file of this pack.`,
      'Give --dry-run the manifest that migrate --dry-run wrote for the same file.',
    )
}
