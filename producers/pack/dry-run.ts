// Compares the counts of a batch with those of the dry run over the same file, for a sign-off pack.
import { z } from 'zod'
import { type Manifest, NamedFile } from '../migrate/manifest.ts'
import { canonicalText } from './canonical.ts'

/** The counts of a manifest that are compared. */
const COUNTED = ['counts', 'reasons', 'repairs', 'references', 'on_file'] as const

export const DryRun = z.strictObject({
  manifest: NamedFile,
  ended_at: z.iso.datetime(),
  /** Whether the dry run had the same options. */
  same_options: z.boolean(),
  /** Every count that differs; `name` is such as `REJECTED` or `REJECTED, pan_luhn`. */
  differences: z.array(
    z.strictObject({
      of: z.enum(['rows', ...COUNTED]),
      name: z.string(),
      dry_run: z.int().min(0),
      run: z.int().min(0),
    }),
  ),
})
export type DryRun = z.infer<typeof DryRun>

export function isOfSameFile(run: Manifest, dryRun: Manifest): boolean {
  return dryRun.dry_run && dryRun.input.sha256 === run.input.sha256
}

/** `file`: the dry run's manifest. */
export function compareDryRun(run: Manifest, dryRun: Manifest, file: NamedFile): DryRun {
  const groups = COUNTED.flatMap(of => {
    const [before, found] = [dryRun[of], run[of]]
    if (before === undefined || found === undefined) return []
    return differencesOf(flat(before), flat(found)).map(difference => ({ of, ...difference }))
  })
  const rows = differencesOf({ rows: dryRun.rows }, { rows: run.rows })
  return {
    manifest: file,
    ended_at: dryRun.ended_at,
    same_options: canonicalText(decidingOf(dryRun)) === canonicalText(decidingOf(run)),
    differences: [...rows.map(difference => ({ of: 'rows' as const, ...difference })), ...groups],
  }
}

/** Neither the size and form of chunks nor how many are in flight decides about a row. */
function decidingOf({ options: { chunk_records: _, in_flight: __, ...deciding } }: Manifest): object {
  return deciding
}

type Counts = Record<string, number>

/** `{REJECTED: {pan_luhn: 1}}` as `{'REJECTED, pan_luhn': 1}`. */
function flat(counts: Record<string, number | Counts | undefined>): Counts {
  const pairs = Object.entries(counts).flatMap(([name, value]): [string, number][] => {
    if (value === undefined) return []
    if (typeof value === 'number') return [[name, value]]
    return Object.entries(value).map(([inner, n]) => [`${name}, ${inner}`, n])
  })
  return Object.fromEntries(pairs)
}

function differencesOf(before: Counts, found: Counts): { name: string; dry_run: number; run: number }[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(found)])].sort()
  return names
    .map(name => ({ name, dry_run: before[name] ?? 0, run: found[name] ?? 0 }))
    .filter(({ dry_run: expected, run }) => expected !== run)
}
