// Registers a client: its row and key, its API key, the first capture keys of its entity, and its files. Secrets go
// into files of mode 0600; the API key is returned once and stored only as a keyed hash.

import { randomBytes, randomInt, randomUUID } from 'node:crypto'
import { join, relative } from 'node:path'
import type { ClientFile } from '../../producers/client/client-file.ts'
import { insertKey, type Stating, state } from '../../src/acts/capture-keys.ts'
import { grantClient, grantClientKey, NEW_KEY } from '../../src/acts/grants.ts'
import { systemClock } from '../../src/clock.ts'
import type { Config } from '../../src/config.ts'
import type { Role } from '../../src/job/catalogue.ts'
import { CONTRACT } from '../../src/job/choices.ts'
import type { NameRule } from '../../src/job/envelope/names.ts'
import * as audits from '../../src/store/access/audits.ts'
import * as captureKeys from '../../src/store/access/capture-keys.ts'
import * as clients from '../../src/store/access/clients.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Db, Store } from '../../src/store/pool.ts'
import { makeCaptureKey } from '../../src/vault/capture/capture-key.ts'
import { withStatement } from '../../src/vault/capture/statement.ts'
import { importRegisteredJwk, type Jwk, makeApiKey, makeSigningKey } from '../../src/vault/client-key.ts'
import type { PrivateHalves } from '../../src/vault/private-half.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { actor } from '../terminal.ts'
import { openStating } from './capture-keys.ts'
import { findInstallationKeys } from './installation-key.ts'
import { jsonText, writePrivate } from './key-files.ts'

interface Registration {
  name: string
  /** The entities of the client; the first is its own. */
  entities: [string, ...string[]]
  roles: Role[]
  /** The client's own public key; undefined: a key pair is made. */
  publicJwk: Jwk | undefined
  /** Default: `checked`. */
  names?: NameRule | undefined
  /** The directory into which its files are written. */
  outDir: string
  /** New files may replace older ones. */
  replace?: boolean
  audience: string
  baseUrl: string
}

/** Names of files are absolute. `api_key` is shown only this once. */
export type Registered = ClientFile & { api_key: string }

interface Opened {
  store: Store
  halves: PrivateHalves
  ring: LiveRing
}

/** Registers a client. Throws `ConfigError` for a public key that isn't accepted, `Stop` if a file exists already. */
export async function registerClient(opened: Opened, registration: Registration): Promise<Registered> {
  const { store, ring } = opened
  const { name, entities, roles, publicJwk, names = 'checked', outDir, replace = false } = registration
  const pair = publicJwk ? undefined : makeSigningKey()
  const jwk = publicJwk ?? pair?.publicJwk ?? {}
  const { kid, alg } = importRegisteredJwk(jwk)
  const clientId = makeClientId()
  const userId = randomUUID()
  const apiKey = makeApiKey()
  const apiKeyHash = ring.apiKeyHash(userId, apiKey)
  const stating = await openStating({ config: registration }, opened)
  await ensureCaptureKeys(opened, stating, entities[0])
  await store.transaction(async db => {
    const client = { clientId, name, userId, apiKeyHash, entities, roles, alg, names, system: false }
    const key = { clientId, kid, alg, publicJwk: jwk }
    await clients.insert(db, client)
    await clients.insertKey(db, key)
    await grantClient(db, ring, client)
    await grantClientKey(db, ring, { ...key, ...NEW_KEY })
    const detail = { name, entities, roles, kid, alg, names }
    await audits.insert(db, { actor: actor(), action: 'client.add', subject: clientId, detail })
    // The file is written before the commit: if that fails, the transaction rolls back, and no client without a private
    // key remains.
    if (pair) await writePrivate(signingKeyPath(outDir), jsonText(pair.privateJwk.reveal()), { replace })
  })
  const signingKeyFile = pair ? signingKeyPath(outDir) : null
  const described = { clientId, userId, entityId: entities[0], signingKeyFile, names }
  const file = await describeClient(opened, registration, described)
  return { ...file, api_key: apiKey.reveal() }
}

function signingKeyPath(outDir: string): string {
  return join(outDir, 'signing-key.jwk')
}

/** Makes one JWE key and one OpenPGP key, for each of these types of which the entity has no active key. */
async function ensureCaptureKeys({ store, halves }: Opened, stating: Stating, entityId: string): Promise<void> {
  const active = await findActiveKeys(store, entityId)
  const suffix = randomBytes(4).toString('hex')
  for (const { form, type } of FIRST_KEYS) {
    if (active[form]) continue
    const key = await makeCaptureKey(type, `${form}-${suffix}`, halves)
    await store.transaction(async db => {
      await insertKey(db, stating, { ...key, entityId }, systemClock())
      const detail = { entity_id: entityId, type }
      await audits.insert(db, { actor: actor(), action: 'capture-key.add', subject: key.alias, detail })
    })
  }
}

// RSA for JWE, because today's clients of this interface support it.
const FIRST_KEYS = [
  { form: 'jwe', type: 'jwe-rsa' },
  { form: 'pgp', type: 'pgp' },
] as const

/** The newest active key of each form. */
async function findActiveKeys(db: Db, entityId: string) {
  const active = await captureKeys.listHandedOut(db, entityId)
  return { jwe: active.find(key => key.type !== 'pgp'), pgp: active.find(key => key.type === 'pgp') }
}

interface Described {
  clientId: string
  userId: string
  entityId: string
  signingKeyFile: string | null
  names?: NameRule | undefined
}

/**
 * The content of the client's file as of now. Writes the entity's public capture keys, with the installation's statements
 * about them, to `outDir`. Names of files are absolute. Throws `ConfigError` for a capture key that tokenmill didn't make.
 */
export async function describeClient(
  opened: Opened,
  { outDir, audience, baseUrl }: Pick<Registration, 'outDir' | 'audience' | 'baseUrl'>,
  { clientId, userId, entityId, signingKeyFile, names }: Described,
): Promise<ClientFile> {
  const { store: db } = opened
  const stating = await openStating({ config: { audience } }, opened)
  const { jwe, pgp } = await findActiveKeys(db, entityId)
  const [scope] = await scopes.list(db, entityId)
  const place = async (key: captureKeys.CaptureKeyInfo) => {
    const path = join(outDir, `${key.alias}.${key.type === 'pgp' ? 'asc' : 'jwk'}`)
    const { publicKey: bare, statement } = await state(db, stating, key, systemClock())
    const publicKey = withStatement(bare, statement)
    await writePrivate(path, publicKey.endsWith('\n') ? publicKey : `${publicKey}\n`, { replace: true })
    return { alias: key.alias, public_key_file: path }
  }
  return {
    contract: CONTRACT,
    client_id: clientId,
    user_id: userId,
    entity_id: entityId,
    signing_key_file: signingKeyFile,
    ...(scope ? { token_scope: scope.tokenScope } : {}),
    capture_keys: { ...(jwe ? { jwe: await place(jwe) } : {}), ...(pgp ? { pgp: await place(pgp) } : {}) },
    ...(names === 'numeric' ? { names } : {}),
    base_url: baseUrl,
    audience,
    installation_keys: await findInstallationKeys(db, opened.ring),
  }
}

/** The content with names of files relative to `dir`, so that the file can be moved together with its keys. */
export function relativeTo<F extends ClientFile>(dir: string, file: F): F {
  const near = (path: string) => relative(dir, path)
  const { jwe, pgp } = file.capture_keys
  return {
    ...file,
    signing_key_file: file.signing_key_file === null ? null : near(file.signing_key_file),
    capture_keys: {
      ...(jwe ? { jwe: { ...jwe, public_key_file: near(jwe.public_key_file) } } : {}),
      ...(pgp ? { pgp: { ...pgp, public_key_file: near(pgp.public_key_file) } } : {}),
    },
  }
}

/** The address of the interface for HTTP callers on this machine. */
export function baseUrlOf({ httpHost, httpPort, tls }: Pick<Config, 'httpHost' | 'httpPort' | 'tls'>): string {
  const host = httpHost === '0.0.0.0' || httpHost === '::' ? '127.0.0.1' : httpHost
  return `${tls ? 'https' : 'http'}://${host.includes(':') ? `[${host}]` : host}:${httpPort}/oidc`
}

const LETTERS = 'abcdefghijklmnopqrstuvwxyz0123456789'

/** A client id: `c` and 25 characters of `a-z0-9` (129 bits). */
function makeClientId(): string {
  return `c${Array.from({ length: 25 }, () => LETTERS[randomInt(LETTERS.length)]).join('')}`
}
