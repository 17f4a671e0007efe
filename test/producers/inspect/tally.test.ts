// Exact counts of different texts, in memory and on the disk.
import { readdirSync, readFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, it } from 'vitest'
import { openTally } from '../../../producers/inspect/tally.ts'

let under: string
beforeAll(async () => {
  under = await mkdtemp(join(tmpdir(), 'tokenmill-tally-'))
})
afterAll(() => rm(under, { recursive: true, force: true }))

it('counts as a list in memory would, whatever goes to the disk', () => {
  const texts = fc.array(fc.string({ maxLength: 3 }), { maxLength: 200 })
  fc.assert(
    fc.property(texts, fc.constantFrom(16, 160, 1e6), (all, memoryBytesMax) => {
      const tally = openTally({ memoryBytesMax, under })
      try {
        for (const text of all) tally.add(text)
        const counts = new Map<string, number>()
        for (const text of all) counts.set(text, (counts.get(text) ?? 0) + 1)
        expect(tally.end()).toEqual({
          added: all.length,
          distinct: counts.size,
          repeated: [...counts.values()].filter(count => count > 1).length,
          most: Math.max(0, ...counts.values()),
        })
      } finally {
        tally.close()
      }
    }),
    { numRuns: 60 },
  )
})

it('writes nothing of a text, and leaves nothing behind', () => {
  const tally = openTally({ memoryBytesMax: 64, under })
  const number = '4111111111111111'
  for (let index = 0; index < 100; index++) tally.add(number)
  const [folder = 'none'] = readdirSync(under)
  const stored = readdirSync(join(under, folder)).map(name => readFileSync(join(under, folder, name), 'latin1'))
  expect(stored.join('').length).toBeGreaterThan(0)
  expect(stored.join('')).not.toContain(number.slice(0, 6))
  tally.close()
  expect(readdirSync(under)).toEqual([])
})

it('holds a text in little more than the 16 bytes of its digest', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage: () => void = runInNewContext('gc')
  const used = () => {
    collectGarbage()
    const { heapUsed, arrayBuffers } = process.memoryUsage()
    return heapUsed + arrayBuffers
  }
  const tally = openTally({ under })
  const before = used()
  for (let index = 0; index < 200_000; index++) tally.add(`text ${index}`)
  const after = used()
  expect(tally.end().distinct).toBe(200_000)
  tally.close()
  expect((after - before) / 200_000).toBeLessThan(40)
})
