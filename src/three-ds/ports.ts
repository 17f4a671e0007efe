// The interfaces through which the flows of this room reach the store, the vault, a directory server and the clock.
// producers/gateway hands in the real ones, tests hand in their own.
import type { Secret } from '../secret.ts'
import type { Brand } from '../token/brand.ts'
import type { AReq } from './areq/areq.ts'
import type { PlainCard, ServerIdentity } from './areq/members.ts'
import type { Contract } from './contract.ts'
import type { ARes, Erro } from './messages.ts'
import type { Problem } from './problem.ts'
import type { Authentication, Caller } from './record.ts'

/** How a call to the directory server ended. */
export type Answer =
  | { kind: 'answered'; ares: ARes }
  /** It answered, with an error. */
  | { kind: 'refused'; erro: Erro }
  | { kind: 'malformed' }
  /** Nothing was sent. */
  | { kind: 'unreachable' }
  /** The request may have arrived: a repeat must be recognisable. */
  | { kind: 'unknown' }

export interface DirectoryServer {
  authenticate(areq: AReq): Promise<Answer>
}

/** The means by which a lookup names its card. */
export type CardSource =
  | { kind: 'token'; token: string; field: string }
  | { kind: 'encrypted'; encryptedCard: string; alias: string; field: string }

export interface FoundCard extends PlainCard {
  /** By the number's digits. */
  detected: Brand | undefined
  /** As the card is held: `CB`, or what was detected. */
  cardBrand?: string | undefined
  tokenId: string | null
  /** Of a card without a token: within the entity. */
  fingerprint: Buffer | null
}

export interface Authentications {
  find(authenticationId: string): Promise<Authentication | undefined>
  findByTransaction(transactionId: string): Promise<Authentication | undefined>
  findByKey(clientId: string, idempotencyKey: string): Promise<Authentication | undefined>
  /** Pending authentications whose time is over. */
  findOverdue(now: number, limit: number): Promise<Authentication[]>
  /** False where the client's idempotency key is in use. */
  insert(record: Authentication): Promise<boolean>
  /** Writes only over the version before; false where another writer was first. */
  save(record: Authentication): Promise<boolean>
  /** Marks the JWT used and saves the record (where it changed) in one transaction, or does nothing. */
  saveWithJwt(record: Authentication | undefined, jti: string, usedAt: number): Promise<'saved' | 'used' | 'lost'>
}

/** A JWT that this service issued. */
export interface IssuedJwt {
  jti: string
  contractId: string
  /** ms since the epoch. */
  issuedAt: number
  usedAt: number | null
  /** The lookup that named it last. */
  authenticationId: string | null
}

export interface Jwts {
  insert(jwt: { jti: string; contractId: string; issuedAt: number }): Promise<void>
  find(jti: string): Promise<IssuedJwt | undefined>
  /** Only an unused one of this contract, issued since `since`. */
  bind(jti: string, contractId: string, authenticationId: string, since: number): Promise<boolean>
}

export interface Contracts {
  find(contractId: string): Promise<Contract | undefined>
}

type JwtClaims = Record<string, unknown>

/** `jti`, `aud`, `iat` were found well-formed, the signature good, the age within bounds. */
type VerifiedJwt = { jti: string; aud: string; claims: JwtClaims } | { fault: 'malformed' | 'signature' | 'expired' }

interface JwtSigner {
  sign(key: Secret<Buffer>, claims: JwtClaims): Promise<string>
  /** `now`: ms since the epoch. */
  verify(key: Secret<Buffer>, jwt: string, now: number): Promise<VerifiedJwt>
  /** `aud` as it stands there, unverified. */
  peekAudience(jwt: string): string | undefined
}

export interface Ports {
  authentications: Authentications
  jwts: Jwts
  contracts: Contracts
  jwt: JwtSigner
  /** 32 bytes, equal for equal texts only. */
  requestDigest(text: string): Buffer
  directory(contract: Contract): DirectoryServer
  /** The card in clear, for as long as the request takes. `entityId`: the contract's. */
  findCard(caller: Caller, entityId: string, source: CardSource): Promise<FoundCard | Problem>
  server: ServerIdentity
  /** ms since the epoch. */
  clock(): number
  /** A UUID version 7. */
  newId(): string
  /** A UUID version 4. */
  newUuid(): string
  /** The most that a call to a directory server takes, repeats included, ms. */
  askMsMax: number
}
