// How the use of a key in AWS KMS fails, and what a person does about it. Texts name AWS's code and request id, which find
// the request in CloudTrail; they never quote AWS's own text or the request.
import { missingPackage } from '../../missing-package.ts'

/**
 * `config`: a person has to change something. `away`: KMS, or something on the way to it, doesn't work now. `bytes`: KMS
 * works, and the key can't open these bytes.
 */
export type KmsErrorKind = 'config' | 'away' | 'bytes'

export class KmsError extends Error {
  override name = 'KmsError'
  readonly kind: KmsErrorKind

  constructor(kind: KmsErrorKind, text: string) {
    super(text)
    this.kind = kind
  }
}

const CREDENTIALS =
  'AWS does not accept the credentials of this process: correct them (AWS_ACCESS_KEY_ID, AWS_PROFILE, or the role of the host or container)'

/** The codes after which a repeat is of no use until a person has done something. */
const CONFIG: Record<string, string> = {
  AccessDeniedException:
    'these credentials may not use the key: allow kms:Encrypt and kms:Decrypt in the key policy or an IAM policy, and compare the account in the ARN',
  NotFoundException: 'there is no such key: compare region, account and key id with the ARN that AWS shows',
  InvalidArnException: 'KMS does not accept the ARN: compare it with the one that AWS shows',
  ValidationException: 'KMS does not accept the request: compare the ARN with the one that AWS shows',
  DisabledException: 'the key is disabled: enable it in KMS',
  InvalidKeyUsageException:
    'the key is not for symmetric encryption: name a key of the spec SYMMETRIC_DEFAULT and the usage ENCRYPT_DECRYPT',
  UnrecognizedClientException: CREDENTIALS,
  InvalidClientTokenId: CREDENTIALS,
  InvalidSignatureException: CREDENTIALS,
  IncompleteSignature: CREDENTIALS,
  MissingAuthenticationTokenException: CREDENTIALS,
  OptInRequired: 'the account of these credentials is not signed up for KMS in that region',
}

/** Codes that a host also meets while its role gives no credentials yet, as after a power cut: they may end by themselves. */
const AWAY: Record<string, string> = {
  CredentialsProviderError:
    'this process has no AWS credentials now: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or give the host or container a role',
  ExpiredTokenException: 'the AWS credentials of this process have expired: renew them',
}

const BYTES = ['InvalidCiphertextException', 'IncorrectKeyException']

/** `error`: what the SDK threw. An unknown error counts as `away`, because it may end by itself. */
export function kmsErrorOf(error: unknown): KmsError {
  if (error instanceof KmsError) return error
  const missing = missingPackage(error)
  if (missing !== undefined) return new KmsError('config', missing)
  const code = codeOf(error)
  const where = [code, requestOf(error)].filter(part => part !== '').join(', ')
  if (BYTES.includes(code)) return new KmsError('bytes', `the key does not open these bytes (${where})`)
  const todo = code === 'KMSInvalidStateException' ? stateTodo(error) : CONFIG[code]
  if (todo !== undefined) return new KmsError('config', `${todo} (${where})`)
  return new KmsError('away', `${AWAY[code] ?? 'KMS can not be used now'} (${where})`)
}

/** Undefined for a state that ends by itself, or when a custom key store is connected again. */
function stateTodo(error: unknown): string | undefined {
  const text = error instanceof Error ? error.message : ''
  if (/pending (replica )?deletion/i.test(text))
    return 'the key is scheduled for deletion: cancel that at once (aws kms cancel-key-deletion) and enable the key, or every card is lost'
  if (/pending import/i.test(text)) return 'the key has no material: import the same material again'
  return undefined
}

/** An error of AWS has its code as its name, one of the network as `code`. */
function codeOf(error: unknown): string {
  if (!(error instanceof Error)) return 'no code'
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const name = error.name === 'Error' ? (code ?? 'no code') : error.name
  return /^[\w.]{1,60}$/.test(name) ? name : 'no code'
}

function requestOf(error: unknown): string {
  const about = error instanceof Error && '$metadata' in error ? error.$metadata : undefined
  const id = typeof about === 'object' && about !== null && 'requestId' in about ? String(about.requestId) : ''
  return /^[0-9a-f-]{36}$/.test(id) ? `request ${id}` : ''
}
