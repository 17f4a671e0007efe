// An authentication: what is stored of it, and how callers see it. It names the card by a token or not at all. The
// proof and the challenge's payload are secrets, sealed in the store.
import type { Secret } from '../secret.ts'
import type { Brand } from '../token/brand.ts'
import { formatReuseToken } from '../token/token.ts'
import { type Category, cavvAlgorithm, liabilityOf, type Network } from './outcome.ts'
import { NO_ERROR } from './problem.ts'
import type { State } from './transition.ts'

/** The caller, as authenticated over HTTP. */
export interface Caller {
  clientId: string
  /** The entities that the client acts for. */
  entities: readonly string[]
}

/**
 * Fields of `authentication` that are stored in clear and can be searched. `pares_status` isn't among them, because it is
 * the record's state.
 */
export const FINDINGS = [
  'threeds_version',
  'enrolled',
  'signature_verification',
  'eci_flag',
  'ds_transaction_id',
  'acs_transaction_id',
  'xid',
  'order_id',
  'acs_url',
  'error_no',
  'error_desc',
  'reason_code',
  'reason_desc',
  'status_reason',
  'cardholder_info',
  'card_brand',
  'network_score',
  'acs_rendering_type',
  'authentication_type',
  'challenge_required',
  'challenge_cancel',
] as const
export type Finding = (typeof FINDINGS)[number]
export type Findings = { [name in Finding]?: string }

export interface Secrets {
  /** The authentication value as it was sent, with any final outcome. */
  cavv?: string
  /** The CReq for the browser; only while the challenge is in progress. */
  payload?: string
}

export interface Authentication {
  /** UUID version 7. */
  authenticationId: string
  /** UUID version 4: EMV's threeDSServerTransID. An authentication keeps it on every repeat. */
  transactionId: string
  entityId: string
  contractId: string
  clientId: string
  idempotencyKey: string | null
  requestDigest: Buffer | null
  /** The version of the key of `requestDigest` and of the URL for results (result-key.ts). */
  digestVersion: number
  /** The JWT with which the browser began, if the lookup named it. */
  jti: string | null
  tokenId: string | null
  publicKeyAlias: string | null
  /** Minor units. */
  amount: number
  currencyCode: string
  messageCategory: Category
  /**
   * The merchant's wish about a challenge (EMV's challenge indicator); null if there was none, or the record is from a
   * release that didn't store it.
   */
  challengeIndicator: string | null
  network: Network
  state: State
  findings: Findings
  secrets: Secret<Secrets>
  /** Until this time a call to the directory server may be in progress, ms since the epoch. */
  askedUntil: number
  /** At this time a pending authentication ends as U, ms since the epoch. */
  pendingUntil: number
  createdAt: number
  updatedAt: number
  /** Grows by one with each change. */
  version: number
}

/** The member `authentication` of a record. */
export function shownAuthentication(record: Authentication): Record<string, string> {
  const { state, findings, secrets, network } = record
  const { cavv, payload } = secrets.reveal()
  const shown: Record<string, string | undefined> = {
    ...findings,
    pares_status: state === 'OPEN' ? undefined : state,
    cavv,
    ...(cavv === undefined
      ? {}
      : { cavv_algorithm: cavvAlgorithm(network), authorization_payload: authorizationPayload(record) }),
    payload,
  }
  return Object.fromEntries(Object.entries(shown).filter((entry): entry is [string, string] => entry[1] !== undefined))
}

/** The data that an authorisation request needs, as one text: base64 of JSON. */
function authorizationPayload({ findings, secrets }: Authentication): string {
  const { eci_flag, ds_transaction_id, threeds_version } = findings
  const members = { eci_flag, cavv: secrets.reveal().cavv, ds_transaction_id, threeds_version }
  return Buffer.from(JSON.stringify(members)).toString('base64')
}

/** Fields of `authentication` that only the client that requested the authentication may see. */
const SECRET_FIELDS: ReadonlySet<string> = new Set(['cavv', 'authorization_payload', 'payload'])

/** The member `authentication` without the fields that prove an outcome or lead to a challenge. */
export function publicAuthentication(record: Authentication): Record<string, string> {
  return Object.fromEntries(Object.entries(shownAuthentication(record)).filter(([name]) => !SECRET_FIELDS.has(name)))
}

const NO_CHALLENGE = '02'

/** Who is liable for fraud of the payment; undefined while nothing is decided, and if there is no payment. */
export function liabilityOfRecord(record: Authentication): 'ISSUER' | 'MERCHANT' | undefined {
  const { state, network, findings, secrets, challengeIndicator } = record
  if (state === 'OPEN') return undefined
  return liabilityOf({
    network,
    outcome: state,
    eci: findings.eci_flag,
    hasValue: secrets.reveal().cavv !== undefined,
    isCb: findings.card_brand === 'CB',
    askedForNone: challengeIndicator === NO_CHALLENGE,
    challenged: findings.challenge_required === 'Y',
  })
}

export interface ShownRecord {
  _id: string
  amount: number
  threeds_contract_id: string
  authentication: Record<string, string>
  card?: string
  currency_code: string
  created_at: string
  entity_id: string
  transaction_id: string
  public_key_alias?: string
}

export function shownRecord(record: Authentication): ShownRecord {
  return {
    _id: record.authenticationId,
    amount: record.amount,
    threeds_contract_id: record.contractId,
    authentication: shownAuthentication(record),
    ...(record.tokenId === null ? {} : { card: formatReuseToken(record.tokenId) }),
    currency_code: record.currencyCode,
    created_at: new Date(record.createdAt).toISOString(),
    entity_id: record.entityId,
    transaction_id: record.transactionId,
    ...(record.publicKeyAlias === null ? {} : { public_key_alias: record.publicKeyAlias }),
  }
}

export type ShownLookup = Record<string, string> & {
  authentication_id: string
  transaction_id: string
  error_no: string
}

/** The answer of a lookup. It leaves out how a challenge was left, which only the record shows. */
export function shownLookup(record: Authentication): ShownLookup {
  const { challenge_cancel: _, ...shown } = shownAuthentication(record)
  return {
    error_no: NO_ERROR,
    ...shown,
    authentication_id: record.authenticationId,
    transaction_id: record.transactionId,
    ...(record.tokenId === null ? {} : { token: formatReuseToken(record.tokenId) }),
  }
}

/** The shown brand: `CB` if the card is held as CB, else the network's. */
export function shownBrand(cardBrand: string | undefined, network: Network): Brand {
  return cardBrand === 'CB' ? 'CB' : network
}
