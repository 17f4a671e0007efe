// The interfaces through which the flows of this room reach the store, the vault, a directory server and the clock.
// producers/gateway passes the real ones, tests pass their own.
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
  /** The directory server answered with an error message. */
  | { kind: 'refused'; erro: Erro }
  | { kind: 'malformed' }
  /** Nothing was sent. */
  | { kind: 'unreachable' }
  /** The request may have arrived, so a repeat must have the same transaction id. */
  | { kind: 'unknown' }

export interface DirectoryServer {
  authenticate(areq: AReq): Promise<Answer>
}

/** How a lookup names its card: by a token, or encrypted. */
export type CardSource =
  | { kind: 'token'; token: string; field: string }
  | { kind: 'encrypted'; encryptedCard: string; alias: string; field: string }

export interface FoundCard extends PlainCard {
  /** The brand detected by the card number. */
  detected: Brand | undefined
  /** The brand under which the card is held: `CB`, or the detected brand. */
  cardBrand?: string | undefined
  tokenId: string | null
}

export interface Authentications {
  find(authenticationId: string): Promise<Authentication | undefined>
  findByTransaction(transactionId: string): Promise<Authentication | undefined>
  findByKey(clientId: string, idempotencyKey: string): Promise<Authentication | undefined>
  /** Ids of up to `limit` pending authentications whose time was over at `now` (ms since the epoch). */
  findOverdue(now: number, limit: number): Promise<string[]>
  /** Inserts a record. False if the client has used this idempotency key before. */
  insert(record: Authentication): Promise<boolean>
  /** Writes a record whose version is one above the stored one; false if another writer was first. */
  save(record: Authentication): Promise<boolean>
  /** Marks the JWT as used and saves the record, if there is one, in one transaction; or does neither. */
  saveWithJwt(record: Authentication | undefined, jti: string, usedAt: number): Promise<'saved' | 'used' | 'lost'>
}

/** A JWT that this service issued. */
export interface IssuedJwt {
  jti: string
  contractId: string
  /** ms since the epoch. */
  issuedAt: number
  usedAt: number | null
  /** The lookup that named this JWT last. */
  authenticationId: string | null
}

export interface Jwts {
  insert(jwt: { jti: string; contractId: string; issuedAt: number }): Promise<void>
  find(jti: string): Promise<IssuedJwt | undefined>
  /**
   * Binds the JWT to an authentication, if the JWT is unused, belongs to this contract and was issued since `since`.
   */
  bind(jti: string, contractId: string, authenticationId: string, since: number): Promise<boolean>
}

export interface Contracts {
  find(contractId: string): Promise<Contract | undefined>
}

type JwtClaims = Record<string, unknown>

/**
 * A JWT whose `jti`, `aud` and `iat` are well-formed, whose signature is right and whose age is within bounds; or what
 * is wrong.
 */
type VerifiedJwt = { jti: string; aud: string; claims: JwtClaims } | { fault: 'malformed' | 'signature' | 'expired' }

interface JwtSigner {
  sign(key: Secret<Buffer>, claims: JwtClaims): Promise<string>
  /** `now`: ms since the epoch. */
  verify(key: Secret<Buffer>, jwt: string, now: number): Promise<VerifiedJwt>
  /** The `aud` of a JWT whose signature isn't verified. */
  peekAudience(jwt: string): string | undefined
}

export interface Ports {
  authentications: Authentications
  jwts: Jwts
  contracts: Contracts
  jwt: JwtSigner
  /** 32 bytes that are equal only for equal texts and versions of a secret key, and the version in use. */
  requestDigest(text: string): Promise<{ hash: Buffer; keyVersion: number }>
  requestDigestBy(text: string, keyVersion: number): Promise<Buffer>
  directory(contract: Contract): DirectoryServer
  /** The card in clear; the caller must not keep it longer than the request. */
  findCard(caller: Caller, source: CardSource): Promise<FoundCard | Problem>
  server: ServerIdentity
  /** ms since the epoch. */
  clock(): number
  /** A UUID version 7. */
  newId(): string
  /** A UUID version 4. */
  newUuid(): string
  /** The longest time that a call to a directory server may take, with its repeats, in ms. */
  askMsMax: number
}
