// A key-encryption key in AWS KMS. The key never leaves KMS: data keys go there, over TLS, to be wrapped and unwrapped.
import { ConfigError } from '../../config.ts'
import { assert, Fault } from '../../errors.ts'
import { bindPurpose, unbindPurpose } from '../kek/bound-plain.ts'
import type { KekOpener } from '../kek/openers.ts'
import type { KeyProvider } from '../kek/provider.ts'
import { type KmsLimits, openKmsClient } from './client.ts'
import { KmsError, kmsErrorOf } from './kms-error.ts'
import { canonicalKmsUri, type KmsKey, parseKmsUri } from './uri.ts'

export const kmsKeks: KekOpener = { open: uri => openKms(uri), canonical: canonicalKmsUri }

const LIMITS: KmsLimits = { connectMs: 2_000, answerMs: 5_000, attempts: 3, wholeMs: 15_000 }

/** KMS encrypts no more (https://docs.aws.amazon.com/kms/latest/APIReference/API_Encrypt.html). */
const PLAIN_BYTES_MAX = 4096
const PROBE = Buffer.from('tokenmill probe')
const PROBE_PURPOSE = 'kms-probe'

/**
 * Opens the key that the URI names, once it has opened what it wrapped. Throws `ConfigError` if a person has to change
 * something (the ARN, rights, credentials, the key's state), `Fault('kek_away')` if KMS can't be used now. `wrap` and
 * `unwrap` throw faults only.
 */
export async function openKms(uri: string, limits: Partial<KmsLimits> = {}): Promise<KeyProvider> {
  const key = parseKmsUri(uri)
  const all = { ...LIMITS, ...limits }
  try {
    const wrapped = await wrap(key, all, PROBE, PROBE_PURPOSE)
    if (!(await unwrap(key, all, wrapped, PROBE_PURPOSE)).equals(PROBE))
      throw new KmsError('config', 'the key does not open what it wrapped')
  } catch (error) {
    if (error instanceof KmsError && error.kind !== 'away') throw new ConfigError(`${key.name}: ${error.message}`)
    throw faultOf(error)
  }
  const ask = <T>(answer: Promise<T>) =>
    answer.catch((error: unknown) => {
      throw faultOf(error)
    })
  return {
    id: key.id,
    wrap: (plain, purpose) => ask(wrap(key, all, plain, purpose)),
    unwrap: (wrapped, purpose) => ask(unwrap(key, all, wrapped, purpose)),
  }
}

async function wrap({ arn, region }: KmsKey, limits: KmsLimits, plain: Buffer, purpose: string): Promise<Buffer> {
  const bound = bindPurpose(plain, purpose)
  assert(bound.length <= PLAIN_BYTES_MAX, 'KMS wraps keys, which are short')
  const { CiphertextBlob, KeyId } = await within(limits.wholeMs, async abortSignal => {
    const { client, sdk } = await openKmsClient(region, limits)
    const command = new sdk.EncryptCommand({ KeyId: arn, Plaintext: bound, EncryptionContext: contextOf(purpose) })
    return client.send(command, { abortSignal })
  }).finally(() => bound.fill(0))
  if (!CiphertextBlob || KeyId !== arn) throw new KmsError('away', 'KMS answered for another key')
  return Buffer.from(CiphertextBlob)
}

async function unwrap({ arn, region }: KmsKey, limits: KmsLimits, wrapped: Buffer, purpose: string): Promise<Buffer> {
  const { Plaintext } = await within(limits.wholeMs, async abortSignal => {
    const { client, sdk } = await openKmsClient(region, limits)
    // Without the key's ARN KMS would open the bytes of any key that these credentials may use.
    const asked = { KeyId: arn, CiphertextBlob: wrapped, EncryptionContext: contextOf(purpose) }
    return client.send(new sdk.DecryptCommand(asked), { abortSignal })
  })
  const plain =
    Plaintext && unbindPurpose(Buffer.from(Plaintext.buffer, Plaintext.byteOffset, Plaintext.length), purpose)
  Plaintext?.fill(0)
  if (!plain) throw new KmsError('bytes', 'the bytes were wrapped for another purpose')
  return plain
}

/**
 * The encryption context. KMS authenticates it, CloudTrail shows it, and a key policy can ask for it. It must not
 * change: stored bytes open only with the same context.
 */
function contextOf(purpose: string): Record<string, string> {
  return { 'tokenmill-purpose': purpose }
}

/** Ends an act that takes longer than `ms`, also one that still looks for credentials. Throws `KmsError`. */
async function within<T>(ms: number, act: (signal: AbortSignal) => Promise<T>): Promise<T> {
  const abort = new AbortController()
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new KmsError('away', `KMS did not answer within ${ms / 1000} s`))
    abort.abort()
  }, ms)
  try {
    return await Promise.race([act(abort.signal), late.promise])
  } catch (error) {
    throw kmsErrorOf(error)
  } finally {
    clearTimeout(timer)
  }
}

function faultOf(error: unknown): unknown {
  if (!(error instanceof KmsError)) return error
  return new Fault(error.kind === 'bytes' ? 'key_unavailable' : 'kek_away', error)
}
