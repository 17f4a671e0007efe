// Clients, scopes, capture keys and BIN ranges, as a worker process knows them: read from the store and cached for a
// few seconds, so that a revocation takes effect everywhere within ten.
import type { KeyObject } from 'node:crypto'
import { cached } from '../src/cache.ts'
import type { Clock } from '../src/clock.ts'
import type { Algorithm } from '../src/job/envelope/signature.ts'
import type { Queues } from '../src/queue/engine.ts'
import * as captureKeys from '../src/store/access/capture-keys.ts'
import type { Client } from '../src/store/access/clients.ts'
import * as clients from '../src/store/access/clients.ts'
import type { Scope } from '../src/store/access/scopes.ts'
import * as scopes from '../src/store/access/scopes.ts'
import * as replyQueues from '../src/store/job/reply-queues.ts'
import type { Store } from '../src/store/pool.ts'
import * as binRanges from '../src/store/token/bin-ranges.ts'
import { type BinRange, type BinTable, BUILT_IN_RANGES, makeBinTable } from '../src/token/bin.ts'
import { type CaptureKey, openCaptureKey } from '../src/vault/capture.ts'
import { importPublicJwk } from '../src/vault/client-key.ts'
import type { KeyProvider } from '../src/vault/kek.ts'
import { removeEmpty } from './process/reply-queues.ts'

export interface KnownKey {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
  /** Whether the key is live now. */
  readonly live: boolean
}

export interface Directory {
  client(clientId: string): Promise<{ client: Client; keys: KnownKey[] } | undefined>
  scope(tokenScope: string): Promise<Scope | undefined>
  /** A capture key whose private half isn't destroyed. */
  captureKey(alias: string): Promise<{ entityId: string; key: CaptureKey } | undefined>
  bins(): BinTable
  binRange(id: number | null): Promise<BinRange | undefined>
  /** Registers a reply queue. False if the client already has the most that are allowed. */
  openReplyQueue(clientId: string, replyTo: string): Promise<boolean>
  /** Reads the BIN table again. */
  refresh(): Promise<void>
}

const BELIEVED_MS = 4_000
const ENTRIES_MAX = 10_000

/** Opens the directory; the BIN table is read once before it is used. */
export async function openDirectory(store: Store, queues: Queues, kek: KeyProvider, clock: Clock): Promise<Directory> {
  const options = { max: ENTRIES_MAX, lifetime: { ms: BELIEVED_MS, clock } }
  const remembered = <T>(load: (key: string) => Promise<T>) => cached(load, options)
  const opened = new Map<string, CaptureKey>()
  const clientOf = remembered(async clientId => {
    const client = await clients.find(store, clientId)
    if (!client) return undefined
    const keys = await clients.findClientKeys(store, clientId)
    return {
      client,
      keys: keys.map(key => ({
        kid: key.kid,
        alg: key.alg,
        publicKey: importPublicJwk(key.publicJwk).key,
        // A getter, because the key may expire while it is cached.
        get live() {
          return isLive(key, clock())
        },
      })),
    }
  })
  const scopeOf = remembered(tokenScope => scopes.find(store, tokenScope))
  const captureKeyOf = remembered(async alias => {
    const record = await captureKeys.find(store, alias)
    if (!record?.wrappedPrivate) {
      opened.delete(alias)
      return undefined
    }
    const key = opened.get(alias) ?? (await openCaptureKey({ ...record, wrappedPrivate: record.wrappedPrivate }, kek))
    opened.set(alias, key)
    return { entityId: record.entityId, key }
  })
  const replyQueueOf = remembered(async key => {
    const [clientId = '', replyTo = ''] = key.split(' ')
    if (await replyQueues.register(store, clientId, replyTo)) return true
    // Empty queues that nobody reads are removed first, so that they don't count.
    await removeEmpty({ store, queues }, clientId, clock())
    return replyQueues.register(store, clientId, replyTo)
  })
  let ranges = new Map<number, BinRange>()
  let table = makeBinTable(BUILT_IN_RANGES)
  const refresh = async () => {
    const imported = await binRanges.findAll(store)
    const prefixes = new Set(imported.map(range => range.prefix))
    const all = [...imported, ...BUILT_IN_RANGES.filter(range => !prefixes.has(range.prefix))]
    ranges = new Map([...BUILT_IN_RANGES, ...imported].map(range => [range.id, range]))
    table = makeBinTable(all)
  }
  await refresh()
  return {
    client: clientOf,
    scope: scopeOf,
    captureKey: captureKeyOf,
    bins: () => table,
    binRange: async id => (id === null ? undefined : ranges.get(id)),
    openReplyQueue: (clientId, replyTo) => replyQueueOf(`${clientId} ${replyTo}`),
    refresh,
  }
}

function isLive(key: clients.ClientKey, now: number): boolean {
  return key.state === 'ACTIVE' || (key.state === 'RETIRED' && key.validUntil !== null && now < key.validUntil)
}
