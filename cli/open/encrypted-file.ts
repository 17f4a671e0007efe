// How a command opens the file that it reads: by the options `--decrypt-key` and `--verify-key`, and the passphrase of the
// environment.
import { Secret } from '../../src/secret.ts'
import type { Terminal } from '../terminal.ts'

export interface DecryptOptions {
  decryptKey?: string | undefined
  verifyKey?: string | undefined
}

export function decryption({ env }: Pick<Terminal, 'env'>, { decryptKey, verifyKey }: DecryptOptions) {
  const passphrase = env['TOKENMILL_PGP_PASSPHRASE']
  return {
    decryptKeyFile: decryptKey,
    passphrase: passphrase === undefined ? undefined : new Secret(passphrase),
    verifyKeyFile: verifyKey,
  }
}
