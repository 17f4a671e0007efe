// Reads the file that TOKENMILL_SCHEME_FILE names: which network makes scheme tokens, which providers make third-party
// tokens, and their keys. The whole file is checked before anything is opened; a mistake ends the process with one line
// and exit code 78.
import { readFileSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { z } from 'zod'
import { ConfigError } from '../config.ts'
import { editedText } from '../edited-text.ts'
import { Secret } from '../secret.ts'
import { type MastercardKeys, readCertificate, readRsaKey } from './mastercard.ts'
import { ThirdPartyFormat } from './third-party-format.ts'

const baseUrl = z
  .url({ protocol: /^https?$/ })
  .max(512)
  .refine(url => !/[?#]|\/$/.test(url), 'must have no query, no fragment and no slash at its end')
const path = z.string().min(1).max(1024)
const uuid = z.string().regex(/^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/, 'must be a UUID in lower case')
const name = z.string().regex(/^[A-Z0-9_]{1,32}$/, 'must be a name of A-Z, 0-9 and _')
const timeoutMs = z.number().int().min(100).max(60_000).default(10_000)
const connections = z.number().int().min(2).max(512).default(64)
const ratePerSecond = z.number().min(0.1).max(10_000)

const Mdes = z.strictObject({
  baseUrl,
  consumerKey: z.string().regex(/^[!-~]{1,256}$/, 'must be 1 to 256 printable characters'),
  signingKeyFile: path,
  encryptionCertFile: path,
  decryptionKeyFile: path,
  notificationSecretFile: path.optional(),
  tokenRequestorId: z.string().regex(/^\d{11}$/, 'must be 11 digits'),
  ratePerSecond,
  timeoutMs,
  connections,
  /** MDES tells this requestor the numbers of its tokens. */
  tokenNumbers: z.boolean().default(true),
  brands: z.array(name).min(1).max(16).default(['MASTERCARD', 'MAESTRO']),
})

const ThirdParty = z.strictObject({
  type: name,
  /** The contract serves this entity's requests that name no contract. */
  entityId: uuid.optional(),
  baseUrl,
  authorization: z
    .discriminatedUnion('scheme', [
      z.strictObject({ scheme: z.literal('bearer'), tokenFile: path }),
      z.strictObject({ scheme: z.literal('basic'), user: z.string().regex(/^[^:]{1,128}$/), passwordFile: path }),
      z.strictObject({ scheme: z.literal('header'), name: z.string().regex(/^[A-Za-z0-9-]{1,64}$/), valueFile: path }),
    ])
    .optional(),
  ratePerSecond: ratePerSecond.default(50),
  timeoutMs,
  connections: connections.default(16),
  format: ThirdPartyFormat.prefault({}),
})

const SchemeFile = z.strictObject({ mdes: Mdes.optional(), thirdParties: z.record(uuid, ThirdParty).default({}) })

export interface MdesSettings
  extends Omit<
    z.infer<typeof Mdes>,
    'signingKeyFile' | 'encryptionCertFile' | 'decryptionKeyFile' | 'notificationSecretFile'
  > {
  keys: MastercardKeys
  notificationSecret: Secret | undefined
}

export interface ThirdPartySettings extends Omit<z.infer<typeof ThirdParty>, 'authorization'> {
  contract: string
  /** The header that carries the credentials, and its value. */
  credentials: { header: string; value: Secret } | undefined
}

export interface SchemeSettings {
  mdes: MdesSettings | undefined
  thirdParties: ThirdPartySettings[]
}

/** Reads the file and the files that it names, whose paths are relative to its folder. Throws `ConfigError`. */
export function readSchemeFile(file: string): SchemeSettings {
  const parsed = SchemeFile.safeParse(parse(file))
  if (!parsed.success) {
    const issue = parsed.error.issues[0]
    throw wrong(issue?.path.join('.') ?? '', issue?.message ?? 'is wrong')
  }
  const read = (field: string, name: string) => readSecret(resolve(dirname(file), name), field)
  const { mdes, thirdParties } = parsed.data
  return {
    mdes: mdes && readMdes(mdes, read),
    thirdParties: Object.entries(thirdParties).map(([contract, { authorization, ...rest }]) => ({
      contract,
      ...rest,
      credentials: authorization && readCredentials(`thirdParties.${contract}`, authorization, read),
    })),
  }
}

type Read = (field: string, name: string) => string

function readMdes(mdes: z.infer<typeof Mdes>, read: Read): MdesSettings {
  const { signingKeyFile, encryptionCertFile, decryptionKeyFile, notificationSecretFile, ...rest } = mdes
  const certificate = read('mdes.encryptionCertFile', encryptionCertFile)
  understood('mdes.encryptionCertFile', 'is not a PEM certificate', () => readCertificate(certificate))
  const key = (field: string, name: string) =>
    understood(field, 'is not an RSA private key in PEM, without a passphrase', () => readRsaKey(read(field, name)))
  return {
    ...rest,
    keys: {
      consumerKey: mdes.consumerKey,
      signingKey: key('mdes.signingKeyFile', signingKeyFile),
      encryptionCertificate: certificate,
      decryptionKey: key('mdes.decryptionKeyFile', decryptionKeyFile),
    },
    notificationSecret:
      notificationSecretFile === undefined
        ? undefined
        : readSharedSecret('mdes.notificationSecretFile', read('mdes.notificationSecretFile', notificationSecretFile)),
  }
}

const SHARED_SECRET = /^[!-~]{16,512}$/

function readSharedSecret(field: string, text: string): Secret {
  if (!SHARED_SECRET.test(text)) throw wrong(field, 'must hold 16 to 512 printable characters')
  return new Secret(text)
}

function readCredentials(
  at: string,
  authorization: NonNullable<z.infer<typeof ThirdParty>['authorization']>,
  read: Read,
): { header: string; value: Secret } {
  const secret = (field: string, name: string) => {
    const text = read(`${at}.authorization.${field}`, name)
    if (!/^[ -~]{1,2048}$/.test(text)) throw wrong(`${at}.authorization.${field}`, 'must hold one printable line')
    return text
  }
  if (authorization.scheme === 'bearer')
    return { header: 'authorization', value: new Secret(`Bearer ${secret('tokenFile', authorization.tokenFile)}`) }
  if (authorization.scheme === 'header')
    return { header: authorization.name.toLowerCase(), value: new Secret(secret('valueFile', authorization.valueFile)) }
  const pair = `${authorization.user}:${secret('passwordFile', authorization.passwordFile)}`
  return { header: 'authorization', value: new Secret(`Basic ${Buffer.from(pair).toString('base64')}`) }
}

function parse(file: string): unknown {
  try {
    const fail = (wrong: string, next: string) => new ConfigError(`TOKENMILL_SCHEME_FILE: ${wrong}. ${next}`)
    return JSON.parse(editedText(readFileSync(file), fail)) as unknown
  } catch (error) {
    if (error instanceof ConfigError) throw error
    const { code } = error as NodeJS.ErrnoException
    throw new ConfigError(`TOKENMILL_SCHEME_FILE: ${code === undefined ? 'is not JSON' : `can't be read (${code})`}`)
  }
}

/** Reads a secret without the line break that editors leave at the end of a file. */
function readSecret(file: string, field: string): string {
  try {
    return editedText(readFileSync(file), what => wrong(field, what)).trimEnd()
  } catch (error) {
    if (error instanceof ConfigError) throw error
    throw wrong(field, `can't be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

function understood<T>(field: string, what: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    // The error isn't passed on: Node's message could quote the key.
    throw error instanceof ConfigError ? error : wrong(field, what)
  }
}

function wrong(field: string, what: string): ConfigError {
  return new ConfigError(`TOKENMILL_SCHEME_FILE: ${field === '' ? '' : `${field}: `}${what}`)
}
