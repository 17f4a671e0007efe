// Converts the row of an authentication to its record and back. The caller passes the functions that seal and open
// secrets; this room has no key.
import { Secret } from '../../secret.ts'
import type { Category, Network } from '../../three-ds/outcome.ts'
import { type Authentication, FINDINGS, type Finding, type Secrets } from '../../three-ds/record.ts'
import type { State } from '../../three-ds/transition.ts'

/**
 * The functions of the vault's key ring that are used here. `row` names the row to which the sealed bytes are bound.
 */
export interface Sealer {
  sealThreeDs(plain: Buffer, row: string): { sealed: Buffer; keyVersion: number }
  openThreeDs(sealed: Buffer, keyVersion: number, row: string): Buffer
}

export type Row = { [name in Finding]: string | null } & {
  authentication_id: string
  transaction_id: string
  entity_id: string
  contract_id: string
  client_id: string
  idempotency_key: string | null
  request_digest: Buffer | null
  digest_version: number
  jti: string | null
  token_id: string | null
  public_key_alias: string | null
  amount: number
  currency_code: string
  message_category: Category
  challenge_indicator: string | null
  network: Network
  state: State
  sealed: Buffer | null
  seal_version: number | null
  asked_until: number
  pending_until: number
  created_at: number
  updated_at: number
  version: number
}

/** Columns that are set when the row is inserted and never change. */
const LASTING = [
  'authentication_id',
  'transaction_id',
  'entity_id',
  'contract_id',
  'client_id',
  'idempotency_key',
  'request_digest',
  'digest_version',
  'jti',
  'token_id',
  'public_key_alias',
  'amount',
  'currency_code',
  'message_category',
  'challenge_indicator',
  'network',
  'created_at',
] as const
export const CHANGING = [
  'state',
  'sealed',
  'seal_version',
  'asked_until',
  'pending_until',
  'updated_at',
  'version',
  ...FINDINGS,
] as const
export const NAMES = [...LASTING, ...CHANGING] as const
export const COLUMNS = NAMES.join(', ')

/** What the secrets of an authentication are sealed for. */
export const authenticationRow = (authenticationId: string) => `authentication/${authenticationId}`

export function recordOf(row: Row, sealer: Sealer): Authentication {
  const findings = Object.fromEntries(FINDINGS.flatMap(name => (row[name] === null ? [] : [[name, row[name]]])))
  return {
    authenticationId: row.authentication_id,
    transactionId: row.transaction_id,
    entityId: row.entity_id,
    contractId: row.contract_id,
    clientId: row.client_id,
    idempotencyKey: row.idempotency_key,
    requestDigest: row.request_digest,
    digestVersion: row.digest_version,
    jti: row.jti,
    tokenId: row.token_id,
    publicKeyAlias: row.public_key_alias,
    amount: row.amount,
    currencyCode: row.currency_code,
    messageCategory: row.message_category,
    challengeIndicator: row.challenge_indicator,
    network: row.network,
    state: row.state,
    findings,
    secrets: new Secret(openSecrets(row, sealer)),
    askedUntil: row.asked_until,
    pendingUntil: row.pending_until,
    createdAt: row.created_at,
    updatedAt: row.updated_at,
    version: row.version,
  }
}

function openSecrets({ sealed, seal_version, authentication_id }: Row, sealer: Sealer): Secrets {
  if (sealed === null || seal_version === null) return {}
  return JSON.parse(
    sealer.openThreeDs(sealed, seal_version, authenticationRow(authentication_id)).toString('utf8'),
  ) as Secrets
}

/** The values by column, in the form that the driver takes. */
export function valuesOf(record: Authentication, sealer: Sealer): Record<(typeof NAMES)[number], unknown> {
  const secrets = record.secrets.reveal()
  const sealed =
    Object.keys(secrets).length === 0
      ? undefined
      : sealer.sealThreeDs(Buffer.from(JSON.stringify(secrets)), authenticationRow(record.authenticationId))
  const findings = Object.fromEntries(FINDINGS.map(name => [name, record.findings[name] ?? null])) as Record<
    Finding,
    string | null
  >
  return {
    authentication_id: record.authenticationId,
    transaction_id: record.transactionId,
    entity_id: record.entityId,
    contract_id: record.contractId,
    client_id: record.clientId,
    idempotency_key: record.idempotencyKey,
    request_digest: record.requestDigest,
    digest_version: record.digestVersion,
    jti: record.jti,
    token_id: record.tokenId,
    public_key_alias: record.publicKeyAlias,
    amount: record.amount,
    currency_code: record.currencyCode,
    message_category: record.messageCategory,
    challenge_indicator: record.challengeIndicator,
    network: record.network,
    created_at: new Date(record.createdAt),
    state: record.state,
    sealed: sealed?.sealed ?? null,
    seal_version: sealed?.keyVersion ?? null,
    asked_until: new Date(record.askedUntil),
    pending_until: new Date(record.pendingUntil),
    updated_at: new Date(record.updatedAt),
    version: record.version,
    ...findings,
  }
}
