// The columns that hold what is sealed under a data key. Re-encryption, the destruction of keys and the drill on a
// restored backup use this list; a test compares it with the schema. This file sends no statement.

/** The purposes under which a column is sealed. */
export const SEALING_PURPOSES = ['seal', 'network-token', 'three-ds', 'webhook', 'manifest', 'private-half'] as const
export type SealingPurpose = (typeof SEALING_PURPOSES)[number]

export interface SealedPlace {
  table: string
  /** The column with the row's name, to which the sealed bytes are bound. */
  key: string
  sealed: string
  /** The column that names the version of the data key. */
  version: string
  purpose: string
  /** Further columns that are needed to open and to seal the bytes. */
  facts: readonly string[]
}

/** A place that is re-encrypted. `key` is also the table's primary key. */
export interface SealedColumn extends SealedPlace {
  keyType: 'uuid' | 'text'
  purpose: SealingPurpose
  /** Further assignments that a re-encryption makes in the row, as SQL. */
  also?: string
  /** The condition of rows that may be changed now; other rows wait for the next pass. */
  free?: string
}

/** A job writes the whole row of a token: if it read the row before, it must begin again. */
const COUNTS_UP = 'version = t.version + 1'
/** The holder of a row's lease writes back what it read, and renews the lease: a lease that ended a minute ago has no holder. */
const NOT_LEASED = `(h.lease is null or h.due_at < now() - interval '1 minute')`

/** The columns in the order in which a pass reads them. */
export const SEALED_COLUMNS = {
  'token.sealed': {
    table: 'token',
    key: 'token_id',
    keyType: 'uuid',
    sealed: 'sealed',
    version: 'seal_version',
    purpose: 'seal',
    facts: ['token_scope'],
    also: COUNTS_UP,
  },
  'scheme_token.card': {
    table: 'scheme_token',
    key: 'provision_id',
    keyType: 'uuid',
    sealed: 'card',
    version: 'card_version',
    purpose: 'seal',
    facts: ['token_scope'],
    free: NOT_LEASED,
  },
  'scheme_token.sealed': {
    table: 'scheme_token',
    key: 'provision_id',
    keyType: 'uuid',
    sealed: 'sealed',
    version: 'seal_version',
    purpose: 'network-token',
    facts: ['token_id'],
    free: NOT_LEASED,
  },
  'scheme_token.reference_sealed': {
    table: 'scheme_token',
    key: 'provision_id',
    keyType: 'uuid',
    sealed: 'reference_sealed',
    version: 'reference_version',
    purpose: 'seal',
    facts: ['token_id', 'provider', 'reference'],
    free: NOT_LEASED,
  },
  'threeds_contract.key_sealed': {
    table: 'threeds_contract',
    key: 'contract_id',
    keyType: 'uuid',
    sealed: 'key_sealed',
    version: 'key_version',
    purpose: 'three-ds',
    facts: [],
  },
  'threeds_contract.former_key_sealed': {
    table: 'threeds_contract',
    key: 'contract_id',
    keyType: 'uuid',
    sealed: 'former_key_sealed',
    version: 'former_key_version',
    purpose: 'three-ds',
    facts: [],
  },
  'authentication.sealed': {
    table: 'authentication',
    key: 'authentication_id',
    keyType: 'uuid',
    sealed: 'sealed',
    version: 'seal_version',
    purpose: 'three-ds',
    facts: ['entity_id', 'contract_id', 'client_id'],
  },
  'endpoint.sealed': {
    table: 'endpoint',
    key: 'endpoint_id',
    keyType: 'uuid',
    sealed: 'sealed',
    version: 'seal_version',
    purpose: 'webhook',
    facts: [],
  },
  'endpoint.former_sealed': {
    table: 'endpoint',
    key: 'endpoint_id',
    keyType: 'uuid',
    sealed: 'former_sealed',
    version: 'former_version',
    purpose: 'webhook',
    facts: [],
  },
  'manifest_key.sealed': {
    table: 'manifest_key',
    key: 'migration',
    keyType: 'text',
    sealed: 'sealed',
    version: 'key_version',
    purpose: 'manifest',
    facts: [],
  },
  'capture_key.wrapped_private': {
    table: 'capture_key',
    key: 'key_id',
    keyType: 'uuid',
    sealed: 'wrapped_private',
    version: 'private_version',
    purpose: 'private-half',
    facts: ['alias', 'type'],
  },
  'signing_key.wrapped_private': {
    table: 'signing_key',
    key: 'kid',
    keyType: 'text',
    sealed: 'wrapped_private',
    version: 'private_version',
    purpose: 'private-half',
    facts: [],
  },
  'role_key.sealed': {
    table: 'role_key',
    key: 'kid',
    keyType: 'text',
    sealed: 'sealed',
    version: 'key_version',
    purpose: 'private-half',
    facts: [],
  },
} as const satisfies Record<string, SealedColumn>

export type SealedName = keyof typeof SEALED_COLUMNS

export const SEALED_NAMES = Object.keys(SEALED_COLUMNS) as SealedName[]

/** Undefined if no column is sealed under the purpose. */
export function sealingPurpose(word: string): SealingPurpose | undefined {
  return SEALING_PURPOSES.find(purpose => purpose === word)
}

export function sealedNamesOf(purpose: string): SealedName[] {
  return SEALED_NAMES.filter(name => SEALED_COLUMNS[name].purpose === purpose)
}

/** The copies of rows for reversals. They aren't re-encrypted, because they are kept for a day only. */
export const BEFORE_IMAGE = {
  table: 'before_image',
  key: 'token_id',
  sealed: 'sealed',
  version: 'key_version',
  purpose: 'before-image',
  facts: [],
} as const satisfies SealedPlace

/**
 * `purpose` → the column of a before-image that names a version of its key. While a row names one, that version may not
 * be destroyed.
 */
export const BEFORE_IMAGE_VERSIONS: Readonly<Record<string, string>> = {
  [BEFORE_IMAGE.purpose]: BEFORE_IMAGE.version,
  seal: 'seal_version',
}
