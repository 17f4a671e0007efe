// Writes the output files and the checkpoint of a run together: a checkpoint never names rows that aren't durable yet, and
// names each file before the file is there, so that no other file is ever taken for it.

import { rm } from 'node:fs/promises'
import type { Clock } from '../../src/clock.ts'
import { addReason } from '../../src/job/chunk-outcomes.ts'
import type { RowChunk } from '../rows/chunks.ts'
import { type FileCounts, type FileReasons, noFileCounts, sumOfFile } from '../rows/file-outcome.ts'
import type { FileRow } from '../rows/outcome/result-row.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'
import { layoutOf, type OutputName, type Paths, type Variant } from './batch-identity.ts'
import { type Checkpoint, removeCheckpoint, writeCheckpoint } from './checkpoint.ts'
import type { MigrateOptions } from './options.ts'
import { digestOf, type FileDigest, type OutputFile, openOutputFile } from './output-file.ts'
import { outputForms, textsOf } from './output-files.ts'
import { countOwner, type OwnerCounts, ownersSoFar } from './owners.ts'
import { entryOf, type PlannedFile, startingPoint } from './starting-point.ts'

/** What is counted of a row. */
export type CountedRow = Pick<FileRow, 'line' | 'outcome' | 'reason' | 'fileLine' | 'repairs' | 'onFile'> & {
  reference_outcome?: string | undefined
}

/** A chunk whose rows have ended, as it will be written. */
export interface EndedChunk extends ChunkEnd {
  /** The text for each file, in parts. It can be read once. */
  texts: Iterable<string | Buffer>[]
  /** Not all of its rows were skipped. */
  isSent: boolean
}

export interface ChunkEnd {
  /** The chunk's number in its batch; undefined if it wasn't sent. */
  number: number | undefined
  rows: readonly CountedRow[]
}

/** A row without what isn't counted. */
export function countedOf({ line, outcome, reason, fileLine, repairs, onFile, ...more }: CountedRow): CountedRow {
  return { line, outcome, reason, fileLine, repairs, onFile, reference_outcome: more.reference_outcome }
}

export interface Output {
  counts: FileCounts
  reasons: FileReasons
  /** How many rows were repaired in which way. */
  repairs: Record<string, number>
  owners: OwnerCounts
  /** The position of the first chunk that isn't written. */
  nextChunk: number
  /** How many rows were written in earlier runs. */
  rowsBefore: number
  /** What will be written of a chunk. `rows`: the ends of its rows. */
  endOf(chunk: Pick<RowChunk, 'number' | 'rows'>, rows: readonly FileRow[]): EndedChunk
  /** Writes the next chunk in order. */
  write(chunk: EndedChunk): Promise<void>
  /** Makes everything durable; returns the digest of each whole file. */
  close(): Promise<OutputDigests>
  release(): Promise<void>
  /** Removes the files and the checkpoint of a run without any effect, so that the same file can be run with other options. */
  discard(): Promise<void>
}

export type OutputDigests = { results: FileDigest } & { [name in OutputName]?: FileDigest }

interface OutputRun {
  batchId: string
  variant: Variant
  paths: Paths
  chunkRecords: number
  startedAt: number
  checkpoint: Checkpoint | undefined
}

export interface OutputDeps {
  clock: Clock
  /** Writes one line for the person who runs the command. */
  tell: (line: string) => void
}

/** The part of a checkpoint that describes the rows written so far. */
type Standing = Pick<Output, 'nextChunk' | 'counts' | 'reasons' | 'repairs' | 'owners'> & { files: PlannedFile[] }

const CHECKPOINT_MS = 1_000

export async function openOutput(
  options: MigrateOptions,
  plan: OutputRun,
  validated: ValidatedFile | undefined,
  { clock, tell }: OutputDeps,
): Promise<Output> {
  const { paths } = plan
  const start = await startingPoint(plan.checkpoint, outputForms(options, plan.variant), { paths, now: clock() })
  const { before, beganAgainFor } = start
  let { files } = start
  const counts: FileCounts = { ...noFileCounts(), ...before?.counts }
  const reasons: FileReasons = structuredClone(before?.reasons ?? {})
  const repairs: Record<string, number> = { ...before?.repairs }
  const owners = ownersSoFar(before)
  let nextChunk = before?.next_chunk ?? 0
  let savedAt = 0

  /**
   * Of standard input, what stood before the last chunk that was sent. The next run sends that chunk again: its answer
   * shows that the input is the same, and tells of failed rows that were done meanwhile.
   */
  let beforeLast: Standing | undefined
  const standing = () => ({ files, nextChunk, counts, reasons, repairs, owners })

  async function saveCheckpoint(): Promise<void> {
    const { files, nextChunk, counts, reasons, repairs, owners } = beforeLast ?? standing()
    await writeCheckpoint(paths.results, {
      v: 1,
      batch_id: plan.batchId,
      ...(validated ? { input: { sha256: validated.digests.sha256, bytes: validated.digests.bytes } } : {}),
      options: { ...layoutOf(options), chunk_records: plan.chunkRecords },
      next_chunk: nextChunk,
      results: digestsOf(files).results,
      rejects: entryOf(files, 'rejects', paths.results),
      return: entryOf(files, 'return', paths.results),
      counts,
      reasons,
      repairs,
      ...(options.profile?.on_file ? owners : {}),
      started_at: new Date(plan.startedAt).toISOString(),
    })
    savedAt = clock()
  }

  // A run that ends here finds its files by the checkpoint, whether they are there yet or not.
  await saveCheckpoint()
  if (beganAgainFor.length > 0)
    tell(
      `${beganAgainFor.join(' and ')} is new in this run, which therefore begins again at the first row: rows that were done are answered from their receipts`,
    )
  const opened = await openAll(files)
  let open = true
  async function save(): Promise<OutputDigests> {
    const marks = await Promise.all(opened.map(file => file.sync()))
    files = files.map((file, index) => ({ ...file, at: marks[index] ?? file.at }))
    await saveCheckpoint()
    return digestsOf(files)
  }
  function count(row: CountedRow): void {
    const { outcome, reason, repairs: repaired = [] } = row
    counts[outcome] += 1
    if (reason) addReason(reasons, outcome, reason, 1)
    for (const name of repaired) repairs[name] = (repairs[name] ?? 0) + 1
    if (row.onFile) countOwner(owners, row)
  }
  function markedNow(): Standing {
    const marked = files.map((file, index) => ({ ...file, at: opened[index]?.mark() ?? file.at }))
    return { files: marked, nextChunk, ...structuredClone({ counts, reasons, repairs, owners }) }
  }
  async function release(): Promise<void> {
    if (open) await closeAll(opened)
    open = false
  }
  // The checkpoint is saved before the first chunk is sent, so that the same command finds this run whatever happens.
  await save().catch(async error => {
    await closeAll(opened)
    throw error
  })
  return {
    counts,
    reasons,
    repairs,
    owners,
    rowsBefore: sumOfFile(counts),
    get nextChunk() {
      return nextChunk
    },
    endOf({ number, rows: given }, rows) {
      const texts = files.map(({ form }) => joined(textsOf(form, rows, given)))
      return { number, rows, texts, isSent: given.some(({ skipped }) => skipped === undefined) }
    },
    async write({ rows, texts, isSent }) {
      if (!validated && isSent) beforeLast = markedNow()
      for (const [index, parts] of texts.entries()) for (const text of parts) await opened[index]?.append(text)
      for (const row of rows) count(row)
      nextChunk += 1
      if (clock() - savedAt >= CHECKPOINT_MS) await save()
    },
    close: save,
    release,
    async discard() {
      await release()
      for (const { path } of files) await rm(path, { force: true })
      await removeCheckpoint(paths.results)
    },
  }
}

/** A text from this length on is written at once; the text of most chunks is shorter. */
const WRITE_UNITS = 1024 * 1024

/** Joins the parts of a chunk's text, so that most chunks are one write. */
function* joined(parts: Iterable<string>): Generator<string> {
  let text = ''
  for (const part of parts) {
    text += part
    if (text.length < WRITE_UNITS) continue
    yield text
    text = ''
  }
  if (text !== '') yield text
}

function digestsOf(files: readonly PlannedFile[]): OutputDigests {
  const digests: OutputDigests = { results: digestOf('') }
  for (const { form, at } of files) digests[form.name] = { bytes: at.bytes, sha256: at.sha256 }
  return digests
}

async function openAll(files: readonly PlannedFile[]): Promise<OutputFile[]> {
  const opened: OutputFile[] = []
  try {
    for (const { form, path, at } of files) opened.push(await openOutputFile(path, form.header, at))
    return opened
  } catch (error) {
    await closeAll(opened)
    throw error
  }
}

async function closeAll(files: readonly OutputFile[]): Promise<void> {
  for (const file of files) await file.close()
}
