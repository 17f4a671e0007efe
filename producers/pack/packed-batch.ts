// Makes one batch of a pack: its manifest, once its checks have passed, and the comparison with its dry run.
import { createHash } from 'node:crypto'
import { access, readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { thumbprintOf } from '../../src/vault/client-key.ts'
import { signerOf, type VerifyKey } from '../detached-signature.ts'
import { type NamedFile, nameFrom, readManifest, signaturePath, verifyManifest } from '../migrate/manifest.ts'
import { FileError } from '../rows/file-error.ts'
import { compareDryRun, type DryRun, isOfSameFile } from './dry-run.ts'
import type { FoundManifest } from './manifest-search.ts'
import type { PackedBatch, Signer } from './pack.ts'

export interface PackingBatch {
  packPath: string
  /** The keys of the clients that may have signed the manifest. */
  keys: readonly VerifyKey[]
  /** Manifests of dry runs that were named. */
  dryRuns: readonly FoundManifest[]
}

/** Throws a FileError if a check of the manifest, or of the dry run's manifest, fails. */
export async function packBatch(found: FoundManifest, packing: PackingBatch): Promise<PackedBatch> {
  const { packPath, keys, dryRuns } = packing
  const { path, manifest } = found
  const signer = await signerOfManifest(found, keys)
  const { checks, holds } = await verifyManifest(path, () => true)
  if (!holds) {
    const failed = Object.entries(checks).flatMap(([name, verdict]) => (verdict === 'fails' ? [name] : []))
    const next = 'Put back the files as migrate wrote them; `tokenmill manifest verify` checks them.'
    throw new FileError('input', `${path} does not hold: ${failed.join(', ')}.`, next)
  }
  const dryRun = dryRuns.find(one => isOfSameFile(manifest, one.manifest)) ?? (await dryRunBeside(found))
  if (dryRun) await signerOfManifest(dryRun, keys)
  return {
    file: fileOf(found, packPath),
    signer,
    manifest,
    ...(dryRun && { dry_run: compared(found, dryRun, packPath) }),
  }
}

export function signerFrom({ kid, publicKey }: VerifyKey): Signer {
  return { kid, thumbprint: thumbprintOf(publicKey) }
}

/** The path of a file that a manifest at `manifestPath` names. */
export function besideManifest(manifestPath: string, name: string): string {
  return resolve(dirname(manifestPath), name)
}

async function signerOfManifest({ path, bytes }: FoundManifest, keys: readonly VerifyKey[]): Promise<Signer> {
  const jws = await readFile(signaturePath(path), 'utf8').catch(() => '')
  const key = signerOf(bytes, jws.trim(), keys)
  if (key) return signerFrom(key)
  const next = 'Give the client that ran the migration with --client, or its public JWK with --key.'
  throw new FileError('input', `${path} bears no signature of the client.`, next)
}

async function dryRunBeside({ path, manifest }: FoundManifest): Promise<FoundManifest | undefined> {
  const stem = manifest.input.name === '-' ? manifest.results.name : manifest.input.name
  // Where --manifest named the run's manifest, the dry run's stands beside it.
  for (const beside of [besideManifest(path, `${stem}.dry-run.manifest.json`), `${path}.dry-run.json`]) {
    const isThere = await access(beside).then(
      () => true,
      () => false,
    )
    if (!isThere) continue
    const found = { path: beside, ...(await readManifest(beside)) }
    if (isOfSameFile(manifest, found.manifest)) return found
  }
  return undefined
}

function compared({ manifest }: FoundManifest, dryRun: FoundManifest, packPath: string): DryRun {
  return compareDryRun(manifest, dryRun.manifest, fileOf(dryRun, packPath))
}

function fileOf({ path, bytes }: FoundManifest, packPath: string): NamedFile {
  return {
    name: nameFrom(packPath, path),
    sha256: createHash('sha256').update(bytes).digest('hex'),
    bytes: bytes.length,
  }
}
