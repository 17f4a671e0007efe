// The columns that a file may have, by record kind. The form of values is defined elsewhere.
import type { TokenBatch } from '../../src/job/token-batch.ts'

export type RecordKind = TokenBatch['record_kind']

interface Column {
  kinds: readonly RecordKind[]
  /** The column holds card data, which is never echoed into the results. */
  card: boolean
}

const CREATE = ['token-create'] as const
const UPDATE = ['token-update'] as const
const BOTH = ['token-create', 'token-update'] as const
const BY_ID = ['token-update', 'token-lifecycle', 'scheme-token'] as const
const RELEASE = ['reference'] as const
const ACTIONS = ['token-lifecycle', 'scheme-token', ...RELEASE] as const
const ALL = ['token-create', ...BY_ID, ...RELEASE] as const

export const COLUMNS = {
  reference: { kinds: ALL, card: false },
  id: { kinds: BY_ID, card: false },
  action: { kinds: ACTIONS, card: false },
  card_number: { kinds: BOTH, card: true },
  expiry_month: { kinds: BOTH, card: true },
  expiry_year: { kinds: BOTH, card: true },
  /** Month and year in one cell: MM/YY, MMYY, MM/YYYY or YYYY-MM. */
  expiry: { kinds: BOTH, card: true },
  cardholder_name: { kinds: BOTH, card: true },
  sequence_number: { kinds: BOTH, card: true },
  cardholder_email: { kinds: UPDATE, card: true },
  encrypted_card: { kinds: BOTH, card: true },
  public_key_alias: { kinds: BOTH, card: false },
  card_brand: { kinds: CREATE, card: false },
  token_type: { kinds: CREATE, card: false },
  token_expiry_date: { kinds: BOTH, card: false },
  scheme_token_action: { kinds: UPDATE, card: false },
  provider: { kinds: RELEASE, card: false },
  provider_account: { kinds: RELEASE, card: false },
  customer_id: { kinds: RELEASE, card: false },
  card_id: { kinds: RELEASE, card: false },
  on_orphan: { kinds: RELEASE, card: false },
} as const satisfies Record<string, Column>

export type ColumnName = keyof typeof COLUMNS

export const COLUMN_NAMES = Object.keys(COLUMNS) as ColumnName[]

/** The columns that a file of each kind needs: of each inner list at least one. */
export const NEEDED: Record<RecordKind, readonly (readonly ColumnName[])[]> = {
  'token-create': [['card_number', 'encrypted_card']],
  'token-update': [['id']],
  'token-lifecycle': [['id'], ['action']],
  'scheme-token': [['id'], ['action']],
  reference: [['provider'], ['card_id'], ['action']],
}

export function isColumnOf(kind: RecordKind, name: string): name is ColumnName {
  return Object.hasOwn(COLUMNS, name) && (COLUMNS[name as ColumnName].kinds as readonly RecordKind[]).includes(kind)
}
