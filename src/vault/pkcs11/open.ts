// A key-encryption key in a PKCS#11 token, such as an HSM. The key never leaves the token: data keys go there to be
// wrapped and unwrapped.
import { ConfigError } from '../../config.ts'
import { Fault } from '../../errors.ts'
import type { KekOpener } from '../kek/openers.ts'
import type { KeyProvider } from '../kek/provider.ts'
import { openTokenClient, type TokenClient, type TokenLimits } from './token-client.ts'
import { TokenError } from './token-error.ts'
import type { TokenAct } from './token-message.ts'
import { parseTokenUri } from './uri.ts'

/** A token's URI is taken as it is written. */
export const pkcs11Keks: KekOpener = { open: uri => openPkcs11(uri), canonical: uri => uri }

const LIMITS: TokenLimits = { openMs: 30_000, answerMs: 30_000, idleMs: 10_000, awayMs: 1_000 }

/**
 * One client for each URI, so that a URI that is opened again and again doesn't try a refused PIN again and again until
 * the token locks it.
 */
const clients = new Map<string, TokenClient>()

/**
 * Opens the key that the URI names. Throws `ConfigError` if a person has to change something (the URI, the PIN, the
 * key's rights, the build), `Fault('kek_away')` if the token can't be reached now. The same for `wrap` and `unwrap`,
 * which throw faults only.
 */
export async function openPkcs11(uri: string, limits: Partial<TokenLimits> = {}): Promise<KeyProvider> {
  const key = parseTokenUri(uri)
  const name = JSON.stringify([uri, limits])
  const client = clients.get(name) ?? openTokenClient(key, { ...LIMITS, ...limits })
  clients.set(name, client)
  const id = await client.id().catch((error: unknown) => {
    if (error instanceof TokenError && (error.kind === 'config' || error.kind === 'pin'))
      throw new ConfigError(`${key.name}: ${error.message}`)
    throw faultOf(error)
  })
  const ask = (act: TokenAct) =>
    client.ask(act).catch((error: unknown) => {
      throw faultOf(error)
    })
  return {
    id,
    wrap: (bytes, purpose) => ask({ act: 'wrap', bytes, purpose }),
    unwrap: (bytes, purpose) => ask({ act: 'unwrap', bytes, purpose }),
  }
}

function faultOf(error: unknown): Fault {
  const isBytes = error instanceof TokenError && error.kind === 'bytes'
  return new Fault(isBytes ? 'key_unavailable' : 'kek_away', error)
}
