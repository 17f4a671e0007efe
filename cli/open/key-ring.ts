// How a process opens its key ring: the rows of its keys are the store's, and so are the counters of its seals. A
// long-running process follows the rows while it works.
import type { Lifetime } from '../../src/lifetime.ts'
import { describeError, type Logger } from '../../src/log.ts'
import { every } from '../../src/recurring.ts'
import * as dataKeys from '../../src/store/access/data-keys.ts'
import type { Db } from '../../src/store/pool.ts'
import * as cardPhases from '../../src/store/token/card-phases.ts'
import type { LiveRing, Purpose, RingSource } from '../../src/vault/ring/key-ring.ts'

export const FOLLOW = {
  /** A process that can open a new key reads it about this many ms after the key was stored. */
  everyMs: 5_000,
  /** The same time while a key is PENDING, because it soon comes into use. */
  turningMs: 1_000,
} as const

export function ringSource(store: Db): RingSource {
  return {
    load: () => dataKeys.findAll(store),
    loadPhase: () => cardPhases.find(store),
    reserve: (purpose, version, seals) => dataKeys.reserve(store, purpose, version, seals),
  }
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
