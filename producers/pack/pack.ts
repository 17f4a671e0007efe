// The sign-off pack: what both sides of a migration agree on, as one JSON file in canonical order, signed by the
// client. It holds no card number. The PDF says the same for people (paper/).
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { OutcomeCounts, RepairCounts } from '../migrate/checkpoint.ts'
import { Manifest, MigrationName, NamedFile } from '../migrate/manifest.ts'
import { ownerCounts } from '../migrate/owners.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { canonicalText } from './canonical.ts'
import { Cell } from './cells.ts'
import { Comparison, TheirTotal } from './comparison.ts'
import { DryRun } from './dry-run.ts'
import { Exceptions } from './exceptions.ts'
import { PackedTotal } from './packed-total.ts'

/** A client's key. */
export const Signer = z.strictObject({
  kid: z.string(),
  thumbprint: z.string().describe('RFC 7638, SHA-256, base64url.'),
})
export type Signer = z.infer<typeof Signer>

/** Who made a file: the client that signed it, and the account of the operating system. */
export const Maker = z.strictObject({ client_id: z.string(), os_user: z.string() })
export type Maker = z.infer<typeof Maker>

export const PackedBatch = z.strictObject({
  file: NamedFile.describe('The manifest; its name is relative to the pack.'),
  signer: Signer.describe('The key that signed the manifest.'),
  manifest: Manifest.describe('The content of the manifest.'),
  dry_run: DryRun.optional().describe('The comparison with the dry run over the same file, if one was found.'),
})
export type PackedBatch = z.infer<typeof PackedBatch>

export const Pack = z.strictObject({
  pack: z.literal(1),
  migration: MigrationName.optional().describe('The name of the migration.'),
  made_at: z.iso.datetime(),
  made_by: Maker,
  signer: Signer.describe('The key that signed the pack.'),
  batches: z.array(PackedBatch).min(1).describe('In the order of their beginning.'),
  rows: z.int().min(0).describe('The rows of all batches.'),
  counts: OutcomeCounts.describe('Rows by outcome.'),
  cells: z.array(Cell).describe('Rows by brand, expiry year, outcome and reason, counted from the results.'),
  repairs: RepairCounts.describe('Rows by repair.'),
  references: ownerCounts.references.describe('Owners by what became of them.'),
  on_file: ownerCounts.on_file.describe('Rows with network transaction ids, and with transaction link ids.'),
  exceptions: Exceptions.describe('Rows that brought no token, and rows that the total leaves out.'),
  leave_out: NamedFile.describe('The file of all rows that don’t count in the total: NAME.pack.leave-out.csv.'),
  total: z
    .strictObject({ vault: PackedTotal, theirs: TheirTotal.optional(), comparison: Comparison.optional() })
    .optional()
    .describe('The totals of both sides; absent if the pack was made without (--no-total).'),
})
export type Pack = z.infer<typeof Pack>

/** The pack as a canonical text. */
export function packText(pack: Pack): string {
  return canonicalText(Pack.parse(pack))
}

export async function readPack(path: string): Promise<{ pack: Pack; bytes: Buffer }> {
  const next = 'Give the JSON that manifest pack wrote.'
  const bytes = await readFile(path).catch(error => {
    throw new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, next, error)
  })
  try {
    return { pack: Pack.parse(JSON.parse(bytes.toString('utf8'))), bytes }
  } catch (error) {
    throw new FileError('usage', `${path} is no sign-off pack of this release.`, next, error)
  }
}

/** Whether the file is a pack and not a manifest. */
export async function isPack(path: string): Promise<boolean> {
  const text = await readFile(path, 'utf8').catch(() => '')
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null && 'pack' in value
  } catch {
    return false
  }
}
