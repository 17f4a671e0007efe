// Clients, scopes and BIN ranges as a gateway process knows them: read from the store and cached. Clients and scopes
// are cached for 4 seconds, so that a revocation takes effect everywhere within ten; BIN ranges for a minute. It holds
// no card, and of keys the public halves and the hashes of API keys.
import type { KeyObject } from 'node:crypto'
import { cached } from '../../src/cache.ts'
import type { Clock } from '../../src/clock.ts'
import type { Algorithm } from '../../src/job/envelope/signature.ts'
import * as clientUsers from '../../src/store/access/client-users.ts'
import type { Client } from '../../src/store/access/clients.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Store } from '../../src/store/pool.ts'
import * as binRanges from '../../src/store/token/bin-ranges.ts'
import { type BinRange, BUILT_IN_RANGES } from '../../src/token/bin.ts'
import { importPublicJwk, mayVerify } from '../../src/vault/client-key.ts'
import {
  clientKeyText,
  clientText,
  type GrantKind,
  isGranted,
  type MacOfRow,
  scopeText,
} from '../../src/vault/ring/grants.ts'
import type { LiveRing } from '../../src/vault/ring/key-ring.ts'
import { makeAfresh, withReload } from '../../src/vault/ring/reload.ts'
import type { TellUngranted } from '../../src/vault/ring/ungranted.ts'

export interface KnownUser {
  client: Client
  apiKeyHash: clients.ApiKeyHash | null
  keys: readonly UserKey[]
}

export interface UserKey {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
  /** The key is neither retired nor revoked. */
  active: boolean
  /** Whether the key may verify signatures now; a retired key may until `validUntil`. */
  readonly live: boolean
}

export interface Directory {
  /** The user with this id (a lower-case UUID); undefined if no client that may call has this id. */
  user(userId: string): Promise<KnownUser | undefined>
  scope(tokenScope: string): Promise<Scope | undefined>
  binRange(id: number | null): Promise<BinRange | undefined>
}

const BELIEVED_MS = 4_000
/** An imported BIN table reaches every process within this time. */
const RANGES_MS = 60_000
const ENTRIES_MAX = 10_000

/** Whether tokenmill wrote the row; `text` is what its code covers. */
export type IsOurs = (kind: GrantKind, text: string, row: MacOfRow) => Promise<boolean>

/** By the codes of the rows: in a process that has the vault's keys. */
export function byCodes(ring: Pick<LiveRing, 'grantMacBy' | 'refresh' | 'isAfresh'>): IsOurs {
  return async (_kind, text, row) => {
    await makeAfresh(ring)
    return withReload(ring, async () => isGranted(ring, text, row))
  }
}

interface Opened {
  store: Store
  clock: Clock
  /** A row for which it returns false is absent. */
  isOurs: IsOurs
  /** Told of each such row, each time that it is read. */
  onUngranted: TellUngranted
}

export function openDirectory({ store, clock, isOurs, onUngranted }: Opened): Directory {
  const isProved = async (kind: GrantKind, id: string, text: string, row: MacOfRow) => {
    const ours = await isOurs(kind, text, row)
    if (!ours) onUngranted(kind, id)
    return ours
  }
  const lasting = (ms: number) => ({ max: ENTRIES_MAX, lifetime: { ms, clock } })
  const userOf = cached(async (userId): Promise<KnownUser | undefined> => {
    const found = await clientUsers.findByUser(store, userId)
    if (!found || found.client.system || found.client.revokedAt !== null) return undefined
    const { clientId } = found.client
    if (!(await isProved('client', clientId, clientText(found.client), found.client))) return undefined
    const all = (await clients.findClientKeys(store, clientId)).filter(key => mayVerify(key.publicJwk))
    const live = all.map(key => ({ key, known: userKeyOf(key, clock) })).filter(({ known }) => known.live)
    const proved = await Promise.all(
      live.map(({ key }) => isProved('client-key', `${clientId} ${key.kid}`, clientKeyText(key), key)),
    )
    return { ...found, keys: live.flatMap(({ known }, index) => (proved[index] ? [known] : [])) }
  }, lasting(BELIEVED_MS))
  const scopeOf = cached(async tokenScope => {
    const scope = await scopes.find(store, tokenScope)
    return scope && (await isProved('scope', tokenScope, scopeText(scope), scope)) ? scope : undefined
  }, lasting(BELIEVED_MS))
  const rangesOf = cached(async () => {
    const imported = await binRanges.findAll(store)
    return new Map([...BUILT_IN_RANGES, ...imported].map(range => [range.id, range]))
  }, lasting(RANGES_MS))
  return {
    user: userOf,
    scope: scopeOf,
    binRange: async id => (id === null ? undefined : (await rangesOf('all')).get(id)),
  }
}

function userKeyOf({ kid, alg, publicJwk, state, validUntil }: clients.ClientKey, clock: Clock): UserKey {
  const active = state === 'ACTIVE'
  return {
    kid,
    alg,
    publicKey: importPublicJwk(publicJwk).key,
    active,
    // A getter, because the key may expire while it is cached.
    get live() {
      return active || (state === 'RETIRED' && validUntil !== null && clock() < validUntil)
    },
  }
}
