// Gives rows that grant rights their code (src/vault/ring/grants.ts), in the transaction that writes them, and finds rows
// without a right one. A code is made over what the caller wrote, not over what the database hands back.
import { ConfigError } from '../config.ts'
import { assert, Fault } from '../errors.ts'
import * as captureKeys from '../store/access/capture-keys.ts'
import * as clients from '../store/access/clients.ts'
import * as scopes from '../store/access/scopes.ts'
import * as signingKeys from '../store/access/signing-keys.ts'
import * as credentials from '../store/person/credentials.ts'
import * as identities from '../store/person/identities.ts'
import * as invites from '../store/person/invites.ts'
import * as persons from '../store/person/persons.ts'
import type { Db } from '../store/pool.ts'
import type { KeyRing } from '../vault/key-ring.ts'
import {
  type CaptureKeyRow,
  type ClientKeyRow,
  type ClientRow,
  captureKeyText,
  clientKeyText,
  clientText,
  type IdentityRow,
  type InviteRow,
  identityText,
  inviteText,
  isGranted,
  type PasskeyRow,
  type PersonRow,
  passkeyText,
  personText,
  type ScopeRow,
  type SigningKeyRow,
  scopeText,
  signingKeyText,
} from '../vault/ring/grants.ts'
import {
  type Grant,
  ofCaptureKey,
  ofClient,
  ofClientKey,
  ofIdentity,
  ofInvite,
  ofPasskey,
  ofPerson,
  ofScope,
  ofSigningKey,
} from './grant-rows.ts'

type Ring = Pick<KeyRing, 'grantMac' | 'grantMacBy'>

/** Codes a client that was just written. `meant`: as it was to be written. */
export async function grantClient(db: Db, ring: Ring, meant: ClientRow): Promise<void> {
  const client = await clients.find(db, meant.clientId)
  await sealAsMeant(db, ring, client && ofClient(client), clientText(meant))
}

/** How a client's key begins. */
export const NEW_KEY = { state: 'ACTIVE', validUntil: null } as const

export async function grantClientKey(db: Db, ring: Ring, meant: ClientKeyRow): Promise<void> {
  const key = (await clients.findClientKeys(db, meant.clientId)).find(({ kid }) => kid === meant.kid)
  await sealAsMeant(db, ring, key && ofClientKey(key), clientKeyText(meant))
}

/** How a capture key begins; the first of its line, unless another number is given. */
export const NEW_CAPTURE_KEY = { number: 1, state: 'ACTIVE', retiredAt: null } as const

export async function grantCaptureKey(db: Db, ring: Ring, meant: CaptureKeyRow): Promise<void> {
  const line = await captureKeys.findLine(db, meant.alias)
  const key = line.find(({ number }) => number === meant.number)
  await sealAsMeant(db, ring, key && ofCaptureKey(key), captureKeyText(meant))
}

export async function grantScope(db: Db, ring: Ring, meant: ScopeRow): Promise<void> {
  const scope = await scopes.find(db, meant.tokenScope)
  await sealAsMeant(db, ring, scope && ofScope(scope), scopeText(meant))
}

export async function grantSigningKey(db: Db, ring: Ring, meant: SigningKeyRow): Promise<void> {
  const key = (await signingKeys.findPublic(db)).find(({ kid }) => kid === meant.kid)
  await sealAsMeant(db, ring, key && ofSigningKey(key), signingKeyText(meant))
}

export async function grantPerson(db: Db, ring: Ring, meant: PersonRow): Promise<void> {
  const person = await persons.find(db, meant.personId)
  await sealAsMeant(db, ring, person && ofPerson(person), personText(meant))
}

export async function grantPasskey(db: Db, ring: Ring, meant: PasskeyRow): Promise<void> {
  const passkey = await credentials.find(db, meant.credentialId)
  await sealAsMeant(db, ring, passkey && ofPasskey(passkey), passkeyText(meant))
}

export async function grantIdentity(db: Db, ring: Ring, meant: IdentityRow): Promise<void> {
  const identity = await identities.find(db, meant.identityId)
  await sealAsMeant(db, ring, identity && ofIdentity(identity), identityText(meant))
}

export async function grantInvite(db: Db, ring: Ring, meant: InviteRow): Promise<void> {
  const invite = await invites.find(db, meant.inviteId)
  await sealAsMeant(db, ring, invite && ofInvite(invite), inviteText(meant))
}

/** Throws `ConfigError` if the database holds anything else: a trigger of its owner's can change what is written. */
async function sealAsMeant(db: Db, ring: Ring, row: Grant | undefined, meant: string): Promise<void> {
  assert(row, 'it was just written')
  if (row.text !== meant)
    throw new ConfigError(
      `DATABASE_URL: the database holds ${nameOf(row)} other than it was written, so nothing was changed: look for a trigger or a rule on the schema tokenmill that tokenmill did not make, and remove it`,
    )
  await seal(db, ring, row)
}

/** Whether tokenmill itself wrote the client, so that a change of it may be coded. */
export function isClientGranted(ring: Pick<Ring, 'grantMacBy'>, client: clients.Client): boolean {
  return isGranted(ring, clientText(client), client)
}

export function isCaptureKeyGranted(ring: Pick<Ring, 'grantMacBy'>, key: captureKeys.CaptureKeyInfo): boolean {
  return isGranted(ring, captureKeyText(key), key)
}

export function isClientKeyGranted(ring: Pick<Ring, 'grantMacBy'>, key: clients.ClientKey): boolean {
  return isGranted(ring, clientKeyText(key), key)
}

export function isSigningKeyGranted(ring: Pick<Ring, 'grantMacBy'>, key: signingKeys.PublicSigningKey): boolean {
  return isGranted(ring, signingKeyText(key), key)
}

/** Whether tokenmill wrote the person, who isn't revoked. */
export function isPersonLive(ring: Pick<Ring, 'grantMacBy'>, person: persons.Person): boolean {
  return person.revokedAt === null && isGranted(ring, personText(person), person)
}

/** Whether tokenmill wrote the passkey, which isn't revoked. */
export function isPasskeyLive(ring: Pick<Ring, 'grantMacBy'>, passkey: credentials.Credential): boolean {
  return passkey.revokedAt === null && isGranted(ring, passkeyText(passkey), passkey)
}

/** Whether tokenmill wrote the identity, which isn't revoked. */
export function isIdentityLive(ring: Pick<Ring, 'grantMacBy'>, identity: identities.Identity): boolean {
  return identity.revokedAt === null && isGranted(ring, identityText(identity), identity)
}

/** Whether tokenmill wrote the invite, which wasn't used. `now`: ms since the epoch. */
export function isInviteLive(ring: Pick<Ring, 'grantMacBy'>, invite: invites.Invite, now: number): boolean {
  return invite.usedAt === null && now < invite.expiresAt && isGranted(ring, inviteText(invite), invite)
}

/** The rows that aren't revoked and whose code is wrong or missing, as `kind id`. */
export async function listUngranted(db: Db, ring: Ring): Promise<string[]> {
  return (await listGrants(db)).filter(row => !row.isRevoked && !isRight(ring, row)).map(nameOf)
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
export async function regrantAll(db: Db, ring: Ring): Promise<Regranted> {
  const { keyVersion: current } = ring.grantMac('')
  const rows = (await listGrants(db)).filter(row => !row.isRevoked && row.macVersion !== current)
  const ungranted: string[] = []
  let done = 0
  for (const row of rows) {
    if (!isRight(ring, row)) ungranted.push(nameOf(row))
    else if (await row.save(db, ring.grantMac(row.text).mac, current, row.mac ?? undefined)) done += 1
  }
  return { done, ungranted }
}

/** A code under a version that the ring doesn't have counts as wrong. */
function isRight(ring: Ring, row: Grant): boolean {
  try {
    return isGranted(ring, row.text, row)
  } catch (error) {
    if (error instanceof Fault && error.code === 'key_unavailable') return false
    throw error
  }
}

const nameOf = ({ kind, id }: Grant) => `${kind} ${id}`

/** Every row that grants rights, revoked ones too. */
export async function listGrants(db: Db): Promise<Grant[]> {
  const known = await clients.list(db)
  const keys = await clients.listKeys(db)
  return [
    ...known.map(ofClient),
    ...keys.map(ofClientKey),
    ...(await captureKeys.list(db)).map(ofCaptureKey),
    ...(await scopes.list(db)).map(ofScope),
    ...(await signingKeys.findPublic(db)).map(ofSigningKey),
    ...(await persons.list(db)).map(ofPerson),
    ...(await credentials.list(db)).map(ofPasskey),
    ...(await identities.list(db)).map(ofIdentity),
    ...(await invites.list(db)).map(ofInvite),
  ]
}

async function seal(db: Db, ring: Ring, row: Grant): Promise<void> {
  const { mac, keyVersion } = ring.grantMac(row.text)
  await row.save(db, mac, keyVersion)
}
