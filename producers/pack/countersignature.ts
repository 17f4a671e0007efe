// The counterparty's OpenPGP signature over a pack, checked and kept beside it. The JSON of the pack isn't changed. The
// record holds key and signature, so that the signature can be checked again with the pack and the record alone.
import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { z } from 'zod'
import { ConfigError } from '../../src/config.ts'
import { NamedFile, nameFrom } from '../migrate/manifest.ts'
import { codeOf, FileError } from '../rows/file-error.ts'
import { canonicalText } from './canonical.ts'
import { Maker } from './pack.ts'

export const Countersignature = z.strictObject({
  countersignature: z.literal(1),
  pack: NamedFile,
  counterparty: z.strictObject({
    /** The fingerprint of the primary key, upper-case hex. */
    fingerprint: z.string().regex(/^([0-9A-F]{40}|[0-9A-F]{64})$/),
    user_ids: z.array(z.string()),
    /** Armored. */
    public_key: z.string(),
  }),
  /** Armored. */
  signature: z.string(),
  signed_at: z.iso.datetime(),
  checked_at: z.iso.datetime(),
  checked_by: Maker,
})
export type Countersignature = z.infer<typeof Countersignature>

export function countersignaturePath(pack: string): string {
  return `${pack.replace(/\.json$/, '')}.countersigned.json`
}

export const countersignatureText = (record: Countersignature) => canonicalText(Countersignature.parse(record))

export interface CountersignAsk {
  packPath: string
  packBytes: Buffer
  /** The path of the detached signature. */
  signature: string
  /** The path of the counterparty's public key. */
  counterparty: string
}

/** Throws a FileError if the key didn't sign this pack. */
export async function countersign(
  { packPath, packBytes, signature, counterparty }: CountersignAsk,
  { now, checkedBy }: { now: number; checkedBy: Maker },
): Promise<Countersignature> {
  const given = {
    signature: await read(signature, '--signature'),
    publicKey: await read(counterparty, '--counterparty'),
  }
  const { checkPgpSignature } = await import('../../src/vault/pgp/pgp-signature.ts')
  const found = await checkPgpSignature(packBytes, given).catch(error => {
    throw error instanceof ConfigError
      ? new FileError('usage', `${error.message}.`, 'Check the two names.', error)
      : error
  })
  if (!found) {
    const next = 'Ask which file and key were used; the bytes of the JSON must be signed as they are.'
    throw new FileError(
      'input',
      `${signature} is no valid signature over ${packPath} by the key in ${counterparty}.`,
      next,
    )
  }
  const { signer, signedAt } = found
  return {
    countersignature: 1,
    pack: {
      name: nameFrom(packPath, packPath),
      sha256: createHash('sha256').update(packBytes).digest('hex'),
      bytes: packBytes.length,
    },
    counterparty: { fingerprint: signer.fingerprint, user_ids: signer.userIds, public_key: signer.publicKey },
    signature: found.signature,
    signed_at: signedAt.toISOString(),
    checked_at: new Date(now).toISOString(),
    checked_by: checkedBy,
  }
}

/**
 * The record beside a pack; undefined if there is none or it can't be read. Throws if the file isn't a record as this
 * release writes it.
 */
export async function readCountersignature(
  packPath: string,
): Promise<{ record: Countersignature; bytes: Buffer } | undefined> {
  const path = countersignaturePath(packPath)
  const bytes = await readFile(path).catch(() => undefined)
  if (!bytes) return undefined
  try {
    return { record: Countersignature.parse(JSON.parse(bytes.toString('utf8'))), bytes }
  } catch (error) {
    throw new FileError(
      'input',
      `${path} is no record of a countersignature.`,
      'Run manifest pack --signature again.',
      error,
    )
  }
}

/** Throws a FileError if another key signed the pack before: one record keeps one signature. */
export async function checkSameSigner(packPath: string, { counterparty }: Countersignature): Promise<void> {
  const before = await readCountersignature(packPath)
  const fingerprint = before?.record.counterparty.fingerprint
  if (fingerprint === undefined || fingerprint === counterparty.fingerprint) return
  throw new FileError(
    'usage',
    `${packPath} was signed by the key ${fingerprint}.`,
    `Move ${countersignaturePath(packPath)} away first if another key shall take its place.`,
  )
}

/** Whether the key of the record signed these bytes. */
export async function isCountersigned(record: Countersignature, packBytes: Buffer): Promise<boolean> {
  const { counterparty, signature } = record
  const given = { signature: Buffer.from(signature), publicKey: Buffer.from(counterparty.public_key) }
  const { checkPgpSignature } = await import('../../src/vault/pgp/pgp-signature.ts')
  const found = await checkPgpSignature(packBytes, given).catch(() => undefined)
  return found?.signer.fingerprint === counterparty.fingerprint
}

async function read(path: string, option: string): Promise<Buffer> {
  return readFile(path).catch(error => {
    throw new FileError('usage', `${path} cannot be read (${codeOf(error)}).`, `Check the name after ${option}.`, error)
  })
}
