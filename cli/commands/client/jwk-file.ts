// Reads a client's public key from a JWK file and checks it as the vault will. An error is reported like a wrong
// argument, with the file's name.

import { ConfigError } from '../../../src/config.ts'
import { importRegisteredJwk, Jwk } from '../../../src/vault/client-key.ts'
import { EXIT, Stop } from '../../exit.ts'
import { readArgumentFile } from '../../open/key-files.ts'

/** The JWK in the file. Throws `Stop` (64) for a key that can't be registered. */
export async function readJwkFile(path: string): Promise<Jwk> {
  const text = await readArgumentFile(path)
  const jwk = parse(text)
  if (!jwk) throw new Stop(`${path} is not a JWK`, EXIT.usage)
  try {
    importRegisteredJwk(jwk)
    return jwk
  } catch (error) {
    if (error instanceof ConfigError) throw new Stop(`${path}: ${error.message}`, EXIT.usage)
    throw error
  }
}

function parse(text: string): Jwk | undefined {
  try {
    return Jwk.safeParse(JSON.parse(text)).data
  } catch {
    return undefined
  }
}
