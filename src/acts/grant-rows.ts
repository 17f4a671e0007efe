// Each sort of the core's rows that grant rights, as its code is made over it and written. grants.ts makes and checks the codes.
import * as captureKeys from '../store/access/capture-keys.ts'
import * as clients from '../store/access/clients.ts'
import * as scopes from '../store/access/scopes.ts'
import * as signingKeys from '../store/access/signing-keys.ts'
import type { Db } from '../store/pool.ts'
import {
  captureKeyText,
  clientKeyText,
  clientText,
  type GrantKind,
  type MacOfRow,
  scopeText,
  signingKeyText,
} from '../vault/ring/grants.ts'

export interface Grant extends MacOfRow {
  kind: GrantKind
  /** A client's key: the client's id and the `kid`. */
  id: string
  text: string
  isRevoked: boolean
  /** `former`: only in place of this code. False if the row wasn't changed. */
  save(db: Db, mac: Buffer, version: number, former?: Buffer): Promise<boolean>
}

export function ofClient(client: clients.Client): Grant {
  const { clientId, revokedAt } = client
  return {
    kind: 'client',
    id: clientId,
    text: clientText(client),
    isRevoked: revokedAt !== null,
    ...macOf(client),
    save: (db, ...code) => clients.setMac(db, clientId, ...code),
  }
}

export function ofClientKey(key: clients.ClientKey): Grant {
  const { clientId, kid, state } = key
  return {
    kind: 'client-key',
    id: `${clientId} ${kid}`,
    text: clientKeyText(key),
    isRevoked: state === 'REVOKED',
    ...macOf(key),
    save: (db, ...code) => clients.setKeyMac(db, { clientId, kid }, ...code),
  }
}

export function ofCaptureKey(key: captureKeys.CaptureKeyInfo): Grant {
  const { keyId, state } = key
  return {
    kind: 'capture-key',
    id: captureKeys.captureKeyName(key),
    text: captureKeyText(key),
    isRevoked: state === 'DESTROYED',
    ...macOf(key),
    save: (db, ...code) => captureKeys.setMac(db, keyId, ...code),
  }
}

export function ofScope(scope: scopes.Scope): Grant {
  const { tokenScope } = scope
  return {
    kind: 'scope',
    id: tokenScope,
    text: scopeText(scope),
    isRevoked: false,
    ...macOf(scope),
    save: (db, ...code) => scopes.setMac(db, tokenScope, ...code),
  }
}

export function ofSigningKey(key: signingKeys.PublicSigningKey): Grant {
  const { kid } = key
  return {
    kind: 'signing-key',
    id: kid,
    text: signingKeyText(key),
    isRevoked: false,
    ...macOf(key),
    save: (db, ...code) => signingKeys.setMac(db, kid, ...code),
  }
}

export const macOf = ({ mac, macVersion }: MacOfRow): MacOfRow => ({ mac, macVersion })
