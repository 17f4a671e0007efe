// What a gateway process knows of clients, scopes and BIN ranges: read from the store and believed for a few seconds,
// so that a revocation holds everywhere within ten. It sees no card and no key but public ones.
import type { KeyObject } from 'node:crypto'
import type { Clock } from '../../src/clock.ts'
import type { Algorithm } from '../../src/job/envelope/signature.ts'
import type { Client } from '../../src/store/access/clients.ts'
import * as clients from '../../src/store/access/clients.ts'
import type { Scope } from '../../src/store/access/scopes.ts'
import * as scopes from '../../src/store/access/scopes.ts'
import type { Store } from '../../src/store/pool.ts'
import * as binRanges from '../../src/store/token/bin-ranges.ts'
import { type BinRange, BUILT_IN_RANGES } from '../../src/token/bin.ts'
import { importPublicJwk } from '../../src/vault/client-key.ts'

export interface KnownUser {
  client: Client
  apiKeyHash: Buffer | null
  keys: readonly UserKey[]
}

export interface UserKey {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
  /** At this moment. */
  readonly live: boolean
}

export interface Directory {
  /** Of a user id (UUID, lower case); undefined where no client that may call has it. */
  user(userId: string): Promise<KnownUser | undefined>
  scope(tokenScope: string): Promise<Scope | undefined>
  binRange(id: number | null): Promise<BinRange | undefined>
}

const BELIEVED_MS = 4_000
/** An imported BIN table is known to every process after at most this. */
const RANGES_MS = 60_000
const ENTRIES_MAX = 10_000

export function openDirectory(store: Store, clock: Clock): Directory {
  const believe = <T>(load: (key: string) => Promise<T>, ms = BELIEVED_MS) => remember(load, ms, clock)
  const userOf = believe(async (userId): Promise<KnownUser | undefined> => {
    const found = await clients.findByUser(store, userId)
    if (!found || found.client.system || found.client.revokedAt !== null) return undefined
    const keys = await clients.findClientKeys(store, found.client.clientId)
    return {
      ...found,
      keys: keys.map(key => ({
        kid: key.kid,
        alg: key.alg,
        publicKey: importPublicJwk(key.publicJwk).key,
        // Its end may come while it is believed.
        get live() {
          return (
            key.state === 'ACTIVE' || (key.state === 'RETIRED' && key.validUntil !== null && clock() < key.validUntil)
          )
        },
      })),
    }
  })
  const scopeOf = believe(tokenScope => scopes.find(store, tokenScope))
  const rangesOf = believe(async () => {
    const imported = await binRanges.findAll(store)
    return new Map([...BUILT_IN_RANGES, ...imported].map(range => [range.id, range]))
  }, RANGES_MS)
  return {
    user: userOf,
    scope: scopeOf,
    binRange: async id => (id === null ? undefined : (await rangesOf('all')).get(id)),
  }
}

/** `load`, asked at most once every `ms` per key; callers at the same moment share one question. */
export function remember<T>(load: (key: string) => Promise<T>, ms: number, clock: Clock): (key: string) => Promise<T> {
  const known = new Map<string, { value: Promise<T>; at: number }>()
  return key => {
    const entry = known.get(key)
    if (entry && clock() - entry.at < ms) return entry.value
    // Where it was known it becomes the youngest.
    known.delete(key)
    const [oldest] = known.keys()
    if (known.size >= ENTRIES_MAX && oldest !== undefined) known.delete(oldest)
    const value = load(key)
    known.set(key, { value, at: clock() })
    value.catch(() => known.delete(key))
    return value
  }
}
