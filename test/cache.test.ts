// The cache is bounded: a new entry removes at most the entry that was used longest ago.
import { describe, expect, it } from 'vitest'
import { cached, openCache } from '../src/cache.ts'
import { countMisses } from '../workers/card/guess-limit.ts'

const at = { now: 1_000 }
const clock = () => at.now

describe('a cache', () => {
  it('forgets the entry that was used longest ago, and no other with it', () => {
    const cache = openCache<{ n: number }>({ max: 3 })
    for (const [n, key] of ['a', 'b', 'c'].entries()) cache.set(key, { n })
    cache.get('a')
    cache.set('d', { n: 3 })
    expect(['a', 'b', 'c', 'd'].map(key => cache.get(key)?.n)).toEqual([0, undefined, 2, 3])
  })

  it('believes an entry for its lifetime, however often it is asked for', () => {
    const cache = openCache<boolean>({ max: 3, lifetime: { ms: 100, clock } })
    cache.set('a', false)
    at.now += 99
    expect(cache.get('a')).toBe(false)
    at.now += 2
    expect(cache.get('a')).toBeUndefined()
  })

  it('lets callers of one moment share one question, asks again after the lifetime, and believes no failure', async () => {
    let asked = 0
    const load = async (key: string) => {
      asked += 1
      if (key === 'bad') throw new Error('no')
      return asked
    }
    const known = cached(load, { max: 2, lifetime: { ms: 100, clock } })
    expect(await Promise.all([known('a'), known('a')])).toEqual([1, 1])
    at.now += 101
    expect(await known('a')).toBe(2)
    await expect(known('bad')).rejects.toThrow()
    await expect(known('bad')).rejects.toThrow()
    expect(asked).toBe(4)
  })
})

describe('the count of guesses in batches', () => {
  it('of a client that goes on isn’t forgotten when many others come', () => {
    let beyond = 0
    const guesses = { inc: (_: object, n: number) => (beyond += n) }
    const deps = { clock, metrics: { guesses }, settings: { guessesMax: 2 } } as never
    const miss = [{ bin: '41111111', lastFour: '1111' }] as never
    countMisses('guesser', miss, deps)
    countMisses('guesser', miss, deps)
    for (let other = 0; other < 50; other += 1) {
      countMisses(`other-${other}`, miss, deps)
      countMisses('guesser', [], deps)
    }
    expect(beyond).toBe(0)
    countMisses('guesser', miss, deps)
    expect(beyond).toBe(1)
  })
})
