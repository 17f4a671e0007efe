// What a process remembers of many, bounded in number and in time: the one that was used longest ago goes first, and no
// other goes with it. It isn't shared between processes, and nothing that must not be lost lies in it.
import { LRUCache } from 'lru-cache'
import type { Clock } from './clock.ts'

export interface CacheOptions {
  /** Entries that are kept. */
  max: number
  /** How long an entry is believed after it was set, ms; default: for ever. */
  lifetime?: { ms: number; clock: Clock }
}

export type Cache<V extends object | boolean> = Pick<LRUCache<string, V>, 'get' | 'set' | 'delete'>

export function openCache<V extends object | boolean>({ max, lifetime }: CacheOptions): Cache<V> {
  if (!lifetime) return new LRUCache<string, V>({ max })
  return new LRUCache<string, V>({ max, ttl: lifetime.ms, ttlResolution: 0, perf: { now: lifetime.clock } })
}

/** `load`, asked at most once per key and lifetime; callers at the same moment share one question. */
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
