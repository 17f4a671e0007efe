// The block of a batch: a chunk's records in one JWE. Its protected header names the sender and the job, so that a
// stolen block is useless elsewhere. The records aren't parsed here.
import { hash } from 'node:crypto'
import { assert, type Refusal, refuse } from '../errors.ts'
import type { CaptureKey } from './capture.ts'
import type { PublicCaptureKey } from './encrypt.ts'
import { openJwe, sealJwe } from './jwe.ts'
import { JWE_ALG } from './jwe-key.ts'

export const BLOCK_BYTES_MAX = 4 * 1024 * 1024

/** The envelope that the block belongs to. */
interface BlockBinding {
  iss: string
  jti: string
}

/** `lines`: NDJSON. `to` is a JWE key: an OpenPGP one breaks a law, since the caller chooses it. */
export async function sealBlock(
  lines: string | Buffer,
  to: PublicCaptureKey,
  { iss, jti }: BlockBinding,
): Promise<string> {
  assert(to.type !== 'pgp', 'a block is sealed to a JWE key')
  const block = sealJwe(Buffer.from(lines), to.publicKey, { kid: to.alias, iss, jti })
  assert(block.length <= BLOCK_BYTES_MAX, 'a block has at most 4 MiB')
  return block
}

/** The NDJSON; every failure, also another envelope's `iss` or `jti`, is the same refusal. */
export async function openBlock(jwe: string, key: CaptureKey, { iss, jti }: BlockBinding): Promise<Buffer | Refusal> {
  const refusal = refuse('block_undecryptable', 'body.request.block')
  if (key.type === 'pgp') return refusal
  const opened = openJwe(jwe, key.privateKey, JWE_ALG[key.type], BLOCK_BYTES_MAX)
  if (!opened) return refusal
  const { header, plain } = opened
  return header['iss'] === iss && header['jti'] === jti && header['kid'] === key.alias ? plain : refusal
}

/** SHA-256 of the JWE's text, lower-case hex: `block.sha256` of the request. */
export function blockDigest(jwe: string): string {
  return hash('sha256', jwe, 'hex')
}
