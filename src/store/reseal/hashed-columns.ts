// The columns that hold keyed hashes and codes of a data key. No pass makes them anew, as passes do with seals: a version of
// the key stays as long as rows name it. The destruction of keys and the list of what a key exposed use this list; a test
// compares it with the schema. This file sends no statement.

export type ColumnType = 'uuid' | 'text' | 'bigint' | 'bytea'
/** Columns in whose order rows are read. */
export type Order = readonly { column: string; type: ColumnType }[]

export interface HashedColumn {
  table: string
  column: string
  /** The column that names the row to a person. */
  key: string
  keyType: ColumnType
  /** The columns of an index in whose order the rows are read, where `key` has no index. */
  order?: Order
  /** The column that names the version of the data key. */
  version: string
  /** Which rows still need the key. */
  where: string
}

const CODE = { column: 'mac', version: 'mac_version', where: 'mac is not null' }

export const HASHED_COLUMNS: Readonly<Record<string, readonly HashedColumn[]>> = {
  digest: [
    {
      table: 'receipt',
      column: 'request_digest',
      key: 'receipt_id',
      keyType: 'uuid',
      version: 'digest_version',
      // The receipt of a job that was cancelled before it began has an empty digest.
      where: 'octet_length(request_digest) > 0',
    },
    {
      table: 'authentication',
      column: 'request_digest',
      key: 'authentication_id',
      keyType: 'uuid',
      version: 'digest_version',
      // Until a challenge ends, the URL to which its result is sent holds a digest, too.
      where: `(request_digest is not null or state in ('OPEN', 'C'))`,
    },
  ],
  'api-key': [
    {
      table: 'client',
      column: 'api_key_hash',
      key: 'client_id',
      keyType: 'text',
      version: 'api_key_version',
      where: 'api_key_hash is not null and revoked_at is null',
    },
  ],
  intake: [
    {
      table: 'intake',
      column: 'body_mac',
      key: 'intake_no',
      keyType: 'bigint',
      version: 'body_mac_version',
      where: 'body_mac is not null',
    },
  ],
  owner: [
    {
      table: 'released_reference',
      column: 'owner_hash',
      key: 'reference_no',
      keyType: 'bigint',
      version: 'key_version',
      order: [
        { column: 'owner_hash', type: 'bytea' },
        { column: 'receipt_id', type: 'uuid' },
        { column: 'reference_no', type: 'bigint' },
      ],
      where: 'true',
    },
  ],
  grant: [
    { table: 'client', key: 'client_id', keyType: 'text', ...CODE },
    { table: 'client_key', key: 'kid', keyType: 'text', ...CODE },
    { table: 'capture_key', key: 'key_id', keyType: 'uuid', ...CODE },
    { table: 'scope', key: 'token_scope', keyType: 'uuid', ...CODE },
    { table: 'signing_key', key: 'kid', keyType: 'text', ...CODE },
    { table: 'person', key: 'person_id', keyType: 'uuid', ...CODE },
    { table: 'person_credential', key: 'credential_id', keyType: 'text', ...CODE },
    { table: 'person_identity', key: 'identity_id', keyType: 'uuid', ...CODE },
    { table: 'invite', key: 'invite_id', keyType: 'uuid', ...CODE },
    { table: 'threeds_contract', key: 'contract_id', keyType: 'uuid', ...CODE },
    { table: 'endpoint', key: 'endpoint_id', keyType: 'uuid', ...CODE },
  ],
  receipt: [
    { table: 'receipt', key: 'receipt_id', keyType: 'uuid', ...CODE },
    { table: 'outbox', key: 'outbox_id', keyType: 'bigint', ...CODE },
    { table: 'event', key: 'event_id', keyType: 'bigint', ...CODE },
  ],
  // Nothing compares an analytics token with a stored one.
  analytics: [],
  // Nothing is hashed with it.
}

/** Undefined if the purpose hashes nothing that names its key's version. */
export function hashedColumnsOf(purpose: string): readonly HashedColumn[] | undefined {
  return Object.hasOwn(HASHED_COLUMNS, purpose) ? HASHED_COLUMNS[purpose] : undefined
}
