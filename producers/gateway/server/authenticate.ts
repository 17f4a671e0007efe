// Credentials of a request: HTTP Basic (user id and API key) or a Bearer JWT. Whatever is wrong with them, the answer is
// the same, and so is the work done for it. What the caller may do is asked later.
import type { KeyObject } from 'node:crypto'
import { Secret } from '../../../src/secret.ts'
import { apiKeyMatches } from '../../../src/vault/api-key.ts'
import type { Bearer } from '../../../src/vault/bearer.ts'
import type { Caller } from '../deps.ts'
import type { Directory, KnownUser } from '../directory.ts'

/** Undefined: no valid credentials. Throws a `Fault` where that can't be known now. */
export type Authenticate = (authorization: string | undefined) => Promise<Caller | undefined>

export interface AuthenticateDeps {
  directory: Pick<Directory, 'user'>
  apiKeyKey: KeyObject
  bearer: Bearer
}

const AUTHORIZATION_LENGTH_MAX = 8_192
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/
/** Nobody's: what an unknown user is asked for, so that it takes as long as a known one's. */
const NOBODY = '00000000-0000-0000-0000-000000000000'

export function openAuthenticate({ directory, apiKeyKey, bearer }: AuthenticateDeps): Authenticate {
  async function basic(credentials: string): Promise<Caller | undefined> {
    const text = Buffer.from(credentials, 'base64').toString('utf8')
    const colon = text.indexOf(':')
    const name = text.slice(0, Math.max(0, colon)).toLowerCase()
    const userId = UUID.test(name) ? name : NOBODY
    const user = await directory.user(userId)
    const isKey = apiKeyMatches(apiKeyKey, userId, new Secret(text.slice(colon + 1)), user?.apiKeyHash ?? null)
    const [entityId] = user?.client.entities ?? []
    if (!user || !isKey || entityId === undefined) return undefined
    return { client: user.client, userId, entityId, roles: user.client.roles }
  }
  async function jwt(token: string): Promise<Caller | undefined> {
    const users = new Map<string, KnownUser | undefined>()
    const userOf = async (userId: string) => {
      if (!users.has(userId)) users.set(userId, await directory.user(userId))
      return users.get(userId)
    }
    const claims = await bearer.verify(token, async (userId, kid) => {
      const key = (await userOf(userId))?.keys.find(known => known.kid === kid)
      return key?.live ? key : undefined
    })
    const user = claims && (await userOf(claims.userId))
    if (!claims || !user) return undefined
    const roles = user.client.roles.filter(role => claims.roles.includes(role))
    return { client: user.client, userId: claims.userId, entityId: claims.entityId, roles }
  }
  return async authorization => {
    if (authorization === undefined || authorization.length > AUTHORIZATION_LENGTH_MAX) return undefined
    const [, scheme = '', credentials = ''] = /^(basic|bearer) +([!-~]+) *$/i.exec(authorization) ?? []
    switch (scheme.toLowerCase()) {
      case 'basic':
        return basic(credentials)
      case 'bearer':
        return jwt(credentials)
      default:
        return undefined
    }
  }
}
