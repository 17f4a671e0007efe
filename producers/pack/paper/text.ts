// The words of a pack's PDF for members that may be absent, and for long values.
import type { Manifest } from '../../migrate/manifest.ts'
import type { PackedBatch } from '../pack.ts'

/** `2030-01-31 12:00:00` */
export const time = (iso: string): string => iso.slice(0, 19).replace('T', ' ')

const LONG = 1_500

export function commandOf({ command }: Manifest): string {
  if (!command) return 'none: a program began the run'
  const text = ['tokenmill', ...command.map(quoted)].join(' ')
  return text.length > LONG ? `${text.slice(0, LONG)}…` : text
}

function quoted(word: string): string {
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", `'\\''`)}'`
}

export function operatorOf({ operator }: Manifest): string {
  const { client_id: client, os_user: user } = operator
  return user === undefined ? `client ${client}` : `client ${client}, user ${user}`
}

export function profileOf({ options }: Manifest): string {
  const { profile, profile_sha256: digest } = options
  if (typeof profile !== 'string') return 'none'
  return typeof digest === 'string' ? `${profile}, SHA-256 ${digest}` : profile
}

export function pgpKeysOf({ pgp_keys: keys }: Manifest): string {
  if (keys === null) return 'none: the input was not encrypted'
  const { decryption, verification } = keys
  const signed = verification === undefined ? 'no signature was asked for' : `signed by ${verification}`
  return `opened by ${decryption}; ${signed}`
}

export function signerOf({ signer: { kid, thumbprint } }: PackedBatch): string {
  return kid === thumbprint ? thumbprint : `${thumbprint} (kid ${kid})`
}
