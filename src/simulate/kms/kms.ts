// A simulated AWS KMS for rehearsals: Encrypt and Decrypt of symmetric keys in AWS's own protocol (AWS JSON 1.1, signed
// requests, real error bodies). It keeps nothing secret: the material of a key is a digest of its ARN, so that a
// rehearsal can be stopped and continued, and so that nobody relies on it as on a KMS.
import { createCipheriv, createDecipheriv, createHash, randomBytes, randomUUID } from 'node:crypto'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { z } from 'zod'
import { CREDENTIALS, checkSignature } from './signature.ts'

/** An error that the simulator answers instead of doing what was requested. */
export interface Trouble {
  status: number
  /** AWS's code, such as `DisabledException`. */
  type: string
  message?: string
}

export interface KmsSimulator {
  url: string
  /** Settings for a process that uses it. */
  env: Record<'AWS_ENDPOINT_URL_KMS' | 'AWS_ACCESS_KEY_ID' | 'AWS_SECRET_ACCESS_KEY', string>
  /** The requests with valid signatures, oldest first. */
  seen: { operation: string; keyId: string; context: Record<string, string> }[]
  /** Each request gets this answer, until undefined is set; `silence`: it gets none. */
  setTrouble(trouble: Trouble | 'silence' | undefined): void
  close(): Promise<void>
}

/** Any key of this account exists in every region. */
export const ACCOUNT = '111122223333'

const Context = z.record(z.string(), z.string()).default({})
const Encrypt = z.object({ KeyId: z.string(), Plaintext: z.base64(), EncryptionContext: Context })
const Decrypt = z.object({ KeyId: z.string(), CiphertextBlob: z.base64(), EncryptionContext: Context })

const PLAIN_BYTES_MAX = 4096
const NAME_BYTES = 16
const NONCE_BYTES = 12
const TAG_BYTES = 16
const ALGORITHM = { EncryptionAlgorithm: 'SYMMETRIC_DEFAULT' }

export async function startKmsSimulator({ host = '127.0.0.1', port = 0 } = {}): Promise<KmsSimulator> {
  let trouble: Trouble | 'silence' | undefined
  const seen: KmsSimulator['seen'] = []

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await buffer(request)
    const reply = (status: number, value: unknown) => {
      response.writeHead(status, { 'content-type': 'application/x-amz-json-1.1', 'x-amzn-requestid': randomUUID() })
      response.end(JSON.stringify(value))
    }
    if (trouble === 'silence') return
    try {
      if (trouble) throw new Refused(trouble.type, trouble.message, trouble.status)
      const { method = '', headers } = request
      const signed = checkSignature({ method, headers, body }, Date.now())
      if ('code' in signed) throw new Refused(signed.code)
      const operation = String(headers['x-amz-target'])
      const asked: unknown = JSON.parse(body.toString())
      const note = (keyId: string, context: Record<string, string>) => seen.push({ operation, keyId, context })
      reply(200, act(operation, asked, signed.region, note))
    } catch (error) {
      if (!(error instanceof Refused)) return reply(400, { __type: 'ValidationException' })
      const { type, message, status } = error
      reply(status, message === '' ? { __type: type } : { __type: type, message })
    }
  }

  const server = createServer((request, response) => void answer(request, response).catch(() => response.destroy()))
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(port, host, resolve)
  })
  const { port: bound } = server.address() as AddressInfo
  const url = `http://${host.includes(':') ? `[${host}]` : host}:${bound}`
  return {
    url,
    env: {
      AWS_ENDPOINT_URL_KMS: url,
      AWS_ACCESS_KEY_ID: CREDENTIALS.id,
      AWS_SECRET_ACCESS_KEY: CREDENTIALS.secret,
    },
    seen,
    setTrouble: wanted => {
      trouble = wanted
    },
    close: () =>
      new Promise(resolve => {
        server.close(() => resolve())
        server.closeAllConnections()
      }),
  }
}

class Refused extends Error {
  readonly type: string
  readonly status: number

  constructor(type: string, message = '', status = 400) {
    super(message)
    this.type = type
    this.status = status
  }
}

type Note = (keyId: string, context: Record<string, string>) => void

function act(operation: string, asked: unknown, region: string, note: Note) {
  if (operation === 'TrentService.Encrypt') {
    const { KeyId, Plaintext, EncryptionContext } = Encrypt.parse(asked)
    note(KeyId, EncryptionContext)
    const name = keyOf(KeyId, region)
    const plain = Buffer.from(Plaintext, 'base64')
    if (plain.length === 0 || plain.length > PLAIN_BYTES_MAX) throw new Refused('ValidationException')
    return { CiphertextBlob: seal(name, plain, EncryptionContext).toString('base64'), KeyId, ...ALGORITHM }
  }
  if (operation !== 'TrentService.Decrypt') throw new Refused('UnknownOperationException')
  const { KeyId, CiphertextBlob, EncryptionContext } = Decrypt.parse(asked)
  note(KeyId, EncryptionContext)
  const name = keyOf(KeyId, region)
  const plain = open(name, Buffer.from(CiphertextBlob, 'base64'), EncryptionContext)
  return { Plaintext: plain.toString('base64'), KeyId, ...ALGORITHM }
}

/** The name from which the material of a key is made; replicas of a multi-Region key have one name. */
function keyOf(arn: string, region: string): string {
  const [, partition, place, account, id = ''] =
    /^arn:(aws[a-z-]*):kms:([a-z0-9-]+):(\d{12}):key\/(.+)$/.exec(arn) ?? []
  if (place !== region) throw new Refused('NotFoundException', 'Invalid arn')
  if (account !== ACCOUNT)
    throw new Refused('AccessDeniedException', 'The ciphertext refers to a customer master key that does not exist')
  return [partition, id.startsWith('mrk-') ? '' : place, account, id].join(' ')
}

function seal(name: string, plain: Buffer, context: Record<string, string>): Buffer {
  const nonce = randomBytes(NONCE_BYTES)
  const cipher = createCipheriv('aes-256-gcm', materialOf(name), nonce).setAAD(aadOf(context))
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()])
  return Buffer.concat([digestOf(name).subarray(0, NAME_BYTES), nonce, sealed, cipher.getAuthTag()])
}

function open(name: string, blob: Buffer, context: Record<string, string>): Buffer {
  if (blob.length < NAME_BYTES + NONCE_BYTES + TAG_BYTES) throw new Refused('InvalidCiphertextException')
  if (!blob.subarray(0, NAME_BYTES).equals(digestOf(name).subarray(0, NAME_BYTES)))
    throw new Refused(
      'IncorrectKeyException',
      'The key ID in the request does not identify a CMK that can perform this operation.',
    )
  const start = NAME_BYTES + NONCE_BYTES
  const decipher = createDecipheriv('aes-256-gcm', materialOf(name), blob.subarray(NAME_BYTES, start))
  decipher.setAAD(aadOf(context)).setAuthTag(blob.subarray(-TAG_BYTES))
  try {
    return Buffer.concat([decipher.update(blob.subarray(start, -TAG_BYTES)), decipher.final()])
  } catch {
    throw new Refused('InvalidCiphertextException')
  }
}

const digestOf = (text: string) => createHash('sha256').update(text).digest()
const materialOf = (name: string) => digestOf(`material of ${name}`)

function aadOf(context: Record<string, string>): Buffer {
  return Buffer.from(JSON.stringify(Object.entries(context).sort(([a], [b]) => (a < b ? -1 : 1))))
}
