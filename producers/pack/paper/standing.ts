// How a migration stands, in a few sentences, and the totals of both sides.
import type { Pack } from '../pack.ts'
import { grouped, type PaperSheet } from './sheet.ts'
import { time } from './text.ts'

/** What a person should know before signing. */
export function openPoints(pack: Pack): string[] {
  return [decisionPoint(pack), totalPoint(pack), dryRunPoint(pack)]
}

function decisionPoint({ exceptions: { rows, decided, open } }: Pack): string {
  if (rows === 0) return 'Exceptions: none.'
  if (open === 0) return `Exceptions: ${grouped(rows)}, and each has a decision.`
  return `Exceptions: ${grouped(rows)}; ${grouped(decided)} have a decision, ${grouped(open)} are open.`
}

function totalPoint({ total }: Pack): string {
  if (!total) return 'Total of both sides: none; this pack was made without it.'
  if (!total.comparison) return 'Total of both sides: the vault’s is below; the counterparty’s was not given.'
  return `Total of both sides: ${total.comparison.equal ? 'equal' : 'DIFFERENT'}.`
}

function dryRunPoint({ batches }: Pack): string {
  const compared = batches.flatMap(({ dry_run: dryRun }) => dryRun ?? [])
  const differing = compared.reduce((sum, { differences }) => sum + differences.length, 0)
  if (compared.length === 0) return 'Dry run: none was found.'
  const some = compared.length < batches.length ? ` (${compared.length} of ${batches.length} batches had one)` : ''
  return `Dry run: ${differing === 0 ? 'every count as predicted' : `counts that differ: ${grouped(differing)}`}${some}.`
}

export function drawTotal(page: PaperSheet, { total }: Pack): void {
  page.title('Total of both sides')
  if (!total) {
    page.say('This pack was made without a total (--no-total).')
    return
  }
  const { vault, theirs, comparison } = total
  const columns = [
    { label: 'Side', width: 17 },
    { label: 'Rows', width: 12, number: true },
    { label: 'SHA-256', width: 50, size: 7 },
  ]
  const brands = (of: Record<string, { rows: number; sha256: string }> | undefined, side: string) =>
    Object.entries(of ?? {}).map(([brand, sum]) => [`${side}, ${brand}`, sum.rows, sum.sha256] as const)
  page.table(columns, [
    ['Vault', vault.rows, vault.sha256],
    ...(theirs ? [['Counterparty', theirs.rows, theirs.sha256] as const] : []),
    ...brands(vault.by_brand, 'Vault'),
    ...brands(theirs?.by_brand, 'Counterparty'),
  ])
  page.say(`Computed ${time(vault.computed_at)} UTC over migration ${vault.migration}.`)
  if (vault.exceptions.rows > 0)
    page.say(`Rows that both sides leave out, which are exceptions: ${grouped(vault.exceptions.rows)}.`)
  if (comparison && !comparison.equal) page.say(differenceOf(comparison), true)
}

function differenceOf({ brands_differ: differ, brands_of_one_side: alone }: Comparison): string {
  const parts = [
    differ.length > 0 ? `These brands differ: ${differ.join(', ')}.` : 'No brand that both sides sum differs.',
    alone.length > 0 ? `Only one side has a sum of: ${alone.join(', ')}.` : '',
  ]
  return `The totals are not equal. ${parts.join(' ')}`.trim()
}

type Comparison = NonNullable<NonNullable<Pack['total']>['comparison']>
