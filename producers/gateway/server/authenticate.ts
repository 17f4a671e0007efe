// Checks the credentials of a request: HTTP Basic (user id and API key) or a Bearer JWT. Whatever is wrong with them,
// the error body is the same, and an unknown user takes as long as a wrong API key. access.ts decides what the caller
// may do.
import { Secret } from '../../../src/secret.ts'
import type { Bearer } from '../../../src/vault/bearer.ts'
import type { Flawed } from '../../../src/vault/bearer-claims.ts'
import { type ApiKeyRing, apiKeyMatches } from '../../../src/vault/ring/api-key.ts'
import type { Caller } from '../app.ts'
import type { Directory, KnownUser, UserKey } from '../directory.ts'

/**
 * Checks credentials. Returns `Flawed` for a wrong Bearer token, undefined for other wrong or missing credentials.
 * Throws a `Fault` if they can't be checked now.
 */
export type Authenticate = (authorization: string | undefined) => Promise<Caller | Flawed | undefined>

export interface AuthenticateDeps {
  directory: Pick<Directory, 'user'>
  /** The keys that hash API keys. */
  apiKeys: ApiKeyRing
  bearer: Bearer
}

const BASIC_LENGTH_MAX = 8_192
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/
/** The id of no user. It is used in place of an unknown user, so that the check takes as long as for a known one. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

export function openAuthenticate({ directory, apiKeys, bearer }: AuthenticateDeps): Authenticate {
  async function basic(credentials: string): Promise<Caller | undefined> {
    const text = Buffer.from(credentials, 'base64').toString('utf8')
    const colon = text.indexOf(':')
    const name = text.slice(0, Math.max(0, colon)).toLowerCase()
    const userId = UUID.test(name) ? name : NOBODY
    const user = await directory.user(userId)
    const apiKey = new Secret(text.slice(colon + 1))
    const isKey = await apiKeyMatches(apiKeys, userId, apiKey, user?.apiKeyHash ?? null)
    const [entityId] = user?.client.entities ?? []
    if (!user || !isKey || entityId === undefined) return undefined
    return { client: user.client, userId, entityId, roles: user.client.roles }
  }
  async function jwt(token: string): Promise<Caller | Flawed> {
    const users = new Map<string, KnownUser | undefined>()
    const userOf = async (userId: string) => {
      if (!users.has(userId)) users.set(userId, await directory.user(userId))
      return users.get(userId)
    }
    const claims = await bearer.verify(token, async (userId, kid) => {
      const keys = (await userOf(userId))?.keys ?? []
      return kid === undefined ? onlyActive(keys) : keys.find(known => known.kid === kid && known.live)
    })
    if ('flaws' in claims) return claims
    const user = await userOf(claims.userId)
    if (!user) return { flaws: ['unaccepted'] }
    const roles = user.client.roles.filter(role => claims.roles.includes(role))
    const { userId, entityId } = claims
    const client = { ...user.client, entities: user.client.entities.filter(entity => entity === entityId) }
    return { client, userId, entityId, onlyEntity: entityId, roles }
  }
  return async authorization => {
    const [, scheme = '', credentials = ''] = /^(basic|bearer)(?: +(.*))?$/is.exec(authorization ?? '') ?? []
    switch (scheme.toLowerCase()) {
      case 'basic':
        return credentials.length <= BASIC_LENGTH_MAX && /^[!-~]+ *$/.test(credentials) ? basic(credentials) : undefined
      case 'bearer':
        return credentials === '' ? undefined : jwt(credentials)
      default:
        return undefined
    }
  }
}

/** The key of a token without a `kid`: the client's only active key, if there is exactly one. */
function onlyActive(keys: readonly UserKey[]): UserKey | undefined {
  const active = keys.filter(key => key.active)
  return active.length === 1 ? active[0] : undefined
}
