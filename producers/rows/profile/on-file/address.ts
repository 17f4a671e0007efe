// The billing address of a row. Workers store it only in a token scope with `--keep-billing`.
import { isRefusal, refuse } from '../../../../src/errors.ts'
import type { Use } from '../cells.ts'
import type { OnFileColumns } from '../on-file-schema.ts'
import { at, joined, type Part, textPart } from './part.ts'

type Columns = NonNullable<OnFileColumns['billing_address']>

const LINES = [
  ['line1', 256],
  ['line2', 256],
  ['city', 128],
  ['state', 128],
] as const
const POSTAL_CODE_MAX = 32

export function addressPart(columns: Columns | undefined, use: Use): Part {
  if (columns === undefined) return () => ''
  const lines = LINES.flatMap(([name, most]) => {
    const field = columns[name]
    if (field === undefined) return []
    const place = use(field, path(name))
    return [textPart(name, most, ({ texts }) => texts[place] ?? '')]
  })
  const parts = [...lines, postalCodePart(columns.postal_code, use), countryPart(columns.country, use)]
  return row => {
    const members = joined(parts, row)
    return isRefusal(members) || members === '' ? members : `"billing_address":{${members}}`
  }
}

const path = (name: string) => at(`billing_address.${name}`)

/** A spreadsheet takes the zeros off codes such as 01234. */
function postalCodePart(column: Columns['postal_code'], use: Use): Part {
  if (column === undefined) return () => ''
  const { length = 0 } = column
  const place = use(column.from, path('postal_code.from'))
  return textPart('postal_code', POSTAL_CODE_MAX, ({ texts, repairs }) => {
    const text = texts[place] ?? ''
    if (text.length >= length || !/^\d+$/.test(text)) return text
    repairs.add('postal_zeros')
    return text.padStart(length, '0')
  })
}

function countryPart(column: Columns['country'], use: Use): Part {
  if (column === undefined) return () => ''
  const place = use(column.from, path('country.from'))
  return ({ texts, repairs }) => {
    const text = texts[place] ?? ''
    if (text === '') return ''
    if (/^[A-Z]{2}$/.test(text)) return `"country":"${text}"`
    if (column.other !== 'drop') return refuse('field_format', path('country'))
    repairs.add('country_dropped')
    return ''
  }
}
