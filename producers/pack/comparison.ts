// The counterparty's total, and how it compares with the vault's. docs/sign-off/total.py computes it and prints it in the
// form that is read here.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { editedText } from '../../src/edited-text.ts'
import { NamedFile, nameFrom } from '../migrate/manifest.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import type { MigrationTotal } from './total.ts'

type VaultSums = Pick<MigrationTotal, 'rows' | 'sha256' | 'by_brand'>

const Sum = z.strictObject({ rows: z.int().min(0), sha256: z.string().regex(/^[0-9a-f]{64}$/) })
type Sum = z.infer<typeof Sum>

export const TheirTotal = z.strictObject({
  ...Sum.shape,
  by_brand: z.record(z.string(), Sum).optional(),
  /** Absent: the total was given on the command line. */
  file: NamedFile.optional(),
})
export type TheirTotal = z.infer<typeof TheirTotal>

export const Comparison = z.strictObject({
  equal: z.boolean(),
  /** The brands of which both sides have a sum, and whose sums differ; empty if the totals are equal. */
  brands_differ: z.array(z.string()),
  /** The brands of which one side has no sum. */
  brands_of_one_side: z.array(z.string()),
})
export type Comparison = z.infer<typeof Comparison>

const isSame = (a: Sum, b: Sum) => a.rows === b.rows && a.sha256 === b.sha256

export function compareTotals(vault: VaultSums, theirs: TheirTotal): Comparison {
  const equal = isSame(vault, theirs)
  const { by_brand: brands = {} } = theirs
  const names = [...new Set([...Object.keys(vault.by_brand), ...Object.keys(brands)])].sort()
  const pairs = names.map(name => ({ name, ours: vault.by_brand[name], other: brands[name] }))
  const chosen = (accepts: (pair: (typeof pairs)[number]) => boolean) => pairs.filter(accepts).map(({ name }) => name)
  return {
    equal,
    brands_differ: equal ? [] : chosen(({ ours, other }) => !!ours && !!other && !isSame(ours, other)),
    // A sender who gave only the whole total gave no sums of brands.
    brands_of_one_side: equal || !theirs.by_brand ? [] : chosen(({ ours, other }) => !ours || !other),
  }
}

const Printed = z.object({
  rows: Sum.shape.rows,
  sha256: Sum.shape.sha256,
  by_brand: z.record(z.string(), Sum).optional(),
})

/** Reads what total.py printed. */
export async function readTheirTotal(path: string, packPath: string): Promise<TheirTotal> {
  const next = 'Give --their-total the file that docs/sign-off/total.py printed, or a SHA-256 with --their-count.'
  const bytes = await readFile(path).catch(error => {
    throw new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, next, error)
  })
  // A shell may have written what the program printed in its own encoding.
  const text = editedText(bytes, (wrong, how) => new FileError('usage', `${path} ${wrong}.`, `${how} ${next}`))
  try {
    const printed = Printed.parse(JSON.parse(text))
    const sha256 = createHash('sha256').update(bytes).digest('hex')
    return { ...printed, file: { name: nameFrom(packPath, path), sha256, bytes: bytes.length } }
  } catch (error) {
    throw new FileError('usage', `${path} is no total.`, next, error)
  }
}
