// The shape of the file that goes back to the provider or to its merchant, as a profile says it: which columns, made of
// what, for which rows. What became of the rows isn't known here.
import { z } from 'zod'
import { tookEffect } from '../../../src/job/outcome.ts'
import { FILE_OUTCOMES } from '../file-outcome.ts'
import type { KeptField } from '../kept.ts'
import { EXPIRY_FORMS } from './expiry-form.ts'
import { delimiter, field } from './format.ts'

/** The values of a row and its outcome that a column may show. */
const VALUES = [
  ...(['reference', 'outcome', 'reason', 'reuse_token', 'analytics_token', 'bin', 'last_four', 'brand'] as const),
  ...(['expiry_month', 'expiry_year', 'expiry'] as const),
] as const
export type ReturnValue = (typeof VALUES)[number]

const FORMS = { expiry_month: ['M', 'MM'], expiry_year: ['YY', 'YYYY'], expiry: EXPIRY_FORMS } as const
const ALL_FORMS = [...FORMS.expiry_month, ...FORMS.expiry_year, ...FORMS.expiry] as const
const WORDED: readonly string[] = ['outcome', 'reason', 'brand']

const name = z
  .string()
  .max(200)
  .regex(/^[^\r\n\0]+$/)
  .describe('The name of the column in the header; several columns may have the same.')

const ReturnColumn = z.union([
  z
    .strictObject({ name, from: field('The field of the input, which may hold no card data.') })
    .describe('A text of the input, as it stands there.'),
  z
    .strictObject({ name, constant: z.string().max(256).describe('The text; it may be empty.') })
    .describe('The same text in every row.'),
  z
    .strictObject({
      name,
      value: z.enum(VALUES).describe('What the results tell of the row; expiry is month and year in one.'),
      form: z
        .enum(ALL_FORMS)
        .optional()
        .describe('Must be given for an expiry: M or MM for the month, YY or YYYY for the year, or one for both.'),
      words: z
        .record(z.string(), z.string().max(256))
        .optional()
        .describe(
          'For outcome, reason and brand: the text in place of each value. For outcome each one that the file may hold must be there; another value without a text stays as it is.',
        ),
    })
    .describe('A value of the row’s end, empty where the row has none.'),
])
export type ReturnColumn = z.infer<typeof ReturnColumn>

export const ReturnShape = z
  .strictObject({
    rows: z
      .enum(['all', 'took_effect'])
      .optional()
      .describe(
        'The rows of the file: all (if absent), or those that took effect: CREATED, UPDATED, UNCHANGED, DUPLICATE.',
      ),
    delimiter,
    quotes: z
      .enum(['where_needed', 'always'])
      .optional()
      .describe(
        'Which cells stand in quotes: those with a delimiter, quote or line break (if absent), or all. A quote within is doubled.',
      ),
    columns: z.array(ReturnColumn).min(1).max(200).describe('The columns in order.'),
  })
  .describe('The shape of the file that goes back, which migrate --return writes in UTF-8.')
export type ReturnShape = z.infer<typeof ReturnShape>

const MEMBER = 'return.'

/** Whether the member of the profile at this path belongs to the file that goes back. */
export function isOfReturn(path: string): boolean {
  return path.startsWith(MEMBER)
}

/** The fields of the input that the file that goes back repeats, in the order of its columns. */
export function returnFieldsOf(shape: ReturnShape | undefined): KeptField[] {
  return (shape?.columns ?? []).flatMap((column, index) =>
    'from' in column ? [{ field: column.from, path: `${MEMBER}columns.${index}.from` }] : [],
  )
}

/** What is wrong with the shape first, undefined for nothing. */
export function checkReturn(shape: ReturnShape | undefined): { wrong: string; next: string } | undefined {
  for (const [index, column] of (shape?.columns ?? []).entries()) {
    const found = 'value' in column ? faultOf(column, shape?.rows ?? 'all') : undefined
    if (found) return { ...found, wrong: `return.columns.${index}${found.wrong}` }
  }
  return undefined
}

type ValueColumn = Extract<ReturnColumn, { value: ReturnValue }>

function faultOf({ value, form, words }: ValueColumn, rows: 'all' | 'took_effect') {
  const forms: readonly string[] | undefined = Object.hasOwn(FORMS, value)
    ? FORMS[value as keyof typeof FORMS]
    : undefined
  if (forms && (form === undefined || !forms.includes(form)))
    return { wrong: `.form must be given for ${value}`, next: `Give one of ${forms.join(', ')}.` }
  if (!forms && form !== undefined) return { wrong: `.form says nothing of ${value}`, next: 'Leave it out.' }
  if (words === undefined) return undefined
  if (!WORDED.includes(value)) {
    return { wrong: `.words can not stand for ${value}`, next: `They are for ${WORDED.join(', ')}.` }
  }
  if (value !== 'outcome') return undefined
  const missing = FILE_OUTCOMES.filter(outcome => rows === 'all' || tookEffect(outcome)).filter(
    outcome => !Object.hasOwn(words, outcome),
  )
  if (missing.length === 0) return undefined
  return { wrong: `.words has no text for ${missing.join(', ')}`, next: 'Give each outcome its text.' }
}
