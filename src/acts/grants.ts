// Gives rows that grant rights their code (src/vault/ring/grants.ts), in the transaction that writes them, and finds rows
// without a right one. A code is made over what the caller wrote, not over what the database hands back.
import { ConfigError } from '../config.ts'
import { assert, Fault } from '../errors.ts'
import * as captureKeys from '../store/access/capture-keys.ts'
import * as clients from '../store/access/clients.ts'
import * as scopes from '../store/access/scopes.ts'
import * as signingKeys from '../store/access/signing-keys.ts'
import type { Db } from '../store/pool.ts'
import {
  type CaptureKeyRow,
  type ClientKeyRow,
  type ClientRow,
  captureKeyText,
  clientKeyText,
  clientText,
  isGranted,
  type ScopeRow,
  type SigningKeyRow,
  scopeText,
  signingKeyText,
} from '../vault/ring/grants.ts'
import type { KeyRing } from '../vault/ring/key-ring.ts'
import { type Grant, ofCaptureKey, ofClient, ofClientKey, ofScope, ofSigningKey } from './grant-rows.ts'

export type GrantRing = Pick<KeyRing, 'grantMac' | 'grantMacBy'>

/** Every row of some kinds that grants rights, revoked ones too. */
export type ListGrants = (db: Db) => Promise<Grant[]>

/** Codes a client that was just written. `meant`: as it was to be written. */
export async function grantClient(db: Db, ring: GrantRing, meant: ClientRow): Promise<void> {
  const client = await clients.find(db, meant.clientId)
  await sealAsMeant(db, ring, client && ofClient(client), clientText(meant))
}

/** How a client's key begins. */
export const NEW_KEY = { state: 'ACTIVE', validUntil: null } as const

export async function grantClientKey(db: Db, ring: GrantRing, meant: ClientKeyRow): Promise<void> {
  const key = (await clients.findClientKeys(db, meant.clientId)).find(({ kid }) => kid === meant.kid)
  await sealAsMeant(db, ring, key && ofClientKey(key), clientKeyText(meant))
}

/** How a capture key begins; the first of its line, unless another number is given. */
export const NEW_CAPTURE_KEY = { number: 1, state: 'ACTIVE', retiredAt: null } as const

export async function grantCaptureKey(db: Db, ring: GrantRing, meant: CaptureKeyRow): Promise<void> {
  const line = await captureKeys.findLine(db, meant.alias)
  const key = line.find(({ number }) => number === meant.number)
  await sealAsMeant(db, ring, key && ofCaptureKey(key), captureKeyText(meant))
}

export async function grantScope(db: Db, ring: GrantRing, meant: ScopeRow): Promise<void> {
  const scope = await scopes.find(db, meant.tokenScope)
  await sealAsMeant(db, ring, scope && ofScope(scope), scopeText(meant))
}

export async function grantSigningKey(db: Db, ring: GrantRing, meant: SigningKeyRow): Promise<void> {
  const key = (await signingKeys.findPublic(db)).find(({ kid }) => kid === meant.kid)
  await sealAsMeant(db, ring, key && ofSigningKey(key), signingKeyText(meant))
}

/**
 * Codes a row that was just written. `meant`: its text, as it was to be written. Throws `ConfigError` if the database holds
 * anything else: a trigger of its owner's can change what is written.
 */
export async function sealAsMeant(db: Db, ring: GrantRing, row: Grant | undefined, meant: string): Promise<void> {
  assert(row, 'it was just written')
  if (row.text !== meant)
    throw new ConfigError(
      `DATABASE_URL: the database holds ${nameOf(row)} other than it was written, so nothing was changed: look for a trigger or a rule on the schema tokenmill that tokenmill did not make, and remove it`,
    )
  await seal(db, ring, row)
}

/** Whether tokenmill itself wrote the client, so that a change of it may be coded. */
export function isClientGranted(ring: Pick<GrantRing, 'grantMacBy'>, client: clients.Client): boolean {
  return isGranted(ring, clientText(client), client)
}

export function isCaptureKeyGranted(ring: Pick<GrantRing, 'grantMacBy'>, key: captureKeys.CaptureKeyInfo): boolean {
  return isGranted(ring, captureKeyText(key), key)
}

export function isClientKeyGranted(ring: Pick<GrantRing, 'grantMacBy'>, key: clients.ClientKey): boolean {
  return isGranted(ring, clientKeyText(key), key)
}

export function isSigningKeyGranted(ring: Pick<GrantRing, 'grantMacBy'>, key: signingKeys.PublicSigningKey): boolean {
  return isGranted(ring, signingKeyText(key), key)
}

/** The rows that aren't revoked and whose code is wrong or missing, as `kind id`. */
export async function listUngranted(db: Db, ring: GrantRing, lists: readonly ListGrants[]): Promise<string[]> {
  return (await listGrants(db, lists)).filter(row => !row.isRevoked && !isRight(ring, row)).map(nameOf)
}

export interface Regranted {
  /** Rows that were coded anew. */
  done: number
  /** Rows whose code is wrong or missing, which got none. */
  ungranted: string[]
}

/**
 * Codes anew each row that a former version of the key has coded, under the version in use. A row that somebody changes
 * meanwhile gets its code by that change. `ring`: read after the version came into use.
 */
export async function regrantAll(db: Db, ring: GrantRing, lists: readonly ListGrants[]): Promise<Regranted> {
  const { keyVersion: current } = ring.grantMac('')
  const rows = (await listGrants(db, lists)).filter(row => !row.isRevoked && row.macVersion !== current)
  const ungranted: string[] = []
  let done = 0
  for (const row of rows) {
    if (!isRight(ring, row)) ungranted.push(nameOf(row))
    else if (await row.save(db, ring.grantMac(row.text).mac, current, row.mac ?? undefined)) done += 1
  }
  return { done, ungranted }
}

/** A code under a version that the ring doesn't have counts as wrong. */
function isRight(ring: GrantRing, row: Grant): boolean {
  try {
    return isGranted(ring, row.text, row)
  } catch (error) {
    if (error instanceof Fault && error.code === 'key_unavailable') return false
    throw error
  }
}

const nameOf = ({ kind, id }: Grant) => `${kind} ${id}`

/** The rows of all these lists. */
export async function listGrants(db: Db, lists: readonly ListGrants[]): Promise<Grant[]> {
  const found: Grant[] = []
  for (const list of lists) found.push(...(await list(db)))
  return found
}

/** Clients, their keys, capture keys, scopes and the installation's signing keys. */
export const listCoreGrants: ListGrants = async db => {
  const known = await clients.list(db)
  const keys = await clients.listKeys(db)
  return [
    ...known.map(ofClient),
    ...keys.map(ofClientKey),
    ...(await captureKeys.list(db)).map(ofCaptureKey),
    ...(await scopes.list(db)).map(ofScope),
    ...(await signingKeys.findPublic(db)).map(ofSigningKey),
  ]
}

async function seal(db: Db, ring: GrantRing, row: Grant): Promise<void> {
  const { mac, keyVersion } = ring.grantMac(row.text)
  await row.save(db, mac, keyVersion)
}
