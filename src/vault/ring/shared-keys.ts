// Data keys for a role without the key-encryption key: each version is encrypted to the role's own key pair (JWE,
// ECDH-ES+A256KW on X25519), whose private half is in a file of the role's hosts. Anybody can encrypt to a public half, so
// the content is also authenticated, by a secret that only that file and the vault hold.
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  createSecretKey,
  generateKeyPairSync,
  type JsonWebKey,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto'
import { CompactEncrypt, calculateJwkThumbprint, compactDecrypt } from 'jose'
import { z } from 'zod'
import { assert, Fault } from '../../errors.ts'
import { Secret } from '../../secret.ts'

/** The purposes whose keys the gateway may know. These keys open no card. */
export const SHARED_PURPOSES = ['network-token', 'api-key', 'intake'] as const
export type SharedPurpose = (typeof SHARED_PURPOSES)[number]

/** A version of a shared data key. */
export interface SharedName {
  purpose: SharedPurpose
  version: number
}

/** The vault's side of a role's key. */
export interface RoleKey {
  /** The thumbprint of the public half (RFC 7638). */
  kid: string
  publicKey: KeyObject
  secret: Secret<Buffer>
}

/** The role's side, from its file. */
export interface RoleKeyFile {
  kid: string
  privateKey: KeyObject
  publicJwk: JsonWebKey
  secret: Secret<Buffer>
}

const KEY_BYTES = 32
const USE = 'tokenmill-gateway-keys'
const ALG = 'ECDH-ES+A256KW'
const ENC = 'A256GCM'

const FileJwk = z.looseObject({
  kty: z.literal('OKP'),
  crv: z.literal('X25519'),
  x: z.string(),
  d: z.string(),
  use: z.literal(USE),
  secret: z.string(),
})
const Content = z.strictObject({ purpose: z.string(), version: z.int(), k: z.string(), mac: z.string() })

/** What the secret of a role's key is sealed for (`sealPrivateHalf`). */
export const roleKeyName = (kid: string) => `role-key ${kid}`

/** Makes a role's key. The result is the text of its file, which is a secret. */
export function makeRoleKeyText(): Secret {
  const { privateKey } = generateKeyPairSync('x25519')
  const jwk = {
    ...privateKey.export({ format: 'jwk' }),
    use: USE,
    secret: randomBytes(KEY_BYTES).toString('base64url'),
  }
  return new Secret(`${JSON.stringify(jwk, null, 2)}\n`)
}

/** Undefined if the text isn't such a key. */
export async function readRoleKey(text: Secret): Promise<RoleKeyFile | undefined> {
  const jwk = parse(FileJwk, text.reveal())
  const secret = Buffer.from(jwk?.secret ?? '', 'base64url')
  if (!jwk || secret.length !== KEY_BYTES) return undefined
  try {
    const { kty, crv, x, d } = jwk
    const publicJwk = { kty, crv, x }
    const privateKey = createPrivateKey({ key: { ...publicJwk, d }, format: 'jwk' })
    return {
      kid: await calculateJwkThumbprint(publicJwk),
      privateKey,
      publicJwk,
      secret: new Secret(secret),
    }
  } catch {
    return undefined
  }
}

/** Reads the public half from a stored JWK. Undefined if the thumbprint of the JWK isn't `kid`. */
export async function readRolePublicKey(jwk: JsonWebKey, kid: string): Promise<KeyObject | undefined> {
  try {
    const { kty = '', crv = '', x = '' } = jwk
    if ((await calculateJwkThumbprint({ kty, crv, x })) !== kid) return undefined
    const key = createPublicKey({ key: { kty, crv, x }, format: 'jwk' })
    return key.asymmetricKeyType === 'x25519' ? key : undefined
  } catch {
    return undefined
  }
}

/** Encrypts a version of a data key to a role. */
export function shareKey(key: KeyObject, { purpose, version }: SharedName, to: RoleKey): Promise<string> {
  const k = key.export().toString('base64url')
  const mac = macOf(to, { purpose, version }, k).toString('base64url')
  const plain = Buffer.from(JSON.stringify({ purpose, version, k, mac }))
  return new CompactEncrypt(plain)
    .setProtectedHeader({ alg: ALG, enc: ENC, kid: to.kid })
    .encrypt(to.publicKey)
    .finally(() => plain.fill(0))
}

/** Decrypts what `shareKey` made. Throws `Fault('key_unavailable')` if it isn't for this file, or isn't that key. */
export async function openSharedKey(jwe: string, name: SharedName, file: RoleKeyFile): Promise<KeyObject> {
  const options = { keyManagementAlgorithms: [ALG], contentEncryptionAlgorithms: [ENC] }
  const opened = await compactDecrypt(jwe, file.privateKey, options).catch((cause: unknown) => {
    throw new Fault('key_unavailable', cause)
  })
  const content = parse(Content, Buffer.from(opened.plaintext).toString('utf8'))
  opened.plaintext.fill(0)
  const isNamed = content?.purpose === name.purpose && content.version === name.version
  if (!content || !isNamed) throw new Fault('key_unavailable')
  const said = Buffer.from(content.mac, 'base64url')
  const right = macOf(file, name, content.k)
  if (said.length !== right.length || !timingSafeEqual(said, right)) throw new Fault('key_unavailable')
  const raw = Buffer.from(content.k, 'base64url')
  assert(raw.length === KEY_BYTES, 'a data key has 32 bytes')
  const key = createSecretKey(raw)
  raw.fill(0)
  return key
}

function macOf({ kid, secret }: Pick<RoleKey, 'kid' | 'secret'>, { purpose, version }: SharedName, k: string): Buffer {
  const text = JSON.stringify(['shared-key', kid, purpose, version, k])
  return createHmac('sha256', secret.reveal()).update(text).digest()
}

function parse<T>(schema: z.ZodType<T>, text: string): T | undefined {
  try {
    return schema.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
