// The client's file: the sender's name, the installation's public keys, which verify its results, and the names of other
// files: of the key with which it signs, and of the public keys to which it encrypts. `client add --json` prints this
// file and `--client FILE` takes it. With these files a producer needs nothing else of the installation but a queue
// server.
import { createPrivateKey, type JsonWebKey, type KeyObject } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { ConfigError } from '../../src/config.ts'
import { editedText } from '../../src/edited-text.ts'
import { CONTRACT } from '../../src/job/choices.ts'
import { clientId, type SigningKey } from '../../src/job/envelope/envelope.ts'
import type { InstallationKeys } from '../../src/job/envelope/installation-jws.ts'
import { NAME_RULES, type NameRule } from '../../src/job/envelope/names.ts'
import type { Algorithm } from '../../src/job/envelope/signature.ts'
import { alias, uuid } from '../../src/job/envelope/text.ts'
import { absentPackage } from '../../src/missing-package.ts'
import { type PublicCaptureKey, readPublicCaptureKey } from '../../src/vault/capture/encrypt.ts'
import { importPublicJwk, Jwk } from '../../src/vault/client-key.ts'
import { PRIVATE_MEMBERS } from '../../src/vault/jwe-key.ts'
import { type KnownKeys, learnKeys } from '../../src/vault/key-statement.ts'
import { ContractError } from './errors.ts'
import type { GivenCredentials } from './interface.ts'
import { newKeysPath, readNewKeys } from './trusted-keys.ts'

const CaptureKeyEntry = z.strictObject({ alias: alias(), public_key_file: z.string().min(1) })
const Jwks = z.strictObject({ keys: z.array(z.record(z.string(), z.unknown())).max(32) })

/** The content of the file. Names of other files are relative to its folder. */
export const ClientFile = z.strictObject({
  /** The version of the contract that the installation speaks. Absent: 1. */
  contract: z.int().min(1).optional(),
  client_id: clientId(),
  user_id: uuid(),
  /** Undefined if it wasn't stored in the file: it is shown only once, when it is made. Only HTTP needs it. */
  api_key: z.string().optional(),
  entity_id: uuid(),
  /**
   * The file of the private JWK. Null if the client made the key itself; then the client must enter the file's name.
   */
  signing_key_file: z.string().min(1).nullable(),
  /** Undefined if the entity has no scope yet. */
  token_scope: uuid().optional(),
  capture_keys: z.strictObject({ jwe: CaptureKeyEntry.optional(), pgp: CaptureKeyEntry.optional() }),
  /** Default: `checked`. */
  names: z.enum(NAME_RULES).optional(),
  base_url: z.string(),
  /** The installation's name. */
  audience: z.string().min(1),
  /** The public keys that verify the signatures of results. */
  installation_keys: Jwks,
})
export type ClientFile = z.infer<typeof ClientFile>

export interface Credentials {
  userId: string
  entityId: string
  audience: string
  tokenScope: string | undefined
  baseUrl: string
  signingKey: SigningKey
  /** Default: `checked`. */
  names?: NameRule | undefined
  captureKeys: { jwe: PublicCaptureKey | undefined; pgp: PublicCaptureKey | undefined }
  /** Public keys by `kid`. */
  installationKeys: InstallationKeys
  /**
   * Where the library stores the statements of keys that the installation announces, and those that are there;
   * undefined: only in memory.
   */
  newKeys?: { file: string; statements: readonly string[] } | undefined
}

/** Reads the file and every key that it names. Throws a `ConfigError` that says which part is wrong. */
export async function readCredentials(path: string): Promise<Credentials> {
  const file = await readClientFile(path)
  const signingKey = await readOwnKey(path, file)
  return { ...(await readOthers(path, file)), signingKey }
}

/** As `readCredentials`. Keys that the installation announces are kept in memory only. */
export async function takeCredentials(given: GivenCredentials): Promise<Credentials> {
  const file = checkFile(IN_CREDENTIALS.file, given.file)
  const signingKey = signingKeyIn(IN_CREDENTIALS.key, given.signingKey, file.client_id)
  return { ...(await takeOthers(given, file)), signingKey }
}

/** What a client over HTTP needs: it signs in by its API key, else by its own key. */
export interface HttpCredentials extends Omit<Credentials, 'signingKey'> {
  signsIn: { apiKey: string } | { signingKey: SigningKey }
}

/** As `readCredentials`. A file with an API key needs no signing key. */
export async function readHttpCredentials(path: string): Promise<HttpCredentials> {
  const file = await readClientFile(path)
  const { api_key: apiKey } = file
  const signsIn = apiKey === undefined ? { signingKey: await readOwnKey(path, file) } : { apiKey }
  return { ...(await readOthers(path, file)), signsIn }
}

/** As `takeCredentials`. A file with an API key needs no signing key. */
export async function takeHttpCredentials(given: GivenCredentials): Promise<HttpCredentials> {
  const file = checkFile(IN_CREDENTIALS.file, given.file)
  const { api_key: apiKey } = file
  const signsIn =
    apiKey === undefined
      ? { signingKey: signingKeyIn(IN_CREDENTIALS.key, given.signingKey, file.client_id) }
      : { apiKey }
  return { ...(await takeOthers(given, file)), signsIn }
}

const IN_CREDENTIALS = { file: '`file` of `credentials`', key: '`signingKey` of `credentials`' }

async function readOwnKey(path: string, { signing_key_file: keyFile, client_id: clientId }: ClientFile) {
  if (keyFile !== null) return readSigningKey(beside(path, keyFile), clientId, namedBy(path))
  throw new ConfigError(`${path}: signing_key_file names no file; put the place of the client's private JWK there`)
}

async function readOthers(path: string, file: ClientFile): Promise<Omit<Credentials, 'signingKey'>> {
  const statements = await readNewKeys(newKeysPath(path))
  return {
    ...credentialsIn(file, statements),
    captureKeys: await readCaptureKeys(path, file, statements),
    newKeys: { file: newKeysPath(path), statements },
  }
}

async function takeOthers(
  { captureKeys = {} }: GivenCredentials,
  file: ClientFile,
): Promise<Omit<Credentials, 'signingKey'>> {
  const texts = { jwe: captureKeys.jwe && JSON.stringify(captureKeys.jwe), pgp: captureKeys.pgp }
  return { ...credentialsIn(file, []), captureKeys: await captureKeysIn(file, [], async form => texts[form]) }
}

function credentialsIn(
  file: ClientFile,
  statements: readonly string[],
): Omit<Credentials, 'signingKey' | 'captureKeys'> {
  return {
    userId: file.user_id,
    entityId: file.entity_id,
    audience: file.audience,
    tokenScope: file.token_scope,
    baseUrl: file.base_url,
    names: file.names,
    installationKeys: readInstallationKeys(file, statements),
  }
}

/** Reads the file alone, without its keys. */
export async function readClientFile(path: string): Promise<ClientFile> {
  const next =
    ': name the file that the operator made with `tokenmill client add`; `tokenmill start` makes .tokenmill/dev-client.json'
  return checkFile(path, parseJson(path, await readText(path, next)))
}

function checkFile(path: string, content: unknown): ClientFile {
  const parsed = ClientFile.safeParse(content)
  if (parsed.success) {
    const { contract = CONTRACT } = parsed.data
    if (contract !== CONTRACT) throw new ContractError(contract)
    return parsed.data
  }
  const issue = parsed.error.issues[0]
  const where = issue?.path.join('.') || (issue?.code === 'unrecognized_keys' ? issue.keys.join(', ') : 'the file')
  throw new ConfigError(`${path}: ${where} is not as a client's file has it (${issue?.code})`)
}

/**
 * The capture keys of the file. `newKeys`: statements of further signing keys. Throws `ConfigError` for a key whose
 * statement no trusted key signed, or that has none.
 */
export async function readCaptureKeys(
  path: string,
  file: ClientFile,
  newKeys: readonly string[] = [],
): Promise<Credentials['captureKeys']> {
  return captureKeysIn(file, newKeys, (_, name) => readText(beside(path, name), namedBy(path)))
}

/** `textOf`: the text of the key of a form; undefined if the caller has none. */
async function captureKeysIn(
  file: ClientFile,
  newKeys: readonly string[],
  textOf: (form: 'jwe' | 'pgp', name: string) => Promise<string | undefined>,
): Promise<Credentials['captureKeys']> {
  const trust = { audience: file.audience, entityId: file.entity_id, keys: readInstallationKeys(file, newKeys) }
  const read = async (form: 'jwe' | 'pgp') => {
    const entry = file.capture_keys[form]
    const text = entry && (await textOf(form, entry.public_key_file))
    return text === undefined ? undefined : readPublicCaptureKey(entry?.alias ?? '', text, trust)
  }
  const jwe = await read('jwe')
  const pgp = await read('pgp').catch(error => {
    // Where the package for OpenPGP keys isn't installed, the other key does.
    if (!jwe || absentPackage(error) === undefined) throw error
    return undefined
  })
  return { jwe, pgp }
}

/** Reads a private JWK. The `kid` is the JWK's own, else its thumbprint, as at registration. */
export async function readSigningKey(path: string, owner: string, next?: string): Promise<SigningKey> {
  return signingKeyIn(path, parseJson(path, await readText(path, next)), owner)
}

function signingKeyIn(path: string, json: unknown, owner: string): SigningKey {
  try {
    const jwk = Jwk.parse(json)
    const { alg, kid } = importPublicJwk(publicPart(jwk))
    return { clientId: owner, kid, alg, privateKey: createPrivateKey({ key: jwk as JsonWebKey, format: 'jwk' }) }
  } catch (error) {
    // node:crypto's own message may quote the key, so it isn't used.
    throw new ConfigError(`${path}: ${error instanceof ConfigError ? error.message : 'not a private JWK'}`)
  }
}

/** A JWK without its private members. */
export function publicPart(jwk: Jwk): Jwk {
  const hidden: readonly string[] = PRIVATE_MEMBERS
  return Object.fromEntries(Object.entries(jwk).filter(([name]) => !hidden.includes(name)))
}

/** The keys of the file, and those that a key of the file announced in a signed statement. */
function readInstallationKeys(file: ClientFile, statements: readonly string[]): InstallationKeys {
  const keys: KnownKeys = new Map(file.installation_keys.keys.map(importInstallationKey))
  learnKeys(keys, statements, file.audience)
  return keys
}

/** A key of `installation_keys`. Throws `ConfigError` for a JWK that is none. */
export function importInstallationKey(jwk: Jwk): [string, { alg: Algorithm; publicKey: KeyObject }] {
  const { kid, alg, key } = importPublicJwk(jwk)
  return [kid, { alg, publicKey: key }]
}

/** What to do for a key's file that isn't there. */
function namedBy(path: string): string {
  return `: ${path} names it; keep the files of a client together`
}

function beside(path: string, name: string): string {
  return resolve(dirname(path), name)
}

/** `next`: what to do if the file isn't there. */
async function readText(path: string, next = ''): Promise<string> {
  const bytes = await readFile(path).catch(({ code }: NodeJS.ErrnoException) => {
    throw new ConfigError(code === 'ENOENT' ? `${path} is not there${next}` : `${path} can't be read (${code})`)
  })
  return editedText(bytes, (wrong, next) => new ConfigError(`${path} ${wrong}. ${next}`))
}

function parseJson(path: string, text: string): unknown {
  try {
    const value: unknown = JSON.parse(text)
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value
  } catch {
    // The parser's message isn't used: it would quote the file.
  }
  throw new ConfigError(`${path} is not a JSON object`)
}
