// The manifest of a finished run: what went in, what came out, and the sum that must hold between them, signed by the
// client. Verifying a manifest reads input and results again. The caller passes the functions that sign and verify;
// this file has no key.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { basename, dirname, relative, resolve } from 'node:path'
import { z } from 'zod'
import { assert } from '../../src/errors.ts'
import { MIGRATION_NAME } from '../../src/job/choices.ts'
import { writeAtomically } from '../rows/atomic-file.ts'
import { readCsv } from '../rows/csv.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { FILE_OUTCOMES, type FileCounts, type FileOutcome, noFileCounts, sumOfFile } from '../rows/file-outcome.ts'
import { RESULT_COLUMNS } from '../rows/outcome/result-row.ts'
import { DigestOfFile, OutcomeCounts, OutcomeReasons, RepairCounts } from './checkpoint.ts'
import { ownerCounts } from './owners.ts'
import { provenance } from './provenance.ts'

export const NamedFile = DigestOfFile.extend({ name: z.string() })

/** The name of a migration of several batches (`--migration`). */
export const MigrationName = z.string().regex(MIGRATION_NAME)

export const Manifest = z.strictObject({
  v: z.literal(1),
  batch_id: z.string(),
  /** The migration that the batch is a part of. */
  migration: MigrationName.optional(),
  dry_run: z.boolean(),
  /** `name` is relative to the manifest, `-` for standard input. */
  input: NamedFile,
  results: NamedFile,
  /** These two are present if their options were given. */
  rejects: NamedFile.optional(),
  return: NamedFile.optional(),
  options: z.record(z.string(), z.json()),
  rows: z.int().min(0),
  counts: OutcomeCounts,
  reasons: OutcomeReasons,
  /** How many rows were repaired in which way. */
  repairs: RepairCounts,
  ...ownerCounts,
  ...provenance,
  started_at: z.iso.datetime(),
  ended_at: z.iso.datetime(),
})
export type Manifest = z.infer<typeof Manifest>
export type NamedFile = z.infer<typeof NamedFile>

/** Signs bytes as a detached JWS (RFC 7515, appendix F). */
export type Sign = (bytes: Buffer) => string | Promise<string>
/** Whether the client made this detached JWS over these bytes. */
export type VerifySignature = (bytes: Buffer, jws: string) => boolean | Promise<boolean>

export function signaturePath(manifest: string): string {
  return `${manifest}.jws`
}

/** The relative name by which the manifest at `manifest` refers to `path`. */
export function nameFrom(manifest: string, path: string): string {
  return path === '-' ? path : relative(dirname(resolve(manifest)), resolve(path))
}

/** Refuses, before a run begins, to overwrite the manifest of another batch. */
export async function checkManifestFree(path: string, batchId: string): Promise<void> {
  const found = await readFile(path, 'utf8').catch(() => undefined)
  if (found === undefined) return
  const { manifest } = await readManifest(path)
  if (manifest.batch_id === batchId) return
  const next = 'Give another name with --manifest FILE, or move it away.'
  throw new FileError('usage', `${path} belongs to another batch (${manifest.batch_id}).`, next)
}

/** Throws if the number of rows isn't the sum of the outcomes: such a run is broken and gets no manifest. */
export async function writeManifest(path: string, manifest: Manifest, sign: Sign): Promise<void> {
  const { rows, counts } = manifest
  const sum = sumOfFile(counts)
  assert(rows === sum, `${rows} rows were read and ${sum} outcomes written`)
  await checkManifestFree(path, manifest.batch_id)
  const text = `${JSON.stringify(Manifest.parse(manifest), null, 2)}\n`
  await writeAtomically(signaturePath(path), `${await sign(Buffer.from(text))}\n`)
  await writeAtomically(path, text)
}

export async function readManifest(path: string): Promise<{ manifest: Manifest; bytes: Buffer }> {
  try {
    const bytes = await readFile(path)
    return { manifest: Manifest.parse(JSON.parse(bytes.toString('utf8'))), bytes }
  } catch (error) {
    const wrong = codeOf(error) === undefined ? 'is no manifest' : `cannot be read (${codeOf(error)})`
    throw new FileError('usage', `${path} ${wrong}.`, 'Give the file that migrate wrote.', error)
  }
}

export const CHECKS = [
  ...(['signature', 'rows', 'results_digest', 'results_counts', 'input_digest'] as const),
  ...(['rejects_digest', 'return_digest'] as const),
] as const

export interface Verification {
  manifest: Manifest
  /**
   * `absent`: no file is named, or it isn't there, for example because it was shredded. Absent results count as
   * `fails`.
   */
  checks: Record<(typeof CHECKS)[number], 'holds' | 'fails' | 'absent'>
  /** No check fails. */
  holds: boolean
}

export async function verifyManifest(path: string, verify: VerifySignature): Promise<Verification> {
  const { manifest, bytes } = await readManifest(path)
  const jws = await readFile(signaturePath(path), 'utf8').catch(() => undefined)
  const say = (holds: boolean) => (holds ? 'holds' : 'fails')
  const results = await checkDigest(path, manifest.results)
  const resultsPath = resolve(dirname(path), manifest.results.name)
  const isFile = (await stat(resultsPath).catch(() => undefined))?.isFile() === true
  // Results that can't be read fail by their digest.
  const counted = isFile ? await countOutcomes(resultsPath).catch(() => undefined) : undefined
  const checks: Verification['checks'] = {
    signature: say(jws !== undefined && (await verify(bytes, jws.trim()))),
    rows: say(manifest.rows === sumOfFile(manifest.counts)),
    results_digest: say(results === 'holds'),
    results_counts: say(counted !== undefined && FILE_OUTCOMES.every(name => counted[name] === manifest.counts[name])),
    input_digest: await checkDigest(path, manifest.input),
    rejects_digest: await checkDigest(path, manifest.rejects),
    return_digest: await checkDigest(path, manifest.return),
  }
  return { manifest, checks, holds: CHECKS.every(name => checks[name] !== 'fails') }
}

/**
 * Whether the file beside `path` is the one that the manifest names. `absent`: there is none, none is named, or it was
 * standard input.
 */
export async function checkDigest(
  path: string,
  told: z.infer<typeof NamedFile> | undefined,
): Promise<'holds' | 'fails' | 'absent'> {
  if (!told || told.name === '-') return 'absent'
  try {
    const found = await digestFile(resolve(dirname(path), told.name))
    if (!found) return 'absent'
    return found.sha256 === told.sha256 && found.bytes === told.bytes ? 'holds' : 'fails'
  } catch (error) {
    // The other checks are made nevertheless.
    if (error instanceof FileError) return 'fails'
    throw error
  }
}

type Digest = z.infer<typeof DigestOfFile>

/**
 * Undefined if there is no such file. Throws a FileError if it can't be read, or isn't a regular file: a pipe may have
 * no end.
 */
export async function digestFile(path: string): Promise<Digest | undefined> {
  const hash = createHash('sha256')
  let bytes = 0
  const found = await stat(path).catch(() => undefined)
  if (found && !found.isFile()) throw new FileError('input', `${basename(path)} is no regular file.`, 'Check it.')
  try {
    for await (const chunk of createReadStream(path, { highWaterMark: 1024 * 1024 }) as AsyncIterable<Buffer>) {
      hash.update(chunk)
      bytes += chunk.length
    }
  } catch (error) {
    if (codeOf(error) === 'ENOENT') return undefined
    throw new FileError('input', `${basename(path)} cannot be read (${codeOf(error)}).`, 'Check it.', error)
  }
  return { sha256: hash.digest('hex'), bytes }
}

/** Counts the outcomes of a results file; undefined if the file isn't a results file of `migrate`. */
async function countOutcomes(path: string): Promise<FileCounts | undefined> {
  const counts = noFileCounts()
  const at = RESULT_COLUMNS.indexOf('outcome')
  let header = true
  for await (const rows of readCsv(createReadStream(path) as AsyncIterable<Buffer>)) {
    for (const { fields, rejected } of rows) {
      const outcome = fields[at]
      if (header) header = false
      else if (rejected !== undefined || !FILE_OUTCOMES.includes(outcome as FileOutcome)) return undefined
      else counts[outcome as FileOutcome]++
    }
  }
  return counts
}

/** A count that differs from that of an expected manifest. */
export interface Difference {
  outcome: string
  expected: number
  found: number
}

/** The counts that differ from those of the expected manifest. */
export function compare(expected: Pick<Manifest, 'counts'> | undefined, counts: FileCounts): Difference[] {
  if (!expected) return []
  return Object.entries(counts).flatMap(([outcome, found]) => {
    const before = (expected.counts as Record<string, number>)[outcome] ?? 0
    return before === found ? [] : [{ outcome, expected: before, found }]
  })
}
