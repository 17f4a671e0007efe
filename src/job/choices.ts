// The words and bounds of the contract that a person types in a command line (roles, kinds of records, sizes of
// chunks). This file imports no schema, so that help texts and refused command lines load fast.
/** The version of the contract between senders and the installation that this release speaks: queues, messages and HTTP. */
export const CONTRACT = 1

export const ROLES = [
  'TOKEN_WRITE',
  'TOKEN_READ',
  'TOKEN_LIFECYCLE',
  'SCHEME_TOKEN',
  'LEDGER_WRITE',
  'REPORT_READ',
  'REPORT_REQUEST',
  'THREEDS',
  'ADMIN',
] as const
export type Role = (typeof ROLES)[number]

/** The kinds that a batch may hold, as `record_kind`. */
export const RECORD_KINDS = ['token-create', 'token-update', 'token-lifecycle', 'scheme-token', 'reference'] as const
export type RecordKind = (typeof RECORD_KINDS)[number]

/** The role of each kind of record, as a job and in a batch. */
export const RECORD_ROLES = {
  'token-create': 'TOKEN_WRITE',
  'token-update': 'TOKEN_WRITE',
  'token-lifecycle': 'TOKEN_LIFECYCLE',
  'scheme-token': 'SCHEME_TOKEN',
  reference: 'TOKEN_LIFECYCLE',
} as const satisfies Record<RecordKind, Role>

/** `newest`: the data that was given last, by the source times of the records. */
export const ON_CONFLICT = ['update', 'keep', 'reject', 'latest-expiry', 'newest'] as const
export const ON_EXPIRED = ['import', 'suspend', 'reject'] as const
/** What happens to a token when the reference of its last owner moves to another token or is released. */
export const ON_ORPHAN = ['keep', 'suspend', 'delete'] as const
export type OnOrphan = (typeof ON_ORPHAN)[number]

/** The form of the name of a migration of several files. */
export const MIGRATION_NAME = /^[A-Za-z0-9._-]{1,64}$/

/** Bounds of a chunk of records: how many records, how many bytes. */
export const CHUNK = {
  recordsDefault: 1000,
  recordsMax: 1000,
  bytesMax: 3 * 1024 * 1024,
  lineBytesMax: 65_536,
} as const

/** Bounds of a chunk of transactions. The bytes, as base64, must fit into the JWS. */
export const LEDGER_CHUNK = { recordsDefault: 1000, recordsMax: 1000, bytesMax: 700_000 } as const

export const REPORT_TYPES = [
  'MERCHANT_SETTLEMENT_REPORT',
  'DAILY_TRANSACTION_REPORT',
  'PARTNER_COMMISSION_REPORT',
  'INVOICE',
  'TOKEN_ACTIVITY_REPORT',
  'SCHEME_TOKEN_REPORT',
  'BATCH_REPORT',
] as const
export type ReportType = (typeof REPORT_TYPES)[number]

export const MIME_TYPES = ['application/pdf', 'text/csv', 'text/plain'] as const
export type MimeType = (typeof MIME_TYPES)[number]

/** The form of a capture key's alias. */
export const ALIAS = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/

/** The states of a batch; the first one whose condition holds is its state. */
export const BATCH_STATES = ['CANCELLED', 'FINISHED', 'PAUSED', 'ABANDONED', 'STALLED', 'OPEN', 'RUNNING'] as const
export type BatchState = (typeof BATCH_STATES)[number]

export const REPORT_STATUSES = [
  'INITIATED',
  'INVALID_INPUT_PARAMETERS',
  'PROCESSING_STARTED',
  'FAILED',
  'SUCCESSFUL',
] as const
export type ReportStatus = (typeof REPORT_STATUSES)[number]
