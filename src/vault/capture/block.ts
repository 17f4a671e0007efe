// The block of a batch: the records of a chunk in one JWE. Its protected header names sender and job, so a stolen block
// can't be used for another job. The records aren't parsed here.
import { hash } from 'node:crypto'
import { assert, type Refusal, refuse } from '../../errors.ts'
import type { BlockForm } from '../../job/record-columns.ts'
import { jweHeaderOf, openJwe, sealJwe } from '../jwe.ts'
import { JWE_ALG } from '../jwe-key.ts'
import type { CaptureKey } from './capture-key.ts'
import type { PublicCaptureKey } from './encrypt.ts'

export const BLOCK_BYTES_MAX = 4 * 1024 * 1024

/** The envelope to which the block belongs. */
interface BlockBinding {
  iss: string
  jti: string
}

/**
 * Encrypts a block. `lines`: the text of the block, in the form `form`. Throws if `to` is an OpenPGP key: blocks are
 * encrypted to JWE keys only.
 */
export async function sealBlock(
  lines: string | Buffer,
  to: PublicCaptureKey,
  { iss, jti }: BlockBinding,
  form: BlockForm = 'rows',
): Promise<string> {
  assert(to.type !== 'pgp', 'a block is sealed to a JWE key')
  const told = form === 'rows' ? {} : { form }
  const block = sealJwe(Buffer.from(lines), to.publicKey, { kid: to.kid ?? to.alias, iss, jti, ...told })
  assert(block.length <= BLOCK_BYTES_MAX, 'a block has at most 4 MiB')
  return block
}

/**
 * Decrypts a block to its text. Every failure gives the same refusal, also a block for the `iss` or `jti` of another
 * envelope.
 */
export async function openBlock(jwe: string, key: CaptureKey, { iss, jti }: BlockBinding): Promise<Buffer | Refusal> {
  const refusal = refuse('block_undecryptable', 'body.request.block')
  if (key.type === 'pgp') return refusal
  const opened = openJwe(jwe, key.privateKey, JWE_ALG[key.type], BLOCK_BYTES_MAX)
  if (!opened) return refusal
  const { header, plain } = opened
  const isForKey = header['kid'] === key.alias || header['kid'] === key.kid
  return header['iss'] === iss && header['jti'] === jti && isForKey ? plain : refusal
}

/**
 * The form that the protected header of a decrypted block names; 'rows' if it names none, undefined if this release
 * doesn't know the form.
 */
export function blockFormOf(jwe: string): BlockForm | undefined {
  const form = jweHeaderOf(jwe)?.['form'] ?? 'rows'
  return form === 'rows' || form === 'columns' ? form : undefined
}

/** SHA-256 of the JWE's text, lower-case hex: `block.sha256` of the request. */
export function blockDigest(jwe: string): string {
  return hash('sha256', jwe, 'hex')
}
