// Keeps the key-encryption keys (KEKs) of a running process up to date: reads the settings' list again, follows the key
// that the store names, and proves which keys this process has, so that a rotation waits for it.
import type { Lifetime } from '../../src/lifetime.ts'
import type { Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as keks from '../../src/store/access/keks.ts'
import * as installation from '../../src/store/installation.ts'
import type { Db } from '../../src/store/pool.ts'
import { type HostKeks, reasonOf } from '../../src/vault/kek/host.ts'
import type { KekMetrics } from '../../src/vault/kek/metrics.ts'
import { prove } from '../../src/vault/kek/probe.ts'
import type { KeyProvider } from '../../src/vault/kek/provider.ts'
import { type KnownLives, LIVES_TROUBLE, type LivesTrouble } from '../../src/vault/ring/known-lives.ts'

const WATCH_MS = 5_000
/** A key that was proved is proved again after this time: a token may be gone. */
const BELIEVED_MS = 60_000

/** Watches until the session ends. Returns the ids of the keys that are proved, as they are at each call. */
export async function watchKeks(
  { store, keks: host, lives }: { store: Db; keks: HostKeks; lives: KnownLives },
  { kekAway, livesBehind }: KekMetrics,
  { log, lifetime }: { log: Logger; lifetime: Lifetime },
  everyMs: number = WATCH_MS,
): Promise<() => string[]> {
  const provedAt = new Map<string, number>()
  let troubles = new Map<string, string>()
  /** Returns the trouble with a key; undefined if it is proved. */
  const proveAgain = async (kek: KeyProvider, probe: Buffer): Promise<string | undefined> => {
    if (performance.now() - (provedAt.get(kek.id) ?? Number.NEGATIVE_INFINITY) < BELIEVED_MS) return undefined
    try {
      await prove(kek, probe)
      provedAt.set(kek.id, performance.now())
      return undefined
    } catch (error) {
      provedAt.delete(kek.id)
      return `${kek.id} does not open its probe: ${wordsOf(error)}`
    }
  }
  /** Returns what is wrong with which key. A key without a probe isn't used by this installation. */
  const proveAll = async (rows: readonly { kekId: string; probe: Buffer }[]) => {
    const probes = new Map(rows.map(({ kekId, probe }) => [kekId, probe]))
    const mine = host.all().flatMap(kek => {
      const probe = probes.get(kek.id)
      return probe ? [{ kek, probe }] : []
    })
    for (const id of provedAt.keys()) if (!mine.some(({ kek }) => kek.id === id)) provedAt.delete(id)
    const told = await Promise.all(
      mine.map(async ({ kek, probe }) => ({ id: kek.id, trouble: await proveAgain(kek, probe) })),
    )
    return told.flatMap(({ id, trouble }) => (trouble === undefined ? [] : [{ id, trouble }]))
  }
  const look = async () => {
    const found = new Map<string, string>()
    await host.reload().catch((error: unknown) => found.set('list', wordsOf(error)))
    for (const { uri, shown, error } of host.failures()) found.set(uri, `${shown}: ${reasonOf(error)}`)
    const known = await installation.find(store)
    if (known) host.follow(known.kekId)
    for (const { id, trouble } of await proveAll(await keks.findProbes(store))) found.set(id, trouble)
    tellLives(lives.trouble())
    kekAway.set(known && provedAt.has(known.kekId) ? 0 : 1)
    for (const [subject, trouble] of found)
      if (troubles.get(subject) !== trouble) log.warn({ trouble }, 'a key-encryption key of this host can not be used')
    troubles = found
  }
  let told: LivesTrouble | undefined
  const tellLives = (trouble: LivesTrouble | undefined) => {
    livesBehind.set(trouble ? 1 : 0)
    if (trouble && trouble !== told)
      log.error(
        { trouble: LIVES_TROUBLE[trouble] },
        'this process goes by the lives of the data keys that it knew before',
      )
    told = trouble
  }
  await look()
  lifetime.onClose('key-encryption keys', every(everyMs, look, { log }))
  return () => [...provedAt.keys()]
}

const wordsOf = (error: unknown) => (error instanceof Error ? reasonOf(error) : String(error))
