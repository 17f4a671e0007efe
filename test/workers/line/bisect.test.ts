// Bisection finds all records that fail alone and no others, and the number of probes is limited.
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { findFailing } from '../../../workers/line/bisect.ts'

/** Ranges that hold none of `bad` work. */
function probing(bad: readonly number[]) {
  const probes: { from: number; to: number }[] = []
  const probe = async (from: number, to: number) => {
    probes.push({ from, to })
    return !bad.some(at => at >= from && at < to)
  }
  return { probes, probe }
}

describe('bisection', () => {
  it('finds exactly the records that fail alone, in their order', async () => {
    const chunks = fc.integer({ min: 1, max: 500 }).chain(size =>
      fc.record({
        size: fc.constant(size),
        bad: fc.uniqueArray(fc.nat({ max: size - 1 }), { minLength: 1, maxLength: 8 }),
      }),
    )
    await fc.assert(
      fc.asyncProperty(chunks, async ({ size, bad }) => {
        expect(await findFailing(size, probing(bad).probe)).toEqual([...bad].sort((a, b) => a - b))
      }),
    )
  })

  it('finds one record of 1,000 by 20 probes at most, and never probes the whole chunk again', async () => {
    const { probes, probe } = probing([617])
    expect(await findFailing(1_000, probe)).toEqual([617])
    expect(probes.length).toBeLessThanOrEqual(20)
    expect(probes.filter(({ from, to }) => to - from === 1_000)).toEqual([])
  })

  it('takes the one record of a chunk of one for the bad one, without a probe', async () => {
    const { probes, probe } = probing([0])
    expect(await findFailing(1, probe)).toEqual([0])
    expect(probes).toEqual([])
  })

  it('finds none where both halves work and only the whole does not', async () => {
    expect(await findFailing(500, async () => true)).toEqual([])
  })

  it('gives a chunk up after 200 probes', async () => {
    const { probes, probe } = probing(Array.from({ length: 1_000 }, (_, index) => index))
    expect(await findFailing(1_000, probe)).toBeUndefined()
    expect(probes.length).toBe(200)
  })

  it('hands on what a probe throws: the world failed, not a record', async () => {
    const away = new Error('away')
    await expect(findFailing(10, () => Promise.reject(away))).rejects.toBe(away)
  })
})
