// The type of a provisioning's row, and its columns, shared by scheme-tokens.ts and stored-schemes.ts. No statement is
// sent from here.
import { Fault } from '../../errors.ts'
import type { ReferencePlace, SchemeCall, SchemeRow } from '../../token/scheme.ts'
import type { Fingerprints } from '../../token/token.ts'
import { type Column, plains, texts } from '../columns.ts'

/** A provisioning as the store holds it. */
export interface StoredScheme extends SchemeRow {
  /** The sealed number of the network token. */
  sealed: Buffer | null
  sealVersion: number | null
  /** The sealed card, until the result of the provisioning is known. */
  card: Buffer | null
  cardVersion: number | null
  /** The seal of the reference for this row (`isReferenceProved`). */
  referenceSealed: Buffer | null
  referenceVersion: number | null
  /** The last call that may have had its effect without a known answer. */
  asked: SchemeCall | null
  lastIntent: string | null
  lease: string | null
  /** When the row is due, ms since the epoch, as are all times here. */
  dueAt: number | null
  attempts: number
  checkedAt: number | null
  /** The provisioning makes a third party's reuse token. As a scheme token only the command `scheme list` shows it. */
  thirdParty: boolean
  /** The fingerprints of the card under its contract, while the provisioning may still become a token. */
  cards: readonly string[]
  createdAt: number
  updatedAt: number
}

/** The columns that only the holder of the lease may write. `dueAt`: when the row is due again. */
export type LeasedUpdate = Pick<
  StoredScheme,
  | 'provisionId'
  | 'state'
  | 'reference'
  | 'referenceSealed'
  | 'referenceVersion'
  | 'suspendedBy'
  | 'sealed'
  | 'sealVersion'
  | 'lastFour'
  | 'expiryMonth'
  | 'expiryYear'
  | 'par'
  | 'card'
  | 'cardVersion'
  | 'refusal'
  | 'asked'
  | 'dueAt'
  | 'attempts'
  | 'checkedAt'
>

export type NewScheme = Pick<
  StoredScheme,
  | 'provisionId'
  | 'tokenId'
  | 'tokenScope'
  | 'clientId'
  | 'provider'
  | 'background'
  | 'card'
  | 'cardVersion'
  | 'dueAt'
  | 'createdAt'
> &
  Partial<Pick<StoredScheme, 'thirdParty'>> & {
    /** The card isn't the token's yet: the row becomes the token's current one when the card does (`takeOver`). */
    isUntaken?: boolean
    /** The card under its contract, where a third party makes a token for it. */
    link?: Fingerprints | undefined
  }

/** A row whose lease a process takes for a call. */
export interface Leased {
  provisionId: string
  asked: SchemeCall
  intentId: string
}

/** The columns of a `SchemeRow`, which any role may read. */
export const SHOWN_COLUMNS = `
  provision_id as "provisionId",
  token_id as "tokenId",
  token_scope as "tokenScope",
  client_id as "clientId",
  provider,
  current,
  background,
  state,
  reference,
  suspended_by as "suspendedBy",
  last_four as "lastFour",
  expiry_month as "expiryMonth",
  expiry_year as "expiryYear",
  par,
  refusal,
  retired_at as "retiredAt",
  version`
export const COLUMNS = `${SHOWN_COLUMNS},
  sealed,
  seal_version as "sealVersion",
  card,
  card_version as "cardVersion",
  reference_sealed as "referenceSealed",
  reference_version as "referenceVersion",
  asked,
  last_intent as "lastIntent",
  lease,
  due_at as "dueAt",
  attempts,
  checked_at as "checkedAt",
  third_party as "thirdParty",
  coalesce(cards, '{}') as cards,
  created_at as "createdAt",
  updated_at as "updatedAt"`

const moment = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
const binary = (bytes: Buffer | null | undefined) => (bytes ? `\\x${bytes.toString('hex')}` : null)
/** The columns of an insert. */
export const NEW_COLUMNS: readonly Column<NewScheme>[] = [
  { name: 'provision_id', type: 'uuid', text: row => row.provisionId, plain: true },
  { name: 'token_id', type: 'uuid', text: row => row.tokenId, plain: true },
  { name: 'token_scope', type: 'uuid', text: row => row.tokenScope, plain: true },
  { name: 'client_id', type: 'text', text: row => row.clientId, plain: true },
  { name: 'provider', type: 'text', text: row => row.provider, plain: false },
  { name: 'background', type: 'boolean', text: row => (row.background ? 't' : 'f'), plain: true },
  { name: 'card', type: 'bytea', text: row => binary(row.card), plain: false },
  { name: 'card_version', type: 'smallint', text: row => row.cardVersion, plain: true },
  { name: 'third_party', type: 'boolean', text: row => (row.thirdParty ? 't' : 'f'), plain: true },
  {
    name: 'current',
    type: 'boolean',
    text: row => (row.thirdParty || row.isUntaken ? 'f' : 't'),
    plain: true,
  },
  { name: 'cards', type: 'text', as: 'uuid[]', text: row => (row.link ? plains(row.link.kept) : null), plain: false },
  { name: 'due_at', type: 'timestamptz', text: row => moment(row.dueAt), plain: false },
  { name: 'created_at', type: 'timestamptz', text: row => moment(row.createdAt), plain: false },
]
export const NEW_NAMES = NEW_COLUMNS.map(({ name }) => name).join(', ')

/** The values in the order of the statement that writes them, which numbers them $4 to $21. */
export function leasedValues(update: LeasedUpdate): unknown[] {
  return [
    update.state,
    update.reference,
    texts(update.suspendedBy),
    update.sealed,
    update.sealVersion,
    update.lastFour,
    update.expiryMonth,
    update.expiryYear,
    update.par,
    update.card,
    update.cardVersion,
    update.refusal,
    update.asked,
    update.dueAt === null ? null : new Date(update.dueAt),
    update.attempts,
    update.checkedAt === null ? null : new Date(update.checkedAt),
    update.referenceSealed,
    update.referenceVersion,
  ]
}

/** The key ring's seal of a reference for its row. */
export interface ReferenceSealer {
  sealReference(place: ReferencePlace): { sealed: Buffer; keyVersion: number }
  /** Throws `Fault('defect')` if the seal is another reference's or row's. */
  openReference(sealed: Buffer, keyVersion: number, place: ReferencePlace): void
}

export type Reference = Pick<StoredScheme, 'reference' | 'referenceSealed' | 'referenceVersion'>

/** The reference that a provider has named for the row, sealed for it. The seal of the same reference stays. */
export function referenceFor(
  row: Pick<StoredScheme, 'provisionId' | 'tokenId' | 'provider'> & Reference,
  reference: string,
  ring: Pick<ReferenceSealer, 'sealReference'>,
): Reference {
  const { referenceSealed, referenceVersion } = row
  if (row.reference === reference && referenceSealed !== null) return { reference, referenceSealed, referenceVersion }
  const { sealed, keyVersion } = ring.sealReference({ ...row, reference })
  return { reference, referenceSealed: sealed, referenceVersion: keyVersion }
}

/** Whether tokenmill wrote the reference into this row. Throws `Fault('key_unavailable')` without the key. */
export function isReferenceProved(
  row: Pick<StoredScheme, 'provisionId' | 'tokenId' | 'provider'> & Reference,
  ring: Pick<ReferenceSealer, 'openReference'>,
): boolean {
  const { reference, referenceSealed, referenceVersion } = row
  if (reference === null) return true
  if (referenceSealed === null || referenceVersion === null) return false
  try {
    ring.openReference(referenceSealed, referenceVersion, { ...row, reference })
    return true
  } catch (error) {
    if (error instanceof Fault && error.code === 'defect') return false
    throw error
  }
}
