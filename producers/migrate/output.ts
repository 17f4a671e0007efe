// Writes the results file and the checkpoint of a run together: a checkpoint never names rows that aren't durable yet.

import { rm } from 'node:fs/promises'
import type { Clock } from '../../src/clock.ts'
import { addReason } from '../../src/job/chunk-outcomes.ts'
import { type FileCounts, type FileReasons, noFileCounts } from '../rows/outcome/file-outcome.ts'
import type { FileRow } from '../rows/outcome/result-row.ts'
import type { ValidatedFile } from '../rows/validate-file.ts'
import { layoutOf, type Paths, type Variant } from './batch-identity.ts'
import type { readCheckpoint } from './checkpoint.ts'
import { removeCheckpoint, writeCheckpoint } from './checkpoint.ts'
import type { MigrateOptions } from './options.ts'
import { countOwner, type OwnerCounts, ownersSoFar } from './owners.ts'
import { createResults, resumeResults } from './results.ts'

export interface Output {
  counts: FileCounts
  reasons: FileReasons
  /** How many rows were repaired in which way. */
  repairs: Record<string, number>
  owners: OwnerCounts
  /** The position of the first chunk that isn't written. */
  nextChunk: number
  /** An older release wrote the first of the results. */
  isOfOlderRelease: boolean
  /** Writes the rows of the next chunk in order. */
  write(rows: readonly FileRow[]): Promise<void>
  /** Makes everything durable; returns the digest of the whole results file. */
  close(): Promise<{ sha256: string; bytes: number }>
  release(): Promise<void>
  /**
   * Removes results and checkpoint of a run without any effect, so that the same file can be run with other options.
   */
  discard(): Promise<void>
}

interface OutputRun {
  batchId: string
  variant: Variant
  paths: Paths
  chunkRecords: number
  startedAt: number
  checkpoint: Awaited<ReturnType<typeof readCheckpoint>>
}

const CHECKPOINT_MS = 1_000

export async function openOutput(
  options: MigrateOptions,
  plan: OutputRun,
  validated: ValidatedFile | undefined,
  clock: Clock,
): Promise<Output> {
  const { checkpoint, paths } = plan
  const columns = {
    profile: options.profile !== undefined,
    owners: options.profile?.on_file !== undefined,
    tokenStatus: plan.variant === 'replay',
    failedFacet: options.schemeTokens,
    echo: options.echo.length === 0 ? undefined : options.echo,
  }
  const file = checkpoint
    ? await resumeResults(paths.results, columns, checkpoint.results)
    : await createResults(paths.results, columns)
  const counts: FileCounts = { ...noFileCounts(), ...checkpoint?.counts }
  const reasons: FileReasons = structuredClone(checkpoint?.reasons ?? {})
  const repairs: Record<string, number> = { ...checkpoint?.repairs }
  const owners = ownersSoFar(checkpoint)
  let nextChunk = checkpoint?.next_chunk ?? 0
  const isOfOlderRelease = checkpoint !== undefined && checkpoint.reasons === undefined
  let savedAt = 0
  let open = true

  async function save(): Promise<{ sha256: string; bytes: number }> {
    const results = await file.sync()
    await writeCheckpoint(paths.results, {
      v: 2,
      batch_id: plan.batchId,
      ...(validated ? { input: { sha256: validated.digests.sha256, bytes: validated.digests.bytes } } : {}),
      options: { ...layoutOf(options), chunk_records: plan.chunkRecords },
      next_chunk: nextChunk,
      results,
      counts,
      // They would be of a part of the rows, and the next run has to know, too, who began this file.
      ...(isOfOlderRelease ? {} : { reasons }),
      repairs,
      ...(options.profile?.on_file ? owners : {}),
      started_at: new Date(plan.startedAt).toISOString(),
    })
    savedAt = clock()
    return results
  }
  async function release(): Promise<void> {
    if (open) await file.close()
    open = false
  }
  // The checkpoint is saved before the first chunk is sent, so that the same command finds this run whatever happens.
  await save().catch(async error => {
    await file.close()
    throw error
  })
  return {
    counts,
    reasons,
    repairs,
    owners,
    isOfOlderRelease,
    get nextChunk() {
      return nextChunk
    },
    async write(rows) {
      await file.write(rows)
      for (const row of rows) {
        const { outcome, reason, repairs: repaired = [] } = row
        counts[outcome] += 1
        if (reason) addReason(reasons, outcome, reason, 1)
        for (const name of repaired) repairs[name] = (repairs[name] ?? 0) + 1
        if (row.onFile) countOwner(owners, row)
      }
      nextChunk += 1
      if (clock() - savedAt >= CHECKPOINT_MS) await save()
    },
    close: save,
    release,
    async discard() {
      await release()
      await rm(paths.results, { force: true })
      await removeCheckpoint(paths.results)
    },
  }
}
