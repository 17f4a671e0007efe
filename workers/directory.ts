// Clients, scopes, capture keys and BIN ranges, as a worker process knows them. All but BIN ranges are read from the
// store and cached for four seconds, so that a revocation takes effect everywhere within ten. The process reads BIN
// ranges once a minute.
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
import type { Db, Store } from '../src/store/pool.ts'
import * as binRanges from '../src/store/token/bin-ranges.ts'
import { type BinRange, type BinTable, BUILT_IN_RANGES, makeBinTable } from '../src/token/bin.ts'
import { lineOpener, type OpenedLine } from '../src/vault/capture/open-line.ts'
import { importPublicJwk } from '../src/vault/client-key.ts'
import type { PrivateHalves } from '../src/vault/private-half.ts'
import {
  clientKeyText,
  clientText,
  type GrantKind,
  isGranted,
  type MacOfRow,
  scopeText,
} from '../src/vault/ring/grants.ts'
import type { LiveRing } from '../src/vault/ring/key-ring.ts'
import { makeAfresh } from '../src/vault/ring/reload.ts'
import { removeEmpty } from './reply-queues.ts'

export interface KnownKey {
  kid: string
  alg: Algorithm
  publicKey: KeyObject
  /** Whether the key is live now. */
  readonly live: boolean
  /** Set if somebody else has the key: when that was, ms since the epoch. */
  stolenAt?: number
  /** Set of a system client's key that no worker had verified yet: to be called when this one does. */
  noteVerified?: () => void
}

export interface Directory {
  client(clientId: string): Promise<{ client: Client; keys: KnownKey[] } | undefined>
  scope(tokenScope: string): Promise<Scope | undefined>
  /** As `scope`, read now and in the transaction of `db`. */
  scopeIn(db: Db, tokenScope: string): Promise<Scope | undefined>
  /** The capture keys of an alias whose private halves aren't destroyed. */
  captureLine(alias: string): Promise<OpenedLine | undefined>
  /** As `captureLine`, read from the store less than half a second ago. */
  captureLineAnew(alias: string): Promise<OpenedLine | undefined>
  bins(): BinTable
  binRange(id: number | null): Promise<BinRange | undefined>
  /** Registers a reply queue. False if the client already has the most that are allowed. */
  openReplyQueue(clientId: string, replyTo: string): Promise<boolean>
  /** Reads the BIN table again. */
  refresh(): Promise<void>
}

const BELIEVED_MS = 4_000
/** A process reads a line anew at most once in this time, however many cards it can't decrypt. */
const ANEW_MS = 250
const ENTRIES_MAX = 10_000

/** What the directory reads from and reports to. */
interface Opened {
  store: Store
  queues: Queues
  halves: PrivateHalves
  ring: Pick<LiveRing, 'grantMacBy' | 'refresh' | 'isAfresh'>
  /** Told of a row that tokenmill didn't write, or that was changed since, each time that it is read. */
  onUngranted(kind: GrantKind, id: string): void
}

export async function openDirectory(
  { store, queues, halves, ring, onUngranted }: Opened,
  clock: Clock,
): Promise<Directory> {
  /** Whether tokenmill wrote the row; another one is treated as absent. */
  const isOurs = (kind: GrantKind, id: string, text: string, row: MacOfRow) => {
    const granted = isGranted(ring, text, row)
    if (!granted) onUngranted(kind, id)
    return granted
  }
  const options = { max: ENTRIES_MAX, lifetime: { ms: BELIEVED_MS, clock } }
  const remembered = <T>(load: (key: string) => Promise<T>) =>
    cached(async (key: string) => {
      await makeAfresh(ring)
      return load(key)
    }, options)
  /** A note that fails is made by the next reading of the client. */
  const noteOnce = (clientId: string, kid: string) => {
    let isNoted = false
    return () => {
      if (!isNoted) clients.noteVerified(store, clientId, kid).catch(() => {})
      isNoted = true
    }
  }
  const clientOf = remembered(async clientId => {
    const client = await clients.find(store, clientId)
    // A revoked row has no code: it stays revoked whoever wrote it.
    if (!client || (client.revokedAt === null && !isOurs('client', clientId, clientText(client), client)))
      return undefined
    const all = await clients.findClientKeys(store, clientId)
    const keys = all.filter(
      key => key.state === 'REVOKED' || isOurs('client-key', `${clientId} ${key.kid}`, clientKeyText(key), key),
    )
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
        ...(key.state === 'STOLEN' && key.validUntil !== null ? { stolenAt: key.validUntil } : {}),
        ...(client.system && key.verifiedAt === null ? { noteVerified: noteOnce(clientId, key.kid) } : {}),
      })),
    }
  })
  const scopeIn = async (db: Db, tokenScope: string) => {
    const scope = await scopes.find(db, tokenScope)
    return scope && isOurs('scope', tokenScope, scopeText(scope), scope) ? scope : undefined
  }
  const scopeOf = remembered(tokenScope => scopeIn(store, tokenScope))
  const openLine = lineOpener({
    halves,
    ring,
    onUngranted: key => onUngranted('capture-key', captureKeys.captureKeyName(key)),
  })
  const captureLineAnew = cached(async alias => openLine(alias, await captureKeys.findLine(store, alias)), {
    max: ENTRIES_MAX,
    lifetime: { ms: ANEW_MS, clock },
  })
  const captureLineOf = remembered(captureLineAnew)
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
    scopeIn,
    captureLine: captureLineOf,
    captureLineAnew,
    bins: () => table,
    binRange: async id => (id === null ? undefined : ranges.get(id)),
    openReplyQueue: (clientId, replyTo) => replyQueueOf(`${clientId} ${replyTo}`),
    refresh,
  }
}

function isLive(key: clients.ClientKey, now: number): boolean {
  return key.state === 'ACTIVE' || (key.state === 'RETIRED' && key.validUntil !== null && now < key.validUntil)
}
