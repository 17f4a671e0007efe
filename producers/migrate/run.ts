// `tokenmill migrate`: a file of cards becomes chunks on the queue, and their answers become a results file in input
// order and a signed manifest. It can be stopped anywhere, and the same command continues it. The worker decides what a
// row does.

import { createHash } from 'node:crypto'
import { assert } from '../../src/errors.ts'
import { resultsQueue } from '../../src/job/catalogue.ts'
import type { Extent } from '../../src/job/envelope/batch-extent.ts'
import { tellTo } from '../answer-deadline.ts'
import type { RecordForm } from '../client/in-form.ts'
import { type Client, connect } from '../client.ts'
import { signDetached } from '../detached-signature.ts'
import { checkBatchId, discardAnswers, type FileRunDeps } from '../file-run.ts'
import { openProgress, watchAwaited } from '../progress.ts'
import { begun, cutRows, type RowChunk } from '../rows/chunks.ts'
import type { FileError } from '../rows/file-error.ts'
import { type FileCounts, type FileReasons, sumOfFile } from '../rows/file-outcome.ts'
import { readRows } from '../rows/file-rows.ts'
import { checkColumns } from '../rows/layout.ts'
import { type Listing, listingOf } from '../rows/only/list.ts'
import type { PgpKeys } from '../rows/openpgp/decrypt.ts'
import { openEarlyWord } from '../rows/outcome/early-word.ts'
import { firstCards } from '../rows/outcome/preview.ts'
import { lockFiles } from '../rows/outcome/run-lock.ts'
import { openSeriesWord } from '../rows/outcome/series-word.ts'
import { openSource } from '../rows/source.ts'
import { type ValidatedFile, validateFile } from '../rows/validate-file.ts'
import { batchIdOf, layoutOf, type OutputName, replyToOf, type Variant } from './batch-identity.ts'
import { filesOf, refuseImpossible, refuseOtherFile } from './check-options.ts'
import { removeCheckpoint } from './checkpoint.ts'
import { openAwaited } from './chunk/awaited.ts'
import { mayHaveColumns, recordFormOf } from './chunk/record-form.ts'
import { openWaitingFile } from './chunk/waiting-file.ts'
import { limitInChunks, measureExtent } from './extent.ts'
import { compare, type Difference, type Manifest, nameFrom, readManifest, writeManifest } from './manifest.ts'
import type { MigrateOptions } from './options.ts'
import { type CountedRow, type OutputDigests, openOutput } from './output.ts'
import type { OwnerCounts } from './owners.ts'
import { provenanceOf } from './provenance.ts'
import { readingOf } from './reading.ts'
import { openRun, type Run } from './resume.ts'
import { type Stopped, sendChunks } from './send.ts'

export interface Summary {
  batchId: string
  variant: Variant
  rows: number
  counts: FileCounts
  /** How often rows ended for which reason. */
  reasons: FileReasons
  /** The number of rows with each repair. */
  repairs: Record<string, number>
  /** What became of the owners of cards, where the profile names them. */
  owners: OwnerCounts | undefined
  results: string
  rejects?: string | undefined
  return?: string | undefined
  manifest: string
  /** False: the run stopped before the end; the same command continues it. */
  complete: boolean
  /** Why the run stopped, if its options or its file caused that. */
  stopped: Stopped | undefined
  /** The error at which the reading of the file stopped. */
  broken: FileError | undefined
  ms: number
  /** How much of the list of `--only` the file has, if it was read to its end. */
  listing?: Listing | undefined
  /** The counts that differ from the expected manifest; empty if none differ or no manifest is expected. */
  differences: Difference[]
}

/** Migrates a file. Throws a FileError if the run is impossible, `KeyNotLiveError` if no worker will answer. */
export async function migrate(options: MigrateOptions, deps: FileRunDeps): Promise<Summary> {
  if (!options.profile) checkColumns(options)
  refuseImpossible(options)
  checkBatchId(options.batchId, deps.credentials)
  const began = deps.clock()
  const { source, rowOptions } = readingOf(options, began)
  const expected = options.expect === undefined ? undefined : (await readManifest(options.expect)).manifest
  const validated = options.file === '-' ? undefined : await validateFile(source, rowOptions)
  refuseOtherFile(options, validated?.digests.sha256)
  const batchId = batchIdOf(options, validated?.digests)
  const release = await lockFiles(filesOf(options).map(([, path]) => path))
  try {
    return await runLocked({ options, source, rowOptions, validated, batchId, expected, began }, deps)
  } finally {
    await release()
  }
}

interface LockedRun {
  options: MigrateOptions
  source: Parameters<typeof openSource>[0]
  rowOptions: Parameters<typeof readRows>[1]
  validated: ValidatedFile | undefined
  batchId: string
  expected: Manifest | undefined
  /** When the run began, ms since the epoch. */
  began: number
}

async function runLocked(locked: LockedRun, deps: FileRunDeps): Promise<Summary> {
  const { options, source, rowOptions, validated, batchId, expected, began } = locked
  const run = await openRun(options, batchId, validated, began)
  await discardAnswers(deps, replyToOf(batchId))
  const tell = tellTo(deps.stream)
  const client = await connect({
    queues: deps.queues,
    credentials: deps.credentials,
    replyTo: replyToOf(batchId),
    log: deps.log,
    clock: deps.clock,
    checkKey: deps.checkKey,
    tell,
    ...(deps.resendMs === undefined ? {} : { resendMs: deps.resendMs }),
  })
  try {
    const form = recordFormOf(options)
    const input = await openSource(source, validated?.digests)
    // The first chunk is read before anything is written, so that a wrong header leaves no trace of a run.
    const chunks = await begun(
      cutRows(readRows(input.bytes, { ...rowOptions, inColumns: mayHaveColumns(form) }), run.chunkRecords),
    )
    const { chunkRecords } = run
    if (options.profile && run.variant === 'run' && !run.checkpoint)
      for (const line of firstCards(options.profile.name, chunks.first?.rows ?? [])) tell(line)
    const extent =
      validated &&
      (await measureExtent(source, { ...rowOptions, migration: options.migration }, validated, chunkRecords))
    const limit = limitInChunks(options.limit, extent, chunkRecords)
    if (limit !== undefined && options.limit !== limit * chunkRecords)
      tell(`--limit ${options.limit} is rounded up to ${limit} whole chunks of ${chunkRecords} rows`)
    // The digest of standard input is known only at its end.
    const inputSha256 = validated?.digests.sha256 ?? createHash('sha256').update(batchId).digest('hex')
    const sent = await sendAll(chunks.all, {
      options,
      run: { ...run, extent, limit, inputSha256, form },
      client,
      deps,
      validated,
    })
    const summary = {
      batchId,
      variant: run.variant,
      ...run.paths,
      counts: sent.counts,
      reasons: sent.reasons,
      repairs: sent.repairs,
      owners: options.profile?.on_file ? sent.owners : undefined,
      rows: sent.rows,
      stopped: sent.stopped,
      broken: sent.broken,
      ms: deps.clock() - began,
      listing: sent.complete && options.only ? listingOf(options.only) : undefined,
      differences: [],
    }
    if (!sent.complete) return { ...summary, complete: false }
    if (validated) assert(sent.rows === validated.rows, `${validated.rows} rows were counted and ${sent.rows} read`)
    await finish(options, run, { ...sent, input: input.digest(), pgpKeys: validated?.pgpKeys }, deps)
    return { ...summary, complete: true, differences: compare(expected, sent.counts) }
  } finally {
    await client.close()
    if (run.done()) await deps.queues.obliterate(resultsQueue(client.clientId, replyToOf(batchId))).catch(() => {})
  }
}

interface SendingAll {
  options: MigrateOptions
  run: Run & {
    extent: Extent | undefined
    limit: number | undefined
    inputSha256: string
    form: RecordForm
  }
  client: Client
  deps: FileRunDeps
  validated: ValidatedFile | undefined
}

async function sendAll(chunks: AsyncIterable<RowChunk>, { options, run, client, deps, validated }: SendingAll) {
  const output = await openOutput(options, run, validated, { clock: deps.clock, tell: tellTo(deps.stream) })
  const done = sumOfFile(output.counts)
  const { stream, clock } = deps
  const late = openAwaited(clock)
  const awaited = watchAwaited({ ...deps, client })
  const total = validated?.rows
  const progress = openProgress({ stream, clock, total, done, waitsFor: late.text, awaited })
  progress.update(output.counts)
  const waiting = openWaitingFile(`${run.paths.results}.waiting`)
  try {
    const earlyWord = openEarlyWord(tellTo(deps.stream))
    const seriesWord = openSeriesWord(tellTo(deps.stream))
    const onAwaited = (chunk: RowChunk | undefined) => {
      late.see(chunk)
      progress.update(waiting.withRows(output.counts))
    }
    const onProgress = (rows: readonly CountedRow[]) => {
      progress.update(waiting.withRows(output.counts))
      earlyWord.see(output.counts, output.reasons)
      seriesWord.see(rows, output.counts)
    }
    const sending = { options, plan: run, client, deps, output, waiting, onProgress, onAwaited }
    const { complete, rows, stopped, broken } = await sendChunks(chunks, sending)
    const digests = await output.close()
    const { counts, reasons, repairs, owners } = output
    return { complete, rows, stopped, broken, counts, reasons, repairs, owners, digests }
  } finally {
    progress.stop()
    await waiting.close()
    await output.release()
  }
}

async function finish(
  options: MigrateOptions,
  run: Run,
  sent: {
    rows: number
    counts: FileCounts
    reasons: FileReasons
    repairs: Record<string, number>
    owners: OwnerCounts
    digests: OutputDigests
    input: { sha256: string; bytes: number }
    pgpKeys: PgpKeys | undefined
  },
  deps: FileRunDeps,
): Promise<void> {
  const { paths, batchId } = run
  const { signingKey } = deps.credentials
  const named = (name: OutputName) => {
    const [path, digest] = [paths[name], sent.digests[name]]
    return path === undefined || digest === undefined ? undefined : { ...digest, name: nameFrom(paths.manifest, path) }
  }
  const manifest: Manifest = {
    v: 1,
    batch_id: batchId,
    ...(options.migration === undefined ? {} : { migration: options.migration }),
    dry_run: options.dryRun,
    input: { ...sent.input, name: nameFrom(paths.manifest, options.file) },
    results: { ...sent.digests.results, name: nameFrom(paths.manifest, paths.results) },
    rejects: named('rejects'),
    return: named('return'),
    options: {
      ...layoutOf(options),
      chunk_records: run.chunkRecords,
      in_flight: options.inFlight,
    },
    rows: sent.rows,
    counts: sent.counts,
    reasons: sent.reasons,
    repairs: sent.repairs,
    ...(options.profile?.on_file ? sent.owners : {}),
    ...provenanceOf(options.startedBy ?? {}, signingKey.clientId, sent.pgpKeys),
    started_at: new Date(run.startedAt).toISOString(),
    ended_at: new Date(deps.clock()).toISOString(),
  }
  await writeManifest(paths.manifest, manifest, bytes => signDetached(bytes, signingKey))
  await removeCheckpoint(paths.results)
  run.finish()
}
