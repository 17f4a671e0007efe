// The URI that names a key in AWS KMS: its ARN, which says partition, region, account and key. It names no alias, because
// an alias can be moved to another key, and no credentials: those come from AWS's usual settings.
import { createHash } from 'node:crypto'
import { ConfigError } from '../../config.ts'

export interface KmsKey {
  /** What error texts call the key. */
  name: string
  arn: string
  region: string
  /**
   * The id of the key-encryption key: a digest of what names the key for ever. A multi-Region key has one id in every
   * Region, because each of its replicas opens what another one wrapped.
   */
  id: string
}

const URI = /^aws-kms:(?:\/\/)?(.*)$/is
const KEY =
  /^arn:(aws[a-z-]*):kms:([a-z]{2}[a-z0-9-]*-\d+):(\d{12}):key\/(mrk-[0-9a-f]{32}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/
const EXAMPLE = 'aws-kms://arn:aws:kms:REGION:ACCOUNT:key/KEY_ID (docs/keys.md)'

/** Throws `ConfigError`. */
export function parseKmsUri(uri: string): KmsKey {
  const arn = URI.exec(uri)?.[1] ?? ''
  if (/:alias\//.test(arn))
    throw refused('it names an alias, which can be moved to another key that opens nothing: name the key by its ARN')
  const [, partition, region, account, keyId] = KEY.exec(arn) ?? []
  if (region === undefined || keyId === undefined) throw refused('it is not the ARN of a key')
  const place = keyId.startsWith('mrk-') ? '' : region
  const digest = createHash('sha256').update(`tokenmill kek id aws-kms ${partition} ${place} ${account} ${keyId}`)
  return { name: `aws-kms://${arn}`, arn, region, id: `kek-${digest.digest('hex').slice(0, 16)}` }
}

/** The same URI for both ways to write it. */
export function canonicalKmsUri(uri: string): string {
  return `aws-kms://${URI.exec(uri)?.[1] ?? ''}`
}

function refused(why: string): ConfigError {
  return new ConfigError(`an aws-kms: URI can not be used: ${why}; write ${EXAMPLE}`)
}
