// The fields by which lists of authentications are filtered and sorted: every field of a record that is shown and
// stored in clear, with its type and operators. The proof and the challenge's payload are sealed, so no search can use
// them.
import { FINDINGS, type Finding } from './record.ts'

/** `token`: a card's token; `amount`: minor units; `moment`: a time. */
export type FieldKind = 'uuid' | 'token' | 'amount' | 'moment' | 'text'

const RECORD_FIELDS = {
  _id: { column: 'authentication_id', kind: 'uuid' },
  amount: { column: 'amount', kind: 'amount' },
  card: { column: 'token_id', kind: 'token' },
  created_at: { column: 'created_at', kind: 'moment' },
  currency_code: { column: 'currency_code', kind: 'text' },
  entity_id: { column: 'entity_id', kind: 'uuid' },
  threeds_contract_id: { column: 'contract_id', kind: 'uuid' },
  transaction_id: { column: 'transaction_id', kind: 'uuid' },
  public_key_alias: { column: 'public_key_alias', kind: 'text' },
  'authentication.pares_status': { column: 'pares_status', kind: 'text' },
} as const satisfies Record<string, { column: string; kind: FieldKind }>

export type FieldName = keyof typeof RECORD_FIELDS | `authentication.${Finding}`

interface Field {
  /** The column of the store's table. */
  column: string
  kind: FieldKind
}

export const FIELDS: ReadonlyMap<string, Field> = new Map<FieldName, Field>([
  ...(Object.entries(RECORD_FIELDS) as [FieldName, Field][]),
  ...FINDINGS.map(name => [`authentication.${name}`, { column: name, kind: 'text' }] as [FieldName, Field]),
])

export function fieldOf(name: FieldName): Field {
  const field = FIELDS.get(name)
  if (!field) throw new Error('broken law: a field of the table is in the table')
  return field
}

/** `>=` and `<=` compare amounts and times, and `~=` compares texts with a pattern. */
const OPERATORS = ['=', '!=', '>=', '<=', '~='] as const
export type Operator = (typeof OPERATORS)[number]

const ALL = ['=', '!='] as const
export const TAKES = {
  uuid: ALL,
  token: ALL,
  amount: [...ALL, '>=', '<='],
  moment: [...ALL, '>=', '<='],
  text: [...ALL, '~='],
} as const satisfies Record<FieldKind, readonly Operator[]>
