// Warns once during a run if every row so far was rejected, or every row failed, for the same reason: then the file or
// the options are wrong rather than the rows.
import { REASONS, type Reason } from '../../../src/errors.ts'
import type { ReasonCounts } from '../../../src/job/chunk-outcomes.ts'
import { type Counts, sumOf } from '../../../src/job/outcome.ts'

/** With fewer rows the same reason may be chance. */
const ROWS_MIN = 20

export interface EarlyWord {
  /** Call it with the counts of the rows that were answered so far. */
  see(counts: Counts, reasons: ReasonCounts): void
}

export function openEarlyWord(tell: (line: string) => void): EarlyWord {
  let said = false
  return {
    see(counts, reasons) {
      if (said) return
      const only = onlyReason(counts, reasons)
      if (only === undefined) return
      said = true
      tell(`all ${sumOf(counts)} rows so far are ${only.outcome}: ${wordOf(only.reason)} Ctrl-C stops this run.`)
    },
  }
}

/**
 * The reason that all rows share; undefined if some row ended well, if there are several reasons, or if there are too
 * few rows.
 */
export function onlyReason(
  counts: Counts,
  reasons: ReasonCounts,
): { outcome: 'rejected' | 'failed'; reason: string } | undefined {
  const rows = sumOf(counts)
  if (rows < ROWS_MIN) return undefined
  for (const [outcome, word] of [['REJECTED', 'rejected'] as const, ['FAILED', 'failed'] as const]) {
    const found = Object.entries(reasons[outcome] ?? {}).find(([, n]) => n === rows)
    if (found) return { outcome: word, reason: found[0] }
  }
  return undefined
}

/** The warning: the reason, its text, and the most likely cause. */
export function wordOf(reason: string): string {
  const { text } = REASONS[reason as Reason] ?? {}
  const cause = CAUSES[reason as Reason]
  return [`${reason}.`, text, cause && `Likely cause: ${cause}`].filter(Boolean).join(' ')
}

const COLUMN = 'the column holds something else; check the header and --map.'
const CARD_COLUMN = 'the column card_number holds something else, or a spreadsheet changed its numbers; check --map.'
const DATES = 'dates of another format; see docs/migration.md for those that are read.'

const CAUSES: Partial<Record<Reason, string>> = {
  row_utf8: 'a wrong encoding (Windows-1252 or Latin-1); export the file as UTF-8.',
  row_nul: 'a wrong encoding (UTF-16) or a binary file; export the file as UTF-8 text.',
  row_fields: 'commas in fields without quotes, or another header than the rows have.',
  row_quotes: 'quotes that are not doubled inside of quotes; export the file as RFC 4180 CSV.',
  row_json: 'no NDJSON: one JSON object in each line.',
  row_too_long: 'line ends that are neither LF nor CRLF.',
  field_unknown: 'keys that the first row does not have; name them with --map or drop them with --ignore-unknown.',
  field_type: 'numbers or objects where texts are expected; write the values as texts.',
  field_required: 'an empty column, or a wrong one; check the header and --map.',
  field_characters: 'a wrong encoding, or a column that holds something else.',
  field_spreadsheet:
    'a spreadsheet changed a column of ids. Export the file again, or allow the form with as_is in a profile.',
  field_format: `dates or ids of another format, or ${COLUMN}`,
  field_length: COLUMN,
  field_value: COLUMN,
  reference_pan: 'the columns reference and card_number are exchanged; check --map.',
  expiry_format: `${DATES} A spreadsheet may have changed them.`,
  expiry_past: DATES,
  pan_format: CARD_COLUMN,
  pan_padded: 'a column of fixed width; take the zeros off, or let a profile do it: padded in columns.card_number.',
  pan_luhn: CARD_COLUMN,
  pan_length: CARD_COLUMN,
  name_length: 'the column cardholder_name holds something else; check --map.',
  token_not_found:
    'the column id holds no reuse tokens of this installation, or of scopes that this client may not use.',
  card_undecryptable: 'cards encrypted to another key than public_key_alias names.',
  alias_unknown: 'the column public_key_alias names a key of another entity or installation.',
  currency_unknown: 'the column currency holds something else than codes like EUR; check --map.',
  amount_exponent: 'amounts in another unit: amount takes major units, amount_minor minor ones.',
  amount_sign: 'amounts with the sign of another convention; see docs/ledger.md.',
  internal: 'something around tokenmill fails; `tokenmill status` names it.',
}
