// Opens the way to the OpenID provider of the console, from its settings. The client's secret is in a file that its owner alone may
// read, as a key is.
import type { OpenIdProvider } from '../../producers/console/openid-provider/provider.ts'
import type { OpenIdSettings } from '../../producers/console/openid-provider/settings.ts'
import { systemClock } from '../../src/clock.ts'
import { type Config, ConfigError } from '../../src/config.ts'
import type { Lifetime } from '../../src/lifetime.ts'
import type { Logger } from '../../src/logger.ts'
import { openOutbound, readPrivateHosts } from '../../src/outbound.ts'
import { Secret } from '../../src/secret.ts'
import { readOwnerOnly } from '../../src/vault/kek/owner-only.ts'

interface Opened {
  config: Pick<Config, 'privateHosts'>
  lifetime: Pick<Lifetime, 'onClose'>
  log: Logger
}

const SECRET = 'TOKENMILL_OIDC_CLIENT_SECRET_FILE'
const SECRET_BYTES_MAX = 2_048
/** Sign-ins are few. */
const PROVIDER_CONNECTIONS = 4

/** The provider, which isn't asked yet: the console starts without it. Throws `ConfigError` if a setting is wrong. */
export async function openOpenId({ config, lifetime, log }: Opened, settings: OpenIdSettings): Promise<OpenIdProvider> {
  const { issuer, secretFile } = settings
  const { protocol, hostname, port } = new URL(issuer)
  if (protocol === 'http:' && !readPrivateHosts(config.privateHosts)(hostname, port || '80'))
    throw new ConfigError('TOKENMILL_OIDC_ISSUER: must be https, unless TOKENMILL_PRIVATE_HOSTS names its host')
  const read = await readOwnerOnly(secretFile, SECRET_BYTES_MAX, 'client secret').catch(error => {
    throw error instanceof ConfigError ? new ConfigError(`${SECRET}: ${error.message}`) : error
  })
  const text = read.toString('utf8').trimEnd()
  if (!/^[ -~]+$/.test(text)) throw new ConfigError(`${SECRET}: must hold one printable line`)
  const outbound = openOutbound({ privateHosts: config.privateHosts, connections: PROVIDER_CONNECTIONS })
  lifetime.onClose('OpenID provider', outbound.close)
  const { openProvider } = await import('../../producers/console/openid-provider/provider.ts')
  return openProvider(settings, { secret: new Secret(text), outbound, clock: systemClock, log })
}
