// Converts the row of an authentication to its record and back. The caller passes the functions that seal and open
// secrets; this room has no key.
import { Secret } from '../../secret.ts'
import { type Authentication, FINDINGS, type Finding, type Secrets } from '../../three-ds/record.ts'
import { asMembers } from '../columns.ts'

/**
 * The functions of the vault's key ring that are used here. `row` names the row to which the sealed bytes are bound.
 */
export interface Sealer {
  sealThreeDs(plain: Buffer, row: string): { sealed: Buffer; keyVersion: number }
  openThreeDs(sealed: Buffer, keyVersion: number, row: string): Buffer
}

/** An authentication's row as it is selected. */
export interface Row extends Omit<Authentication, 'secrets'> {
  sealed: Buffer | null
  sealVersion: number | null
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
/** The columns of a `Row`. */
export const SELECTED = `${asMembers(NAMES.filter(name => !FINDINGS.includes(name as Finding)))},
  json_strip_nulls(json_build_object(${FINDINGS.map(name => `'${name}', ${name}`).join(', ')})) as findings`

/** What the secrets of an authentication are sealed for: its row, and whose it is. */
export function authenticationRow(
  record: Pick<Authentication, 'authenticationId' | 'entityId' | 'contractId' | 'clientId'>,
): string {
  const { authenticationId, entityId, contractId, clientId } = record
  return `authentication/${authenticationId}/${entityId}/${contractId}/${clientId}`
}

export function recordOf({ sealed, sealVersion, ...row }: Row, sealer: Sealer): Authentication {
  const open = (bytes: Buffer, version: number) =>
    JSON.parse(sealer.openThreeDs(bytes, version, authenticationRow(row)).toString('utf8')) as Secrets
  return { ...row, secrets: new Secret(sealed === null || sealVersion === null ? {} : open(sealed, sealVersion)) }
}

/** The values by column, in the form that the driver takes. */
export function valuesOf(record: Authentication, sealer: Sealer): Record<(typeof NAMES)[number], unknown> {
  const secrets = record.secrets.reveal()
  const sealed =
    Object.keys(secrets).length === 0
      ? undefined
      : sealer.sealThreeDs(Buffer.from(JSON.stringify(secrets)), authenticationRow(record))
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
