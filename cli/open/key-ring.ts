// How a process opens its key ring: the rows of its keys are the store's, and so are the counters of its seals. A
// long-running process follows the rows while it works.
import type { Lifetime } from '../../src/lifetime.ts'
import { describeError, type Logger } from '../../src/logger.ts'
import { every } from '../../src/recurring.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import type { Db } from '../../src/store/pool.ts'
import type { Keks } from '../../src/vault/kek/provider.ts'
import { cardPhaseOf, keysOf } from '../../src/vault/ring/key-lives.ts'
import { type LiveRing, openLiveRing, type Purpose, type RingSource } from '../../src/vault/ring/key-ring.ts'
import type { KnownLives } from '../../src/vault/ring/known-lives.ts'

export const FOLLOW = {
  /** A process that can open a new key reads it about this many ms after the key was stored. */
  everyMs: 5_000,
  /** The same time while a key is PENDING, because it soon comes into use. */
  turningMs: 1_000,
} as const

/**
 * The keys go by `lives`, and the store has their bytes and the counters of their seals. Phase and keys of a reading are of one
 * row of the lives: `loadPhase` reads it, and is called before `load`.
 */
export function ringSource(store: Db, lives: KnownLives): RingSource & Required<Pick<RingSource, 'loadPhase'>> {
  return {
    loadPhase: async () => cardPhaseOf(await lives.read(), lives.current()?.row.phase ?? ''),
    load: async () => keysOf(lives.current()?.lives ?? (await lives.read()), await dataKeys.findAll(store)),
    reserve: (purpose, version, seals) => dataKeys.reserve(store, purpose, version, seals),
    raise: (purpose, version, seals) => dataKeys.raise(store, purpose, version, seals),
  }
}

/** A ring of the keys as they are now, which doesn't follow the store. Its seals aren't counted. */
export async function openRingNow(keks: Pick<Keks, 'find'>, store: Db, lives: KnownLives): Promise<LiveRing> {
  const source = ringSource(store, lives)
  const phase = await source.loadPhase()
  const keys = await source.load()
  return openLiveRing(keks, { load: async () => keys, loadPhase: async () => phase })
}

/**
 * Logs which new key this host can't open, and under which no seals can be reserved. A rotation doesn't put a key into
 * use while a live process lacks it.
 */
export function unopenedTo(log: Logger) {
  const told = new Set<string>()
  return {
    onUnopened: (key: string, error: unknown) => {
      if (!told.has(key))
        log.warn({ key, error: describeError(error) }, "a new key of the vault can't be opened on this host")
      told.add(key)
    },
    onUnreserved: (key: string, error: unknown) =>
      log.warn(
        { key, error: describeError(error) },
        'no seals can be reserved under a key of the vault; tried again soon',
      ),
    onLowered: (key: string) =>
      log.error(
        { key },
        'the count of seals under a key of the vault was lower than before, and was raised again: was a backup restored, or did somebody change the table data_key?',
      ),
  }
}

interface Following {
  ring: Pick<LiveRing, 'isTurning' | 'refresh'>
  log: Logger
  lifetime: Lifetime
}

/** Keeps the ring up to date, and enough seals reserved for these purposes, until the lifetime ends. */
export async function followKeys(
  { ring, ...others }: Following & { ring: LiveRing },
  purposes: readonly Purpose[],
  everyMs?: number,
): Promise<void> {
  await ring.reserve(...purposes)
  follow({ ring, ...others }, everyMs)
}

/** Keeps a ring up to date, under which nothing is sealed. */
export function follow({ ring, log, lifetime }: Following, everyMs: number = FOLLOW.everyMs): void {
  const turningMs = Math.min(FOLLOW.turningMs, everyMs)
  let readAt = performance.now()
  const read = async () => {
    const now = performance.now()
    if (!ring.isTurning() && now - readAt < everyMs - turningMs) return
    await ring.refresh()
    readAt = now
  }
  lifetime.onClose('key ring', every(turningMs, read, { log }))
}
