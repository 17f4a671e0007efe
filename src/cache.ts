// A cache in the memory of one process, limited in entries and, if a lifetime is given, in time. The least recently
// used entry is evicted first. It isn't shared between processes, and it never holds the only copy of a value.
import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

interface CacheOptions {
  /** The most entries that are kept. */
  max: number
  /** How long an entry is valid after it was set, ms; default: for ever. */
  lifetime?: { ms: number; clock: Clock }
}

type Cache<V extends object | boolean> = Pick<LRUCache<string, V>, 'get' | 'set' | 'delete'>

export function openCache<V extends object | boolean>({ max, lifetime }: CacheOptions): Cache<V> {
  if (!lifetime) return new LRUCache<string, V>({ max })
  return new LRUCache<string, V>({ max, ttl: lifetime.ms, ttlResolution: 0, perf: { now: lifetime.clock } })
}

/**
 * Calls `load` and keeps its value for the key until the lifetime ends or the entry is evicted. Callers at the same
 * time share one call. A failure isn't kept.
 */
export function cached<T>(load: (key: string) => Promise<T>, options: CacheOptions): (key: string) => Promise<T> {
  const known = openCache<Promise<T>>(options)
  return key => {
    const found = known.get(key)
    if (found) return found
    const value = load(key)
    known.set(key, value)
    value.catch(() => known.get(key) === value && known.delete(key))
    return value
  }
}
