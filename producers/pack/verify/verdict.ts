// What a check of a pack says, and the check that is made of several files: the signature.
import { readFile } from 'node:fs/promises'
import { type VerifyKey, verifyDetached } from '../../detached-signature.ts'
import { signaturePath } from '../../migrate/manifest.ts'
import type { Signer } from '../pack.ts'
import { signerFrom } from '../packed-batch.ts'

/** `absent`: there is no such file, or nothing to check. */
export type Verdict = 'holds' | 'fails' | 'absent'

export const said = (holds: boolean): Verdict => (holds ? 'holds' : 'fails')

/** Whether the signature beside the file is by one of `keys`. */
export async function isSigned(path: string, bytes: Buffer, keys: readonly VerifyKey[]): Promise<boolean> {
  const jws = await readFile(signaturePath(path), 'utf8').catch(() => '')
  return verifyDetached(bytes, jws.trim(), keys)
}

/** Those of `keys` that are the key named as the signer. */
export function keysOfSigner({ thumbprint }: Signer, keys: readonly VerifyKey[]): VerifyKey[] {
  return keys.filter(key => signerFrom(key).thumbprint === thumbprint)
}
