// Checks one batch of a pack: its manifest, and every file that the manifest names and that is there.
import { stat } from 'node:fs/promises'
import type { VerifyKey } from '../../detached-signature.ts'
import { checkDigest, type Manifest, type NamedFile, readManifest } from '../../migrate/manifest.ts'
import { sumOfFile } from '../../rows/file-outcome.ts'
import { canonicalText } from '../canonical.ts'
import { compareDryRun } from '../dry-run.ts'
import type { PackedBatch } from '../pack.ts'
import { besideManifest } from '../packed-batch.ts'
import { isSigned, keysOfSigner, said, type Verdict } from './verdict.ts'

export const BATCH_CHECKS = {
  manifest_digest: 'digest of the manifest',
  manifest_signature: 'signature of the manifest',
  manifest_content: 'content of the manifest as in the pack',
  rows: 'rows are the sum of the counts',
  results_digest: 'digest of the results file',
  input_digest: 'digest of the input file',
  rejects_digest: 'digest of the file of rejected rows',
  return_digest: 'digest of the file that goes back',
  dry_run: 'comparison with the dry run',
} as const

export type BatchChecks = Record<keyof typeof BATCH_CHECKS, Verdict>

export async function batchChecks(
  packPath: string,
  batch: PackedBatch,
  keys: readonly VerifyKey[],
): Promise<BatchChecks> {
  const { file, manifest } = batch
  const path = besideManifest(packPath, file.name)
  const digest = await checkDigest(packPath, file)
  const isFile = digest !== 'absent' && (await stat(path)).isFile()
  const found = isFile ? await readManifest(path).catch(() => undefined) : undefined
  const ifThere = (holds: boolean | undefined) => (digest === 'absent' ? 'absent' : said(holds === true))
  const ofFile = (named: NamedFile | undefined) => checkDigest(path, named)
  const ofSigner = keysOfSigner(batch.signer, keys)
  return {
    manifest_digest: digest,
    manifest_signature: ifThere(found && (await isSigned(path, found.bytes, ofSigner))),
    manifest_content: ifThere(found && canonicalText(found.manifest) === canonicalText(manifest)),
    rows: said(manifest.rows === sumOfFile(manifest.counts)),
    results_digest: await ofFile(manifest.results),
    input_digest: await ofFile(manifest.input),
    rejects_digest: await ofFile(manifest.rejects),
    return_digest: await ofFile(manifest.return),
    dry_run: await dryRunVerdict(packPath, batch, manifest),
  }
}

async function dryRunVerdict(packPath: string, { dry_run: told }: PackedBatch, run: Manifest): Promise<Verdict> {
  if (!told) return 'absent'
  const digest = await checkDigest(packPath, told.manifest)
  if (digest !== 'holds') return digest
  const found = await readManifest(besideManifest(packPath, told.manifest.name)).catch(() => undefined)
  return said(
    found !== undefined && canonicalText(compareDryRun(run, found.manifest, told.manifest)) === canonicalText(told),
  )
}
