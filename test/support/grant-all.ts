// Codes every row that grants rights, for tests that write such rows by SQL.
import {
  ofCaptureKey,
  ofClient,
  ofClientKey,
  ofIdentity,
  ofInvite,
  ofPasskey,
  ofPerson,
  ofScope,
  ofSigningKey,
} from '../../src/acts/grant-rows.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import * as signingKeys from '../../src/store/access/signing-keys.ts'
import * as credentials from '../../src/store/person/credentials.ts'
import * as identities from '../../src/store/person/identities.ts'
import * as invites from '../../src/store/person/invites.ts'
import * as persons from '../../src/store/person/persons.ts'
import type { Db } from '../../src/store/pool.ts'
import type { KeyRing } from '../../src/vault/key-ring.ts'

/** Returns how many rows there were that aren't revoked. */
export async function grantAll(db: Db, ring: Pick<KeyRing, 'grantMac'>): Promise<number> {
  const rows = [
    ...(await clients.list(db)).map(ofClient),
    ...(await clients.listKeys(db)).map(ofClientKey),
    ...(await captureKeys.list(db)).map(ofCaptureKey),
    ...(await scopes.list(db)).map(ofScope),
    ...(await signingKeys.findPublic(db)).map(ofSigningKey),
    ...(await persons.list(db)).map(ofPerson),
    ...(await credentials.list(db)).map(ofPasskey),
    ...(await identities.list(db)).map(ofIdentity),
    ...(await invites.list(db)).map(ofInvite),
  ].filter(row => !row.isRevoked)
  for (const row of rows) {
    const { mac, keyVersion } = ring.grantMac(row.text)
    await row.save(db, mac, keyVersion)
  }
  return rows.length
}
