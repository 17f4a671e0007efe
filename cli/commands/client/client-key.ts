// `tokenmill client key`: the signing keys of a client. At most two are active at the same time, so that a new key can
// replace an old one; all have the algorithm that was fixed when the client was registered.
import { join, resolve } from 'node:path'
import { grantClientKey, isClientGranted, isClientKeyGranted, NEW_KEY } from '../../../src/acts/grants.ts'
import * as audits from '../../../src/store/access/audits.ts'
import * as clients from '../../../src/store/access/clients.ts'
import type { Db } from '../../../src/store/pool.ts'
import { importRegisteredJwk, type Jwk, makeSigningKey } from '../../../src/vault/client-key.ts'
import type { KeyRing } from '../../../src/vault/ring/key-ring.ts'
import type { JsonOption } from '../../command.ts'
import { Stop } from '../../exit.ts'
import { jsonText, writePrivate } from '../../open/key-files.ts'
import { openCommandStore, openVault, type Session, withSession } from '../../open/open.ts'
import { actor, facts, moment, print, type Terminal, table } from '../../terminal.ts'
import { findClient, findOwnClient, findOwnLiveClient } from './find-client.ts'
import { readJwkFile } from './jwk-file.ts'

const NOT_OURS =
  'The row of this client or key was not written by tokenmill, or was changed since: see `tokenmill doctor`. Revoke it, and add another.'

interface AddOptions extends JsonOption {
  publicKey?: string
  out?: string
}

interface RetireOptions extends JsonOption {
  until: number
}

export function add(terminal: Terminal, word: string, options: AddOptions): Promise<void> {
  return withSession(terminal, async session => {
    const given = options.publicKey === undefined ? undefined : await readJwkFile(options.publicKey)
    const pair = given ? undefined : makeSigningKey()
    const jwk = given ?? pair?.publicJwk ?? {}
    const { kid } = importRegisteredJwk(jwk)
    const { store, ring } = await openVault(session)
    const { clientId, name } = await findOwnLiveClient(store, word)
    const outDir = resolve(options.out ?? join(session.config.dataDir, 'clients', name))
    const path = join(outDir, `signing-key-${kid.slice(0, 8)}.jwk`)
    await store.transaction(async db => {
      await addKey(db, ring, clientId, jwk)
      // The file is written before the commit: if that fails, the transaction rolls back, and the store holds no key
      // without a private half.
      if (pair) await writePrivate(path, jsonText(pair.privateJwk.reveal()))
    })
    const shown = { client_id: clientId, kid, signing_key_file: pair ? path : null }
    print(terminal, options, shown, facts({ client_id: clientId, kid, 'signing key': pair ? path : 'its own' }))
  })
}

async function addKey(db: Db, ring: KeyRing, clientId: string, publicJwk: Jwk): Promise<void> {
  const { kid, alg } = importRegisteredJwk(publicJwk)
  const client = await clients.hold(db, clientId)
  if (client?.alg !== alg)
    throw new Stop(`This client signs with ${client?.alg}, fixed at its registration; this key is for ${alg}.`)
  if (!isClientGranted(ring, client)) throw new Stop(NOT_OURS)
  const active = (await clients.findClientKeys(db, clientId)).filter(key => key.state === 'ACTIVE')
  if (active.length >= clients.ACTIVE_KEYS_MAX)
    throw new Stop(`This client has ${active.length} active keys already; retire or revoke one first.`)
  if (!(await clients.insertKey(db, { clientId, kid, alg, publicJwk })))
    throw new Stop('This client has or had a key with this kid; make a new key, because a key is never used again.')
  await grantClientKey(db, ring, { clientId, kid, alg, publicJwk, ...NEW_KEY })
  await audits.insert(db, { actor: actor(), action: 'client.key.add', subject: clientId, detail: { kid } })
}

export function list(terminal: Terminal, word: string, options: JsonOption): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { clientId } = await findClient(store, word)
    const keys = await clients.findClientKeys(store, clientId)
    const shown = keys.map(key => ({
      client_id: clientId,
      kid: key.kid,
      alg: key.alg,
      state: key.state,
      valid_until: key.validUntil === null ? null : moment(key.validUntil),
      created_at: moment(key.createdAt),
    }))
    const rows = keys.map(key => [key.kid, key.alg, key.state, moment(key.validUntil), moment(key.createdAt)])
    print(terminal, options, shown, table(['KID', 'ALG', 'STATE', 'VALID UNTIL', 'CREATED'], rows))
  })
}

export function retire(terminal: Terminal, word: string, kid: string, options: RetireOptions): Promise<void> {
  return change(terminal, word, kid, options, {
    action: 'client.key.retire',
    state: 'RETIRED',
    until: options.until,
    act: async (db, clientId, session) => {
      const { ring } = await openVault(session)
      await clients.hold(db, clientId)
      const key = (await clients.findClientKeys(db, clientId)).find(one => one.kid === kid)
      if (!key || !(await clients.retireKey(db, clientId, kid, options.until))) return false
      if (!isClientKeyGranted(ring, key)) throw new Stop(NOT_OURS)
      await grantClientKey(db, ring, { ...key, state: 'RETIRED', validUntil: options.until })
      return true
    },
  })
}

export function revoke(terminal: Terminal, word: string, kid: string, options: JsonOption): Promise<void> {
  return change(terminal, word, kid, options, {
    action: 'client.key.revoke',
    state: 'REVOKED',
    act: (db, clientId) => clients.revokeKey(db, clientId, kid),
  })
}

interface Change {
  action: string
  state: clients.ClientKey['state']
  until?: number
  /** Changes the key. Returns false if the client has no such key that can be changed. */
  act: (db: Db, clientId: string, session: Session) => Promise<boolean>
}

function change(terminal: Terminal, word: string, kid: string, options: JsonOption, change: Change): Promise<void> {
  return withSession(terminal, async session => {
    const { store } = await openCommandStore(session)
    const { clientId } = await findOwnClient(store, word)
    const until = change.until === undefined ? undefined : moment(change.until)
    const detail = { kid, ...(until ? { until } : {}) }
    await store.transaction(async db => {
      if (!(await change.act(db, clientId, session)))
        throw new Stop(
          `This client has no key with this kid that can be changed; see \`tokenmill client key list ${word}\`.`,
        )
      await audits.insert(db, { actor: actor(), action: change.action, subject: clientId, detail })
    })
    const shown = { client_id: clientId, kid, state: change.state, ...(until ? { valid_until: until } : {}) }
    print(
      terminal,
      options,
      shown,
      `${kid} is ${change.state.toLowerCase()}${until ? `; it verifies until ${until}` : ''}`,
    )
  })
}
