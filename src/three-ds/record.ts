// An authentication: what is kept of it, and how callers see it. The card is a token or a fingerprint here, never a
// number; the proof and the challenge's payload are secrets, sealed where they are stored.
import type { Secret } from '../secret.ts'
import type { Brand } from '../token/brand.ts'
import { formatReuseToken } from '../token/token.ts'
import { cavvAlgorithm, type Network } from './outcome.ts'
import { NO_ERROR } from './problem.ts'
import type { State } from './transition.ts'

/** Who asks, as HTTP's authentication found out. */
export interface Caller {
  clientId: string
  /** Those the client acts for. */
  entities: readonly string[]
}

/** Fields of `authentication` that are kept in clear and searched by; `pares_status` is the state. */
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
  /** Proof of the outcome: with Y and A only. */
  cavv?: string
  /** The CReq for the browser: while the challenge is under way only. */
  payload?: string
}

export interface Authentication {
  /** UUID version 7. */
  authenticationId: string
  /** UUID version 4: EMV's threeDSServerTransID. One for one authentication, on every repeat. */
  transactionId: string
  entityId: string
  contractId: string
  clientId: string
  idempotencyKey: string | null
  requestDigest: Buffer | null
  /** The JWT that the browser began with, if it was named. */
  jti: string | null
  tokenId: string | null
  /** Of a card that has no token; within the entity. */
  fingerprint: Buffer | null
  publicKeyAlias: string | null
  /** Minor units. */
  amount: number
  currencyCode: string
  /** 01 a payment, 02 none. */
  messageCategory: '01' | '02'
  network: Network
  state: State
  findings: Findings
  secrets: Secret<Secrets>
  /** ms since the epoch: until then somebody is asking the directory server. */
  askedUntil: number
  /** ms since the epoch: then a pending authentication ends as U. */
  pendingUntil: number
  createdAt: number
  updatedAt: number
  /** Grows by one with each change. */
  version: number
}

/** `authentication` of a record. */
export function shownAuthentication({ state, findings, secrets }: Authentication): Record<string, string> {
  const { cavv, payload } = secrets.reveal()
  const shown: Record<string, string | undefined> = {
    ...findings,
    pares_status: state === 'OPEN' ? undefined : state,
    cavv,
    payload,
  }
  return Object.fromEntries(Object.entries(shown).filter((entry): entry is [string, string] => entry[1] !== undefined))
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

/** What a lookup answers: how a challenge was left belongs to the record only. */
export function shownLookup(record: Authentication): ShownLookup {
  const { challenge_cancel: _, ...shown } = shownAuthentication(record)
  return {
    error_no: NO_ERROR,
    ...shown,
    ...(shown['cavv'] ? { cavv_algorithm: cavvAlgorithm(record.network) } : {}),
    authentication_id: record.authenticationId,
    transaction_id: record.transactionId,
    ...(record.tokenId === null ? {} : { token: formatReuseToken(record.tokenId) }),
  }
}

/** `CB` where that is what the card is held as; the network it rides on decides the rest. */
export function shownBrand(cardBrand: string | undefined, network: Network): Brand {
  return cardBrand === 'CB' ? 'CB' : network
}
