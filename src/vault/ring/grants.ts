// What the code of a row covers that grants rights, or says where something goes. The texts name the kind of row, so that no row's code fits another
// kind. A revoked row has no code, and needs none to be revoked. Other files read and write the rows.
import { timingSafeEqual } from 'node:crypto'
import type { KeyRing } from './key-ring.ts'

export const GRANT_KINDS = [
  'client',
  'client-key',
  'capture-key',
  'scope',
  'signing-key',
  'person',
  'passkey',
  'identity',
  'invite',
  'threeds-contract',
  'endpoint',
] as const
export type GrantKind = (typeof GRANT_KINDS)[number]

export interface MacOfRow {
  mac: Buffer | null
  macVersion: number | null
}

export interface ClientRow {
  clientId: string
  userId: string
  entities: readonly string[]
  roles: readonly string[]
  alg: string | null
  system: boolean
  names: string
}

export interface ClientKeyRow {
  clientId: string
  kid: string
  alg: string
  publicJwk: Record<string, unknown>
  state: string
  /** ms since the epoch. */
  validUntil: number | null
}

export interface CaptureKeyRow {
  alias: string
  /** Its place in the line of its alias. */
  number: number
  entityId: string
  type: string
  publicKey: string
  state: string
  /** The last permitted use, ms since the epoch. */
  retiredAt: number | null
}

export interface ScopeRow {
  tokenScope: string
  entityId: string
  par: boolean
  networkTokens: boolean
  requestor: string
  autoProvision: boolean
  binDigits: number
  keepBilling: boolean
}

/** The public half of a signing key. The code doesn't cover when it signs: a half is believed as long as its row is there. */
export interface SigningKeyRow {
  kid: string
  alg: string
  publicJwk: Record<string, unknown>
}

export interface PersonRow {
  personId: string
  name: string
  roles: readonly string[]
  /** Null: all. */
  entities: readonly string[] | null
  isLocal: boolean
}

/** The code covers neither the counter nor the last use: each use of the passkey changes them. */
export interface PasskeyRow {
  credentialId: string
  personId: string
  publicJwk: Record<string, unknown>
  alg: string
  rpId: string
}

/** An account at an OpenID provider, and whose it is. */
export interface IdentityRow {
  identityId: string
  personId: string
  issuer: string
  subject: string
}

export interface InviteRow {
  inviteId: string
  lookupHash: Buffer
  publicKey: Buffer
  name: string
  roles: readonly string[]
  entities: readonly string[] | null
  personId: string | null
  invitedBy: string
  /** The identity that the person gets; both null: none. */
  issuer: string | null
  subject: string | null
  /** ms since the epoch. */
  expiresAt: number
}

/** The code covers no key of the contract: each is sealed for its row, and workers seal it anew. */
export interface ContractRow {
  contractId: string
  entityId: string
  name: string
  directoryUrl: string
  acquirerBin: string
  acquirerMerchantId: string
  mcc: string
  merchantCountry: string
  merchantName: string
  requestorUrl: string
  requestorId: string
  requestorName: string
  notificationUrl: string
  issuer: string
  orgUnitId: string
}

/**
 * A subscription to events. The code covers no secret, which is sealed for its row and which workers seal anew, and nothing
 * that attempts change.
 */
export interface EndpointRow {
  endpointId: string
  clientId: string
  /** Null: the client's results queue. */
  url: string | null
  events: readonly string[]
}

export function clientText({ clientId, userId, entities, roles, alg, system, names }: ClientRow): string {
  return JSON.stringify(['client', clientId, userId, entities, roles, alg, system, names])
}

export function clientKeyText({ clientId, kid, alg, publicJwk, state, validUntil }: ClientKeyRow): string {
  return JSON.stringify(['client-key', clientId, kid, alg, sorted(publicJwk), state, validUntil])
}

export function captureKeyText(key: CaptureKeyRow): string {
  const { alias, number, entityId, type, publicKey, state, retiredAt } = key
  return JSON.stringify(['capture-key', alias, number, entityId, type, publicKey, state, retiredAt])
}

export function scopeText(scope: ScopeRow): string {
  const { tokenScope, entityId, par, networkTokens, requestor, autoProvision, binDigits, keepBilling } = scope
  const settings = [par, networkTokens, requestor, autoProvision, binDigits, keepBilling]
  return JSON.stringify(['scope', tokenScope, entityId, ...settings])
}

export function signingKeyText({ kid, alg, publicJwk }: SigningKeyRow): string {
  return JSON.stringify(['signing-key', kid, alg, sorted(publicJwk)])
}

export function personText({ personId, name, roles, entities, isLocal }: PersonRow): string {
  return JSON.stringify(['person', personId, name, roles, entities, isLocal])
}

export function passkeyText({ credentialId, personId, publicJwk, alg, rpId }: PasskeyRow): string {
  return JSON.stringify(['passkey', credentialId, personId, sorted(publicJwk), alg, rpId])
}

export function identityText({ identityId, personId, issuer, subject }: IdentityRow): string {
  return JSON.stringify(['identity', identityId, personId, issuer, subject])
}

export function inviteText(invite: InviteRow): string {
  const { inviteId, lookupHash, publicKey, name, roles, entities, personId, invitedBy, expiresAt } = invite
  const values = [lookupHash.toString('hex'), publicKey.toString('hex')]
  return JSON.stringify([
    'invite',
    inviteId,
    ...values,
    name,
    roles,
    entities,
    personId,
    invitedBy,
    expiresAt,
    invite.issuer,
    invite.subject,
  ])
}

export function contractText(contract: ContractRow): string {
  return JSON.stringify([
    'threeds-contract',
    contract.contractId,
    contract.entityId,
    contract.name,
    contract.directoryUrl,
    contract.acquirerBin,
    contract.acquirerMerchantId,
    contract.mcc,
    contract.merchantCountry,
    contract.merchantName,
    contract.requestorUrl,
    contract.requestorId,
    contract.requestorName,
    contract.notificationUrl,
    contract.issuer,
    contract.orgUnitId,
  ])
}

export function endpointText({ endpointId, clientId, url, events }: EndpointRow): string {
  return JSON.stringify(['endpoint', endpointId, clientId, url, events])
}

/**
 * Whether a key of the ring made the row's code over this text. Throws `Fault('key_unavailable')` if the code is of a newer
 * version than the ring has.
 */
export function isGranted(ring: Pick<KeyRing, 'grantMacBy'>, text: string, { mac, macVersion }: MacOfRow): boolean {
  if (mac === null || macVersion === null) return false
  const right = ring.grantMacBy(text, macVersion)
  return right !== undefined && right.length === mac.length && timingSafeEqual(right, mac)
}

/** Sorts the members of a JWK, because PostgreSQL doesn't keep their order. */
function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  return Object.entries(value)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, member]) => [name, sorted(member)])
}
