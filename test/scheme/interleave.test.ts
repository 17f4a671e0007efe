// The order of a batch at a network: nothing lost, each range in its own order, neighbours of different ranges.
import * as fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { interleave } from '../../src/scheme/interleave.ts'

describe('interleave', () => {
  it('loses nothing, doubles nothing and keeps the order within a range', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('510000', '520000', '530000')), ranges => {
        const items = ranges.map((range, index) => ({ range, index }))
        const order = interleave(items, ({ range }) => range)
        expect([...order].sort((a, b) => a.index - b.index)).toEqual(items)
        for (const range of new Set(ranges)) {
          const own = order.filter(item => item.range === range).map(({ index }) => index)
          expect(own).toEqual([...own].sort((a, b) => a - b))
        }
      }),
    )
  })

  it('takes ranges in turn, short ones over the whole length', () => {
    const items = [...Array.from({ length: 6 }, () => 'a'), ...Array.from({ length: 6 }, () => 'b'), 'c', 'c']
    expect(interleave(items, range => range).join('')).toBe('abcabababcabab')
  })
})
