// The file of a PIN. It is read at each login, so that a PIN that was changed needs no restart.
import { ConfigError } from '../../config.ts'
import { readOwnerOnly } from '../kek/owner-only.ts'
import { TokenError } from './token-error.ts'

const BYTES_MAX = 1024

/** The first line. Throws `TokenError` if the file is missing, or readable by others than its owner. */
export async function readPin(path: string): Promise<string> {
  const bytes = await readOwnerOnly(path, BYTES_MAX, 'PIN of the token').catch((error: unknown) => {
    throw error instanceof ConfigError ? new TokenError('config', error.message) : error
  })
  const pin = /^[^\r\n]+/.exec(bytes.toString('utf8'))?.[0]
  bytes.fill(0)
  if (pin === undefined) throw new TokenError('config', `${path} holds no PIN in its first line`)
  return pin
}
