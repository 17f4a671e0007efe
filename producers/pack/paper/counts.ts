// The counts of a pack: cards by brand, expiry year, outcome and reason; owners; repairs.
import type { Pack } from '../pack.ts'
import type { PaperSheet } from './sheet.ts'

export function drawCards(page: PaperSheet, { cells }: Pack): void {
  page.title('Cards by brand, expiry year, outcome and reason')
  page.table(
    [
      { label: 'Brand', width: 20 },
      { label: 'Expiry year', width: 12 },
      { label: 'Outcome', width: 14 },
      { label: 'Reason', width: 26 },
      { label: 'Rows', width: 16, number: true },
    ],
    cells.map(({ brand, expiry_year: year, outcome, reason, rows }) => [
      brand ?? 'not known',
      year ?? 'not known',
      outcome,
      reason ?? '',
      rows,
    ]),
  )
}

const TRAITS: Record<string, string> = {
  nti: 'with a network transaction id',
  tlid: 'with a transaction link id',
  tlid_unusual: 'with a transaction link id of unusual form',
}

export function drawOwners(page: PaperSheet, { references, on_file: onFile, repairs }: Pack): void {
  page.title('Owners, network ids and repairs')
  const columns = [
    { label: 'What', width: 70 },
    { label: 'Rows', width: 16, number: true },
  ]
  const owners = Object.entries(references ?? {}).map(([name, n]) => [`owner ${name}`, n] as const)
  const traits = Object.entries(onFile ?? {}).map(([name, n]) => [TRAITS[name] ?? name, n] as const)
  const repaired = Object.entries(repairs).map(([name, n]) => [`repaired: ${name}`, n] as const)
  const all = [...owners, ...traits, ...repaired]
  if (all.length > 0) page.table(columns, all)
  if (owners.length === 0) page.say('Owners: none, or the profile names none.')
  if (repaired.length === 0) page.say('Repairs: none.')
}
